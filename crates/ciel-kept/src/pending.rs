//! Notes about short tasks, which are put into the tables when somebody looks.
//!
//! Most runs end well, and nothing that they kept is ever looked for; to put a result into the
//! tables costs as much as a short task. So what many short tasks say is written down in one row,
//! whole or not at all. Who looks next puts it in, in the order in which it was noted, with many
//! rows at once, which costs less. It does not know when tasks are short. Read first: `store`,
//! `schema`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ciel_model::Digest;
use rusqlite::{Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::error::KeptError;
use crate::in_row::{InRow, appended};
use crate::limits::{
    PENDING_BYTES_AT_ONCE, PENDING_BYTES_MAX, PENDING_ENTRIES_AT_ONCE, PENDING_ENTRIES_MAX,
    PENDING_ENTRIES_MIN, PLACES_OF_ENTRY,
};
use crate::schema::blob;
use crate::store::{Ended, KeptResults};
use crate::writing::Writing;

/// What a run says of its tasks, in the order in which it counts.
#[derive(Debug, Default)]
pub struct Notes {
    /// Positions of tasks that begin: until they are kept they count as never finished.
    pub begun: Vec<Digest>,
    /// Positions of tasks that have ended well, and whose results are not kept.
    pub unkept: Vec<(Digest, Ended)>,
    /// Results, with the files of their objects as for [`KeptResults::keep`].
    pub kept: Vec<(Entry, Vec<PathBuf>)>,
    /// Positions whose tasks have taken the results under these keys.
    pub taken: Vec<(Digest, Digest)>,
}

/// The beginning of a row; entries follow, each as its body.
#[derive(Serialize, Deserialize)]
struct Head {
    begun: Vec<Digest>,
    /// As `begun` in the tables has them.
    unkept: Vec<(Digest, u8)>,
    taken: Vec<(Digest, Digest)>,
}

/// A row.
struct Row {
    id: i64,
    now_s: u64,
    check: Vec<u8>,
    notes: Vec<u8>,
}

impl KeptResults {
    /// Writes notes down, as used at `now_s`. Whoever looks from now on finds what they say.
    ///
    /// # Errors
    /// Those of files and index.
    pub fn note(&mut self, notes: &Notes, now_s: u64) -> Result<(), KeptError> {
        if self.may_wait(notes)? {
            let row = notes.encoded_in(std::mem::take(&mut self.row));
            if row.len() <= PENDING_BYTES_MAX {
                let added = self.add_pending(notes.as_entries(), &row, now_s);
                self.row = row;
                return added;
            }
        }
        if !notes.begun.is_empty() {
            self.begin(&notes.begun)?;
        }
        if !notes.unkept.is_empty() {
            self.note_unkept(&notes.unkept)?;
        }
        if !notes.kept.is_empty() {
            self.keep(&notes.kept, now_s)?;
        }
        if !notes.taken.is_empty() {
            self.note_taken(&notes.taken)?;
        }
        Ok(())
    }

    /// Whether notes may be written down as a row: they are of no files, and of many tasks or
    /// behind some that wait. Who has looked will look again, so nothing waits for that.
    fn may_wait(&self, notes: &Notes) -> Result<bool, KeptError> {
        if self.has_looked.get() || notes.has_objects() {
            return Ok(false);
        }
        Ok(notes.len() >= PENDING_ENTRIES_MIN || self.waiting()?.is_some())
    }

    /// How many entries wait, if there are any rows.
    fn waiting(&self) -> Result<Option<u64>, KeptError> {
        let query = "SELECT sum(entries) FROM pending";
        let mut query = self.connection().prepare_cached(query)?;
        Ok(query.query_row([], |row| row.get(0))?)
    }

    /// Adds a row with so many entries.
    fn add_pending(&self, entries: u64, notes: &[u8], now_s: u64) -> Result<(), KeptError> {
        if self.waiting()?.unwrap_or(0) + entries > PENDING_ENTRIES_MAX {
            self.index_pending()?;
        }
        let add = "INSERT INTO pending (now_s, entries, check_digest, notes)
                   VALUES (?1, ?2, ?3, ?4)";
        let check = blob(Digest::of(notes));
        let mut add = self.connection().prepare_cached(add)?;
        add.execute(params![now_s, entries, check, notes])?;
        Ok(())
    }

    /// Puts what was noted into the tables, unless lookups see these as they were.
    pub(crate) fn index_pending(&self) -> Result<(), KeptError> {
        let has_pending = || {
            let mut query = self
                .connection()
                .prepare_cached("SELECT 1 FROM pending LIMIT 1")?;
            query.exists([])
        };
        while !self.is_held() && has_pending()? {
            self.index_some()?;
        }
        Ok(())
    }

    /// Puts the first rows into the tables, in one transaction.
    fn index_some(&self) -> Result<(), KeptError> {
        let behavior = TransactionBehavior::Immediate;
        let change = Transaction::new_unchecked(self.connection(), behavior)?;
        let rows = first_rows(&change)?;
        let mut last_notes = LastNotes::default();
        for row in &rows {
            // What was damaged is lost: those tasks are rerun.
            if row.check == blob(Digest::of(&row.notes)) {
                last_notes.add(row);
            }
        }
        if let Some(last) = rows.last() {
            change.execute("DELETE FROM pending WHERE id <= ?1", params![last.id])?;
        }
        let mut writing = Writing::new(change)?;
        for (key, (entry, body, now_s)) in &last_notes.entries {
            writing.put(self.objects(), (*key, entry, body), &[], *now_s)?;
        }
        for (place, note) in &last_notes.places {
            if let Some(key) = note.key {
                writing.put_place(*place, &blob(key))?;
            }
            if let Some(ended) = note.ended {
                writing.put_begun(*place, ended)?;
            }
        }
        writing.commit()
    }

    /// Bytes that are kept, at most: those of notes count as a whole.
    pub(crate) fn bytes_at_most(&self) -> Result<u64, KeptError> {
        let mut query = self.connection().prepare_cached(
            "SELECT bytes + (SELECT ifnull(sum(length(notes)), 0) FROM pending) FROM total",
        )?;
        Ok(query.query_row([], |row| row.get(0))?)
    }
}

impl Notes {
    /// Whether they say nothing.
    pub fn is_empty(&self) -> bool {
        let Notes {
            begun,
            unkept,
            kept,
            taken,
        } = self;
        begun.is_empty() && unkept.is_empty() && kept.is_empty() && taken.is_empty()
    }

    fn len(&self) -> usize {
        self.kept.len() + self.places()
    }

    /// Those that only say something of a position.
    fn places(&self) -> usize {
        self.begun.len() + self.unkept.len() + self.taken.len()
    }

    /// How many results they count as among those that wait.
    fn as_entries(&self) -> u64 {
        (self.kept.len() + self.places().div_ceil(PLACES_OF_ENTRY)) as u64
    }

    fn has_objects(&self) -> bool {
        let mut kept = self.kept.iter();
        kept.any(|(entry, _)| entry.objects().next().is_some())
    }

    /// Their row, in a buffer that may have held another one.
    fn encoded_in(&self, mut row: Vec<u8>) -> Vec<u8> {
        row.clear();
        let unkept = self.unkept.iter();
        let head = Head {
            begun: self.begun.clone(),
            unkept: unkept
                .map(|(place, ended)| (*place, *ended as u8))
                .collect(),
            taken: self.taken.clone(),
        };
        let row = appended(row, &head);
        let mut in_row = InRow::default();
        let entries = self.kept.iter();
        entries.fold(row, |row, (entry, _)| in_row.append(row, entry))
    }
}

/// Rows that are put into the tables together.
fn first_rows(change: &Transaction<'_>) -> Result<Vec<Row>, KeptError> {
    let query = "SELECT id, now_s, check_digest, notes, entries FROM pending ORDER BY id";
    let mut query = change.prepare_cached(query)?;
    let rows = query.query_map([], |row| {
        let read = Row {
            id: row.get(0)?,
            now_s: row.get(1)?,
            check: row.get(2)?,
            notes: row.get(3)?,
        };
        Ok((read, row.get::<_, u64>(4)?))
    })?;
    let (mut first, mut bytes, mut all) = (Vec::new(), 0, 0);
    for row in rows {
        let (row, entries) = row?;
        bytes += row.notes.len();
        all += entries;
        first.push(row);
        if bytes >= PENDING_BYTES_AT_ONCE || all >= PENDING_ENTRIES_AT_ONCE {
            break;
        }
    }
    Ok(first)
}

/// What the last note about the task at a position says.
#[derive(Debug, Default)]
struct LastNote {
    /// The key of the result that it had last.
    key: Option<Digest>,
    /// What is noted of a task that is not kept, as `begun` in the tables has it; none if it is
    /// kept.
    ended: Option<u8>,
}

/// What the last notes of rows say, in the order of the tables: that finds most of their pages at
/// hand.
#[derive(Default)]
struct LastNotes<'a> {
    /// The last entry of each key, its body, and when it was used.
    entries: BTreeMap<Digest, (Entry, &'a [u8], u64)>,
    places: BTreeMap<Digest, LastNote>,
}

impl<'a> LastNotes<'a> {
    fn add(&mut self, row: &'a Row) {
        let Ok((head, mut rest)) = postcard::take_from_bytes::<Head>(&row.notes) else {
            return;
        };
        let begun = head.begun.into_iter().map(|place| (place, 0));
        for (place, ended) in begun.chain(head.unkept) {
            self.places.entry(place).or_default().ended = Some(ended);
        }
        while let Ok((entry, after)) = postcard::take_from_bytes::<Entry>(rest) {
            let body = &rest[..rest.len() - after.len()];
            rest = after;
            let (key, place) = (entry.parts.key(), entry.place);
            self.set_kept(place, key);
            self.entries.insert(key, (entry, body, row.now_s));
        }
        for (place, key) in head.taken {
            self.set_kept(place, key);
        }
    }

    /// The task at that position has the result under that key.
    fn set_kept(&mut self, place: Digest, key: Digest) {
        let kept = LastNote {
            key: Some(key),
            ended: None,
        };
        self.places.insert(place, kept);
    }
}
