//! One transaction that writes entries and what tasks at which places have.
//!
//! A batch is of short tasks, so each costs few statements: totals are counted up and written once,
//! an entry is looked for only where its key is taken, and a note that a task has begun only where
//! there is one. It does not know where
//! objects come from. Read first: `store`, `schema`.

use std::collections::BTreeSet;

use ciel_model::Digest;
use rusqlite::{OptionalExtension, Transaction, params};

use crate::entry::{Entry, Parts};
use crate::error::KeptError;
use crate::holdings::{release, remove_unheld};
use crate::in_row::appended;
use crate::objects::Objects;
use crate::schema::{blob, has_begun_before};

/// Adds an entry, unless there is one of that key.
const ADD: &str = "
    INSERT INTO entry (key, used_s, bytes, marked, run, task, check_digest, parts, body)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, x'', ?8) ON CONFLICT (key) DO NOTHING";

/// Tasks that are noted as begun of which a transaction knows the places, at most.
const BEGUN_MAX: usize = 1024;

/// Bytes of most entries: more are written with further allocations.
const USUAL_BYTES: usize = 512;

/// The transaction, and what it has changed.
pub(crate) struct Writing<'a> {
    change: Transaction<'a>,
    /// The places of tasks that are noted as begun; none if these are many.
    begun: Option<BTreeSet<Vec<u8>>>,
    /// Some of them were noted so long ago that they stand apart.
    has_begun_before: bool,
    /// Entries with a result that are there more than before.
    entries: i64,
    /// Bytes that are kept more than before.
    bytes: i64,
}

impl<'a> Writing<'a> {
    pub(crate) fn new(change: Transaction<'a>) -> Result<Writing<'a>, KeptError> {
        let begun = begun(&change)?;
        let has_begun_before = has_begun_before(&change)?;
        Ok(Writing {
            change,
            begun,
            has_begun_before,
            entries: 0,
            bytes: 0,
        })
    }

    /// Writes an entry that holds these objects, as used at `now_s`, under its key, in place of one
    /// that is there. It is given with its body. Its place is still to be put.
    pub(crate) fn put(
        &mut self,
        objects: &Objects,
        (key, entry, body): (Digest, &Entry, &[u8]),
        held: &[(Digest, u64)],
        now_s: u64,
    ) -> Result<(), KeptError> {
        let lengths: u64 = held.iter().map(|(_, length)| length).sum();
        let bytes = body.len() as u64 + lengths;
        let (key, check) = (blob(key), blob(Digest::of(body)));
        let (run, task) = (&*entry.run, &*entry.task);
        let row = params![key, now_s, bytes, entry.is_marked, run, task, check, body];
        // Most keys are new: only where one is not is the earlier entry looked for.
        let mut before = Vec::new();
        if self.change.prepare_cached(ADD)?.execute(row)? == 0 {
            before = self.remove_earlier(&key)?;
            self.change.prepare_cached(ADD)?.execute(row)?;
        }
        let id = self.change.last_insert_rowid();
        let hold = "INSERT OR IGNORE INTO holds VALUES (?1, ?2)";
        for (digest, _) in held {
            let mut hold = self.change.prepare_cached(hold)?;
            hold.execute(params![blob(*digest), id])?;
        }
        remove_unheld(&self.change, objects, before)?;
        self.entries += 1;
        self.bytes += bytes as i64;
        Ok(())
    }

    /// Removes the entry of a key that is about to be replaced; gives what it held.
    fn remove_earlier(&mut self, key: &[u8]) -> Result<Vec<Vec<u8>>, KeptError> {
        let mut before = self
            .change
            .prepare_cached("SELECT id, bytes, body IS NULL FROM entry WHERE key = ?1")?;
        let row = before.query_row(params![key], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, bool>(2)?,
            ))
        });
        let Some((id, bytes, is_evicted)) = row.optional()? else {
            return Ok(Vec::new());
        };
        self.change
            .prepare_cached("DELETE FROM entry WHERE id = ?1")?
            .execute(params![id])?;
        if !is_evicted {
            self.entries -= 1;
            self.bytes -= bytes;
        }
        release(&self.change, id)
    }

    /// The task at a place has ended well, with a result under that key.
    pub(crate) fn put_place(&self, place: Digest, key: &[u8]) -> Result<(), KeptError> {
        let place = blob(place);
        self.change
            .prepare_cached("INSERT OR REPLACE INTO place VALUES (?1, ?2)")?
            .execute(params![place, key])?;
        let is_noted = |begun: &BTreeSet<Vec<u8>>| begun.contains(&place);
        if self.begun.as_ref().is_none_or(is_noted) {
            self.change
                .prepare_cached("DELETE FROM begun WHERE place = ?1")?
                .execute(params![place])?;
            if self.has_begun_before {
                self.change
                    .prepare_cached("DELETE FROM begun_before WHERE place = ?1")?
                    .execute(params![place])?;
            }
        }
        Ok(())
    }

    /// The task at a place has begun or ended since without being kept, as `begun` in the tables
    /// has it.
    pub(crate) fn put_begun(&self, place: Digest, ended: u8) -> Result<(), KeptError> {
        self.change
            .prepare_cached("INSERT OR REPLACE INTO begun VALUES (?1, ?2)")?
            .execute(params![blob(place), ended])?;
        Ok(())
    }

    /// Ends the transaction: all of it counts from now on.
    pub(crate) fn commit(self) -> Result<(), KeptError> {
        self.change
            .prepare_cached("UPDATE total SET entries = entries + ?1, bytes = bytes + ?2")?
            .execute(params![self.entries, self.bytes])?;
        Ok(self.change.commit()?)
    }
}

/// The places of tasks that are noted as begun, if these are few.
fn begun(change: &Transaction<'_>) -> Result<Option<BTreeSet<Vec<u8>>>, KeptError> {
    let mut query = change.prepare_cached(
        "SELECT place FROM begun UNION ALL SELECT place FROM begun_before LIMIT ?1",
    )?;
    let rows = query.query_map(params![BEGUN_MAX + 1], |row| row.get(0))?;
    let places: BTreeSet<Vec<u8>> = rows.collect::<Result<_, _>>()?;
    Ok((places.len() <= BEGUN_MAX).then_some(places))
}

/// The body of an entry.
pub(crate) fn encoded(entry: &Entry) -> Vec<u8> {
    appended(Vec::with_capacity(USUAL_BYTES), entry)
}

/// The parts at the beginning of a body, and their bytes; none if it is damaged.
pub(crate) fn parts_in(body: &[u8]) -> Option<(Parts, &[u8])> {
    let (parts, rest) = postcard::take_from_bytes(body).ok()?;
    Some((parts, &body[..body.len() - rest.len()]))
}
