//! The tables of the index.
//!
//! `entry` has a row for each key; one without a body was evicted. `holds` says which objects an
//! entry needs, `place` which key the task at a position had last, `begun` which positions had a
//! task that was not kept and whether it ended well, `begun_before` which had one before these,
//! `file` the digests of the user's files, and `pending` what is not in these yet. The parts of an
//! entry are the beginning of its body, and stand alone where that is gone. It does not know what a
//! body says. Read next: `pending`.

use std::fs::File;
use std::path::Path;

use ciel_model::Digest;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::error::KeptError;
use crate::limits;

/// The version of the tables and of the bodies in them; an index of another one is emptied.
const FORMAT: i64 = 6;

/// Tables that an index of this format may lack. What waits to be put into the other tables has its
/// long column last, so that a look at the others reads no more.
const ADDED: &str = "
    CREATE TABLE IF NOT EXISTS pending (
        id INTEGER PRIMARY KEY,
        now_s INTEGER NOT NULL,
        entries INTEGER NOT NULL,
        check_digest BLOB NOT NULL,
        notes BLOB NOT NULL
    );
    CREATE TABLE IF NOT EXISTS begun_before (place BLOB PRIMARY KEY, ended INTEGER NOT NULL)
        WITHOUT ROWID;
";

/// What `begun` has goes to `begun_before`, and what that had is gone.
const RENEW_BEGUN: &str = "
    DROP TABLE begun_before;
    ALTER TABLE begun RENAME TO begun_before;
    CREATE TABLE begun (place BLOB PRIMARY KEY, ended INTEGER NOT NULL) WITHOUT ROWID;
";

const TABLES: &str = "
    CREATE TABLE entry (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE,
        used_s INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        marked INTEGER NOT NULL,
        run TEXT NOT NULL,
        task TEXT NOT NULL,
        check_digest BLOB NOT NULL,
        parts BLOB NOT NULL,
        body BLOB
    );
    CREATE INDEX entry_by_use ON entry (used_s) WHERE body IS NOT NULL;
    CREATE INDEX entry_unpacked ON entry (run) WHERE run = 'unpacked';
    CREATE TABLE holds (
        digest BLOB NOT NULL,
        entry INTEGER NOT NULL,
        PRIMARY KEY (digest, entry)
    ) WITHOUT ROWID;
    CREATE INDEX held_by_entry ON holds (entry);
    CREATE TABLE place (place BLOB PRIMARY KEY, key BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE begun (place BLOB PRIMARY KEY, ended INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE file (path TEXT PRIMARY KEY, stamp BLOB NOT NULL, digest BLOB NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE total (bytes INTEGER NOT NULL, entries INTEGER NOT NULL);
    INSERT INTO total VALUES (0, 0);
";

/// Opens the index, and makes one if there is none of this format.
pub(crate) fn open(path: &Path) -> Result<Connection, KeptError> {
    let mut index = Connection::open_with_flags(path, OpenFlags::default())?;
    index.busy_timeout(limits::BUSY_WAIT_MAX)?;
    // What a power failure takes is recomputed; a killed process loses nothing.
    use_log(&index, path)?;
    index.pragma_update(None, "synchronous", "OFF")?;
    // Negative: in KiB, not in pages.
    index.pragma_update(None, "cache_size", -limits::INDEX_CACHE_KIB)?;
    index.pragma_update(None, "wal_autocheckpoint", limits::INDEX_LOG_PAGES)?;
    index.set_prepared_statement_cache_capacity(32);
    if format(&index)? != FORMAT || !has_added(&index)? {
        make_tables(&mut index)?;
    }
    Ok(index)
}

/// Changes a new index to its log, for which it has to be alone with it. There `sqlite` does not
/// wait for others that open it, so they take turns by a lock of their folder.
fn use_log(index: &Connection, path: &Path) -> Result<(), KeptError> {
    let folder = path.parent().unwrap_or(path);
    let failed = |source| KeptError::file("lock", folder, source);
    let turn = File::open(folder).map_err(failed)?;
    turn.lock().map_err(failed)?;
    Ok(index.execute_batch("PRAGMA journal_mode = WAL")?)
}

/// A digest as the tables have it.
pub(crate) fn blob(digest: Digest) -> Vec<u8> {
    digest.0.to_be_bytes().to_vec()
}

fn format(index: &Connection) -> Result<i64, KeptError> {
    Ok(index.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

fn has_added(index: &Connection) -> Result<bool, KeptError> {
    let count = "SELECT count(*) FROM sqlite_schema WHERE name IN ('pending', 'begun_before')";
    Ok(index.query_row(count, [], |row| row.get::<_, u64>(0))? == 2)
}

/// Whether `begun` has more than so many rows.
pub(crate) fn has_begun_beyond(index: &Connection, rows_max: u64) -> Result<bool, KeptError> {
    let mut query = index.prepare_cached("SELECT 1 FROM begun LIMIT 1 OFFSET ?1")?;
    Ok(query.exists([rows_max])?)
}

/// Whether `begun_before` has rows.
pub(crate) fn has_begun_before(index: &Connection) -> Result<bool, KeptError> {
    let mut query = index.prepare_cached("SELECT 1 FROM begun_before LIMIT 1")?;
    Ok(query.exists([])?)
}

/// Makes `begun` empty, and `begun_before` what it was.
pub(crate) fn renew_begun(change: &Transaction<'_>) -> Result<(), KeptError> {
    Ok(change.execute_batch(RENEW_BEGUN)?)
}

fn make_tables(index: &mut Connection) -> Result<(), KeptError> {
    let making = index.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have made them meanwhile.
    if format(&making)? != FORMAT {
        for table in [
            "entry",
            "holds",
            "place",
            "begun",
            "begun_before",
            "file",
            "total",
            "pending",
        ] {
            making.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
        }
        making.execute_batch(TABLES)?;
        making.pragma_update(None, "user_version", FORMAT)?;
    }
    making.execute_batch(ADDED)?;
    Ok(making.commit()?)
}
