//! Which kept results are meant: by their last use, run, task, or what exceeds a size.
//!
//! It does not know runs that live; whoever cleans says from when on results are spared. Read next:
//! `store`.

use std::collections::{BTreeMap, BTreeSet};

use ciel_model::Digest;
use rusqlite::params;

use crate::error::KeptError;
use crate::eviction::{Evicted, Removed};
use crate::limits::EVICTED_AT_ONCE;
use crate::store::{KeptResults, Usage};

/// Conditions on kept results; all that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Last used before then, in seconds since 1970.
    pub used_before_s: Option<u64>,
    /// Kept by the run with this id.
    pub run: Option<String>,
    /// Of the function or command of this name.
    pub task: Option<String>,
    /// Only what has objects, and of that only these.
    pub bytes_only: bool,
    /// Those that were not used for longest, until at most so many bytes are kept in all.
    pub bytes_max: Option<u64>,
    /// Whatever was used from then on is not meant, in seconds since 1970: a run may need it.
    pub spared_since_s: Option<u64>,
}

/// An entry that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its number in the index.
    id: i64,
    /// The function or command.
    pub task: String,
    /// The run that kept it.
    pub run: String,
    /// When it was used last, in seconds since 1970; uses within a minute count as one.
    pub used_s: u64,
    /// Bytes that its removal frees: of it and its objects, or of these alone.
    pub bytes: u64,
}

impl KeptResults {
    /// The entries that are meant, those that were not used for longest first.
    ///
    /// # Errors
    /// Those of the index.
    pub fn select(&self, selection: &Selection) -> Result<Vec<Chosen>, KeptError> {
        self.index_pending()?;
        let mut query = self.connection().prepare_cached(
            "SELECT id, task, run, used_s, bytes - ?5 * length(body) FROM entry
             WHERE body IS NOT NULL
               AND (?1 IS NULL OR used_s < ?1)
               AND (?2 IS NULL OR run = ?2)
               AND (?3 IS NULL OR task = ?3)
               AND (?4 IS NULL OR used_s < ?4)
               AND (?5 = 0 OR id IN (SELECT entry FROM holds))
             ORDER BY used_s, id",
        )?;
        let Selection {
            used_before_s,
            run,
            task,
            bytes_only,
            bytes_max,
            spared_since_s,
        } = selection;
        let conditions = params![used_before_s, run, task, spared_since_s, bytes_only];
        let rows = query.query_map(conditions, |row| {
            Ok(Chosen {
                id: row.get(0)?,
                task: row.get(1)?,
                run: row.get(2)?,
                used_s: row.get(3)?,
                bytes: row.get(4)?,
            })
        })?;
        let mut chosen: Vec<Chosen> = rows.collect::<Result<_, _>>()?;
        if let Some(bytes_max) = bytes_max {
            let mut excess = self.usage()?.bytes.saturating_sub(*bytes_max);
            chosen.retain(|one| {
                let is_excess = excess > 0;
                excess = excess.saturating_sub(one.bytes);
                is_excess
            });
        }
        Ok(chosen)
    }

    /// Removes these results, or only their objects; what another process has removed or replaced
    /// meanwhile is left out.
    ///
    /// # Errors
    /// Those of files and index.
    pub fn remove(&mut self, chosen: &[Chosen], what: Removed) -> Result<Evicted, KeptError> {
        let mut removed = Evicted::default();
        for some in chosen.chunks(EVICTED_AT_ONCE as usize) {
            let some: Vec<(i64, u64)> = some.iter().map(|one| (one.id, one.bytes)).collect();
            removed.add(self.evict_these(&some, what)?);
        }
        self.forget_begun()?;
        Ok(removed)
    }

    /// The keys of the results that a run has kept and that are still there.
    ///
    /// # Errors
    /// Those of the index.
    pub fn keys_of_run(&self, run: &str) -> Result<BTreeSet<Digest>, KeptError> {
        self.index_pending()?;
        let mut query = self
            .connection()
            .prepare_cached("SELECT key FROM entry WHERE run = ?1 AND body IS NOT NULL")?;
        let rows = query.query_map(params![run], |row| row.get::<_, [u8; 16]>(0))?;
        let keys = rows.map(|row| row.map(|key| Digest(u128::from_be_bytes(key))));
        Ok(keys.collect::<Result<_, _>>()?)
    }

    /// Whether some of the results were unpacked from an archive.
    ///
    /// # Errors
    /// Those of the index.
    pub fn has_unpacked(&self) -> Result<bool, KeptError> {
        let mut query = self
            .connection()
            .prepare_cached("SELECT 1 FROM entry WHERE run = 'unpacked' LIMIT 1")?;
        Ok(query.exists([])?)
    }

    /// How much each run has kept that is still there, by its id.
    ///
    /// # Errors
    /// Those of the index.
    pub fn usage_by_run(&self) -> Result<BTreeMap<String, Usage>, KeptError> {
        self.index_pending()?;
        let mut query = self.connection().prepare_cached(
            "SELECT run, count(*), sum(bytes) FROM entry WHERE body IS NOT NULL GROUP BY run",
        )?;
        let rows = query.query_map([], |row| {
            let (entries, bytes) = (row.get(1)?, row.get(2)?);
            Ok((row.get(0)?, Usage { entries, bytes }))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
