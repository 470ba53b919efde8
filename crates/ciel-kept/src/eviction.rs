//! What is removed to make room: objects first, which leaves what they were, then whole entries.
//!
//! It does not know which entries are meant. Read first: `store`; then `selection`.

use rusqlite::{Transaction, params};

use crate::error::KeptError;
use crate::holdings::drop_objects;
use crate::limits::{BEGUN_KNOWN_MAX, EVICTED_AT_ONCE, EVICTED_ENTRIES_MAX};
use crate::objects::Objects;
use crate::schema::{has_begun_beyond, renew_begun};
use crate::staging;
use crate::store::KeptResults;
use crate::writing::parts_in;

/// What an eviction has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    /// How many entries.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// What is removed of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// All of it; a task can still be told that its result was removed.
    Entries,
    /// Its objects: what they were is still known.
    Bytes,
}

impl Evicted {
    pub(crate) fn add(&mut self, more: Evicted) {
        self.entries += more.entries;
        self.bytes += more.bytes;
    }
}

impl KeptResults {
    /// Removes the objects of entries, and if these are not enough, entries, the longest unused
    /// first, until at most so many bytes are kept; what a process that was killed while it packed
    /// or unpacked has left; and of very many notes of tasks that were not kept the older ones.
    ///
    /// # Errors
    /// Those of files and index.
    pub fn evict(&mut self, bytes_max: u64) -> Result<Evicted, KeptError> {
        staging::clear(self.folder());
        self.note_uses()?;
        self.forget_begun()?;
        let mut evicted = Evicted::default();
        if self.bytes_at_most()? <= bytes_max {
            return Ok(evicted);
        }
        for what in [Removed::Bytes, Removed::Entries] {
            while self.usage()?.bytes > bytes_max {
                let step = self.evict_some(bytes_max, what)?;
                if step.entries == 0 {
                    break;
                }
                evicted.add(step);
            }
        }
        Ok(evicted)
    }

    /// Of the positions of tasks that were not kept the last ones stay, which may be twice as many
    /// as the limit: no time is noted of each.
    pub(crate) fn forget_begun(&mut self) -> Result<(), KeptError> {
        if !has_begun_beyond(self.connection(), BEGUN_KNOWN_MAX)? {
            return Ok(());
        }
        let (change, _) = self.change_with_objects()?;
        // Another process may have done it meanwhile.
        if has_begun_beyond(&change, BEGUN_KNOWN_MAX)? {
            renew_begun(&change)?;
        }
        Ok(change.commit()?)
    }

    fn evict_some(&mut self, bytes_max: u64, what: Removed) -> Result<Evicted, KeptError> {
        let (change, objects) = self.change_with_objects()?;
        let held: u64 = change.query_row("SELECT bytes FROM total", [], |row| row.get(0))?;
        let mut excess = held.saturating_sub(bytes_max);
        let mut chosen = oldest(&change, what)?;
        chosen.retain(|(_, bytes)| {
            let is_excess = excess > 0;
            excess = excess.saturating_sub(*bytes);
            is_excess
        });
        let evicted = drop_all(&change, objects, &chosen, what)?;
        change.commit()?;
        Ok(evicted)
    }

    /// Removes the results of these entries, or the objects of these, by their numbers and bytes,
    /// in one transaction.
    pub(crate) fn evict_these(
        &mut self,
        chosen: &[(i64, u64)],
        what: Removed,
    ) -> Result<Evicted, KeptError> {
        let (change, objects) = self.change_with_objects()?;
        let evicted = drop_all(&change, objects, chosen, what)?;
        change.commit()?;
        Ok(evicted)
    }
}

/// The entries of which something can be removed that were not used for longest, and the bytes of
/// that.
fn oldest(change: &Transaction<'_>, what: Removed) -> Result<Vec<(i64, u64)>, KeptError> {
    let sizes = match what {
        Removed::Entries => "SELECT id, bytes FROM entry WHERE body IS NOT NULL",
        Removed::Bytes => {
            "SELECT id, bytes - length(body) FROM entry WHERE body IS NOT NULL AND id IN \
             (SELECT entry FROM holds)"
        }
    };
    let mut query = change.prepare_cached(&format!(
        "{sizes} ORDER BY used_s, id LIMIT {EVICTED_AT_ONCE}"
    ))?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Removes that of entries which still have it, and notes how much is kept then.
fn drop_all(
    change: &Transaction<'_>,
    objects: &Objects,
    chosen: &[(i64, u64)],
    what: Removed,
) -> Result<Evicted, KeptError> {
    let mut evicted = Evicted::default();
    for (id, bytes) in chosen {
        let mut query = change.prepare_cached(match what {
            Removed::Entries => "SELECT 1 FROM entry WHERE id = ?1 AND body IS NOT NULL",
            Removed::Bytes => "SELECT 1 FROM holds WHERE entry = ?1",
        })?;
        if query.exists(params![id])? {
            drop_objects(change, objects, *id)?;
            match what {
                Removed::Entries => drop_body(change, *id)?,
                Removed::Bytes => {
                    let note = "UPDATE entry SET bytes = length(body) WHERE id = ?1";
                    change.prepare_cached(note)?.execute(params![id])?;
                }
            }
            evicted.entries += 1;
            evicted.bytes += bytes;
        }
    }
    let gone = match what {
        Removed::Entries => evicted.entries,
        Removed::Bytes => 0,
    };
    change.execute(
        "UPDATE total SET entries = entries - ?1, bytes = bytes - ?2",
        params![gone, evicted.bytes],
    )?;
    forget_evicted(change, EVICTED_ENTRIES_MAX)?;
    Ok(evicted)
}

/// Of an entry only the parts stay.
fn drop_body(change: &Transaction<'_>, id: i64) -> Result<(), KeptError> {
    let mut query = change.prepare_cached("SELECT body FROM entry WHERE id = ?1")?;
    let body: Vec<u8> = query.query_row(params![id], |row| row.get(0))?;
    // Of a damaged one nothing is known.
    let parts = parts_in(&body).map_or(&[][..], |(_, bytes)| bytes);
    let drop = "UPDATE entry SET parts = ?2, body = NULL WHERE id = ?1";
    change.prepare_cached(drop)?.execute(params![id, parts])?;
    Ok(())
}

/// Of the entries without a result only so many stay, and the places of those.
fn forget_evicted(change: &Transaction<'_>, entries_max: u64) -> Result<(), KeptError> {
    let mut count = change.prepare_cached("SELECT count(*) FROM entry WHERE body IS NULL")?;
    let evicted: u64 = count.query_row([], |row| row.get(0))?;
    let Some(excess) = evicted.checked_sub(entries_max).filter(|n| *n > 0) else {
        return Ok(());
    };
    change.execute(
        "DELETE FROM entry WHERE id IN
         (SELECT id FROM entry WHERE body IS NULL ORDER BY used_s, id LIMIT ?1)",
        params![excess],
    )?;
    change.execute(
        "DELETE FROM place WHERE key NOT IN (SELECT key FROM entry)",
        [],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the entries without a result, or of places.
    fn numbers(change: &Transaction<'_>, query: &str) -> Vec<i64> {
        let mut query = change.prepare(query).unwrap();
        let rows = query.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn of_evicted_entries_only_the_last_used_stay_and_their_places() {
        let home = tempfile::tempdir().unwrap();
        let mut kept = KeptResults::open(&home.path().join("kept")).unwrap();
        let (change, _) = kept.change_with_objects().unwrap();
        for number in 1..=5 {
            let add =
                "INSERT INTO entry VALUES (?1, ?1, 10 - ?1, 0, 0, 'run', 'f', x'', x'', NULL)";
            change.execute(add, params![number]).unwrap();
            let add = "INSERT INTO place VALUES (?1, ?1)";
            change.execute(add, params![number]).unwrap();
        }
        for (entries_max, rest) in [(5, &[1, 2, 3, 4, 5][..]), (2, &[1, 2])] {
            forget_evicted(&change, entries_max).unwrap();
            assert_eq!(numbers(&change, "SELECT id FROM entry ORDER BY id"), rest);
            assert_eq!(
                numbers(&change, "SELECT place FROM place ORDER BY place"),
                rest
            );
        }
    }
}
