//! The folder of kept results.
//!
//! Many processes use it at once: each change is one transaction of the index, and files of objects
//! are linked and removed inside such a transaction, so an entry never needs an object that another
//! process has just removed. Whoever finds an entry links its objects into a place of their own;
//! therefore nothing has to be leased. It does not know when a result may be used: that follows
//! from its key. Read next: `entry`, `schema`, `writing`, `eviction`.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::{Path, PathBuf};

use ciel_model::{Digest, RerunReason};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::entry::{Entry, Parts};
use crate::error::KeptError;
use crate::holdings::drop_objects;
use crate::limits::USE_NOTED_AFTER_S;
use crate::objects::{Objects, digest_of};
use crate::schema::{self, blob};
use crate::writing::{Writing, encoded, parts_in};

/// Results that are kept in a folder.
pub struct KeptResults {
    folder: PathBuf,
    index: Connection,
    objects: Objects,
    /// Lookups see the index as it was when this became true.
    is_held: Cell<bool>,
    /// Something was looked up.
    pub(crate) has_looked: Cell<bool>,
    /// Entries that were used, by their numbers, with the second of their last use.
    used: RefCell<Vec<(i64, u64)>>,
    /// Where the next row of notes is put together: fresh memory for each costs as much as its
    /// bytes.
    pub(crate) row: Vec<u8>,
}

impl fmt::Debug for KeptResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.objects.fmt(f)
    }
}

/// What there is for a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Its result.
    Entry(Box<Entry>),
    /// Nothing, because of this.
    Nothing(RerunReason),
}

/// How a task has ended well whose result is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It, or a task beneath it, did what taking the result would not repeat.
    Impurely = 1,
    /// Its result cannot be kept.
    Unkept = 2,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Entries with a result.
    pub entries: u64,
    /// Bytes of their bodies and objects; an object of several entries counts for each.
    pub bytes: u64,
}

impl KeptResults {
    /// Opens the results in a folder, which is made if there is none.
    ///
    /// # Errors
    /// Those of the folder and of the index; an index that is damaged as a whole is one.
    pub fn open(folder: &Path) -> Result<KeptResults, KeptError> {
        let objects = Objects::open(folder.join("objects"))?;
        let index = schema::open(&folder.join("index"))?;
        Ok(KeptResults {
            folder: folder.to_path_buf(),
            index,
            objects,
            is_held: Cell::default(),
            has_looked: Cell::default(),
            used: RefCell::default(),
            row: Vec::new(),
        })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// From now on lookups see the index as it is with the first of them, until it is let go or
    /// changed by this process: many lookups cost less together than alone.
    ///
    /// # Errors
    /// Those of the index.
    pub fn hold(&self) -> Result<(), KeptError> {
        if !self.is_held.get() {
            self.prepare_look()?;
            self.index.prepare_cached("BEGIN")?.execute([])?;
            self.is_held.set(true);
        }
        Ok(())
    }

    /// Whoever looks finds all that was noted.
    fn prepare_look(&self) -> Result<(), KeptError> {
        self.has_looked.set(true);
        self.index_pending()
    }

    /// Lookups see again what other processes change.
    ///
    /// # Errors
    /// Those of the index.
    pub fn let_go(&self) -> Result<(), KeptError> {
        if self.is_held.get() {
            self.index.prepare_cached("COMMIT")?.execute([])?;
            self.is_held.set(false);
        }
        Ok(())
    }

    /// What is kept for a task at `place`; the result was used at `now_s`, in seconds since 1970,
    /// which is written down with [`KeptResults::note_uses`]. All of `parts` stand for the task,
    /// which are those of different surroundings; the first that finds something counts.
    ///
    /// # Errors
    /// Those of the index.
    pub fn find(&self, parts: &[Parts], place: Digest, now_s: u64) -> Result<Found, KeptError> {
        self.look(parts, place, Some(now_s))
    }

    /// The same for who does not use the result: no use is noted.
    ///
    /// # Errors
    /// Those of the index.
    pub fn peek(&self, parts: &[Parts], place: Digest) -> Result<Found, KeptError> {
        self.look(parts, place, None)
    }

    /// The result under a key; none if there is none or it is damaged. No use is noted.
    ///
    /// # Errors
    /// Those of the index.
    pub fn entry(&self, key: Digest) -> Result<Option<Entry>, KeptError> {
        Ok(match self.under(key, None)? {
            Some(Under::Entry(entry)) => Some(*entry),
            Some(Under::Evicted | Under::Damaged) | None => None,
        })
    }

    /// Whether an entry has dropped its objects: it only says what they were.
    ///
    /// # Errors
    /// Those of the index.
    pub fn has_dropped_bytes(&self, entry: &Entry) -> Result<bool, KeptError> {
        if entry.objects().next().is_none() {
            return Ok(false);
        }
        let mut query = self.index.prepare_cached(
            "SELECT 1 FROM holds JOIN entry ON id = entry WHERE key = ?1 LIMIT 1",
        )?;
        Ok(!query.exists(params![blob(entry.parts.key())])?)
    }

    /// Whether all objects of an entry are there and whole.
    pub fn has_objects(&self, entry: &Entry) -> bool {
        let mut objects = entry.objects();
        objects.all(|(digest, length)| self.objects.is_whole(digest, length))
    }

    fn look(&self, parts: &[Parts], place: Digest, now_s: Option<u64>) -> Result<Found, KeptError> {
        let mut reason = None;
        for parts in parts {
            match self.under(parts.key(), now_s)? {
                Some(Under::Entry(entry)) => return Ok(Found::Entry(entry)),
                Some(Under::Evicted) => reason = reason.or(Some(RerunReason::Evicted)),
                Some(Under::Damaged) => reason = reason.or(Some(RerunReason::Damaged)),
                None => {}
            }
        }
        let reason = match reason {
            Some(reason) => reason,
            None => self.reason(parts, place)?,
        };
        Ok(Found::Nothing(reason))
    }

    /// What there is under a key; a use at `now_s` is noted.
    fn under(&self, key: Digest, now_s: Option<u64>) -> Result<Option<Under>, KeptError> {
        self.prepare_look()?;
        let mut query = self
            .index
            .prepare_cached("SELECT id, used_s, check_digest, body FROM entry WHERE key = ?1")?;
        let row = query.query_row(params![blob(key)], |row| {
            Ok(Row {
                id: row.get(0)?,
                used_s: row.get(1)?,
                check: row.get(2)?,
                body: row.get(3)?,
            })
        });
        let Some(Row {
            id,
            used_s,
            check,
            body,
        }) = row.optional()?
        else {
            return Ok(None);
        };
        let Some(body) = body else {
            return Ok(Some(Under::Evicted));
        };
        let entry = (check == blob(Digest::of(&body))).then(|| postcard::from_bytes(&body));
        let Some(Ok(entry)) = entry else {
            return Ok(Some(Under::Damaged));
        };
        let entry: Entry = entry;
        if entry.parts.key() != key {
            return Ok(Some(Under::Damaged));
        }
        if let Some(now_s) = now_s.filter(|now_s| used_s + USE_NOTED_AFTER_S <= *now_s) {
            self.used.borrow_mut().push((id, now_s));
        }
        Ok(Some(Under::Entry(Box::new(entry))))
    }

    /// Writes down which entries were used since the last time.
    ///
    /// # Errors
    /// Those of the index.
    pub fn note_uses(&mut self) -> Result<(), KeptError> {
        let used = self.used.take();
        if used.is_empty() {
            return Ok(());
        }
        let change = self.change()?;
        for (id, used_s) in used {
            change
                .prepare_cached("UPDATE entry SET used_s = ?2 WHERE id = ?1")?
                .execute(params![id, used_s])?;
        }
        Ok(change.commit()?)
    }

    /// Why there is nothing under the keys of a task. What its place says of a task that was not
    /// kept is newer than what it says of one that was.
    fn reason(&self, parts: &[Parts], place: Digest) -> Result<RerunReason, KeptError> {
        let mut query = self.index.prepare_cached(
            "SELECT coalesce((SELECT ended FROM begun WHERE place = ?1),
                             (SELECT ended FROM begun_before WHERE place = ?1))",
        )?;
        let ended = query.query_row(params![blob(place)], |row| row.get::<_, Option<i64>>(0));
        Ok(match ended? {
            Some(ended) if ended == Ended::Impurely as i64 => RerunReason::Impure,
            Some(ended) if ended == Ended::Unkept as i64 => RerunReason::NotKept,
            begun => self.change_since(parts, place)?.unwrap_or(match begun {
                Some(_) => RerunReason::NeverFinished,
                None => RerunReason::New,
            }),
        })
    }

    /// What is another since a result of the task at a place was kept; none if there was none.
    fn change_since(
        &self,
        parts: &[Parts],
        place: Digest,
    ) -> Result<Option<RerunReason>, KeptError> {
        let mut query = self.index.prepare_cached(
            "SELECT CASE parts WHEN x'' THEN body ELSE parts END
             FROM entry JOIN place USING (key) WHERE place = ?1",
        )?;
        let row = query.query_row(params![blob(place)], |row| row.get::<_, Vec<u8>>(0));
        let before = row.optional()?;
        let before = before.and_then(|bytes| Some(parts_in(&bytes)?.0));
        Ok(before.and_then(|before| {
            let mut like = parts.iter();
            let like = like.find(|one| one.surroundings == before.surroundings);
            let now = like.or(parts.first())?;
            before.is_of_function(now).then(|| before.diff(now))?
        }))
    }

    /// Links an object to a path where nothing is yet. False if it is missing or damaged: then the
    /// entry that names it is of no use.
    ///
    /// # Errors
    /// Those of the file.
    pub fn take(&self, digest: Digest, length: u64, target: &Path) -> Result<bool, KeptError> {
        self.objects.take(digest, length, target)
    }

    /// Where the object with that digest is, if it is kept.
    pub fn object(&self, digest: Digest) -> PathBuf {
        self.objects.path(digest)
    }

    /// The digest of a file, for those who know none.
    ///
    /// # Errors
    /// Those of reading.
    pub fn digest_of(path: &Path) -> Result<Digest, KeptError> {
        digest_of(path).map_err(|source| KeptError::file("read", path, source))
    }

    /// Whether the task at a place had another key when it last ended well, or none.
    ///
    /// # Errors
    /// Those of the index.
    pub fn is_news(&self, place: Digest, parts: &Parts) -> Result<bool, KeptError> {
        self.prepare_look()?;
        let mut query = self
            .index
            .prepare_cached("SELECT 1 FROM place WHERE place = ?1 AND key = ?2")?;
        Ok(!query.exists(params![blob(place), blob(parts.key())])?)
    }

    /// Tasks at these places have taken the results under these keys.
    ///
    /// # Errors
    /// Those of the index.
    pub fn note_taken(&mut self, taken: &[(Digest, Digest)]) -> Result<(), KeptError> {
        let writing = Writing::new(self.change()?)?;
        for (place, key) in taken {
            writing.put_place(*place, &blob(*key))?;
        }
        writing.commit()
    }

    /// Tasks at these places begin: until they are kept they count as never finished.
    ///
    /// # Errors
    /// Those of the index.
    pub fn begin(&mut self, places: &[Digest]) -> Result<(), KeptError> {
        let change = self.change()?;
        {
            let mut add = change.prepare_cached("INSERT OR REPLACE INTO begun VALUES (?1, 0)")?;
            for place in places {
                add.execute(params![blob(*place)])?;
            }
        }
        Ok(change.commit()?)
    }

    /// Tasks at these places have ended well, and their results are not kept.
    ///
    /// # Errors
    /// Those of the index.
    pub fn note_unkept(&mut self, places: &[(Digest, Ended)]) -> Result<(), KeptError> {
        let change = self.change()?;
        {
            let mut add = change.prepare_cached("INSERT OR REPLACE INTO begun VALUES (?1, ?2)")?;
            for (place, ended) in places {
                add.execute(params![blob(*place), *ended as i64])?;
            }
        }
        Ok(change.commit()?)
    }

    /// Keeps results, all in one transaction, as used at `now_s`. Beside each entry stand the files
    /// of its objects, in the order of its outputs; of an entry with objects and without any file
    /// only their digests are kept, as of one that has dropped its bytes.
    ///
    /// # Errors
    /// Those of files and index; then none of them is kept.
    pub fn keep(&mut self, batch: &[(Entry, Vec<PathBuf>)], now_s: u64) -> Result<(), KeptError> {
        let (change, objects) = self.change_with_objects()?;
        let mut writing = Writing::new(change)?;
        let keyed = batch.iter().enumerate();
        let mut keyed: Vec<_> = keyed
            .map(|(number, (entry, files))| (entry.parts.key(), number, entry, files))
            .collect();
        // What is written in the order of an index finds most of its pages at hand.
        keyed.sort_unstable_by_key(|(key, number, ..)| (*key, *number));
        for (key, _, entry, files) in &keyed {
            let held: Vec<_> = entry.objects().take(files.len()).collect();
            let is_whole = files.is_empty() || held.len() == entry.objects().count();
            debug_assert!(is_whole, "each object has its file, or none has one");
            for ((digest, length), file) in held.iter().zip(*files) {
                objects.add(*digest, *length, file)?;
            }
            let body = encoded(entry);
            writing.put(objects, (*key, entry, &body), &held, now_s)?;
        }
        keyed.sort_unstable_by_key(|(_, number, entry, _)| (entry.place, *number));
        for (key, _, entry, _) in &keyed {
            writing.put_place(entry.place, &blob(*key))?;
        }
        writing.commit()
    }

    /// How much is kept.
    ///
    /// # Errors
    /// Those of the index.
    pub fn usage(&self) -> Result<Usage, KeptError> {
        self.index_pending()?;
        let mut query = self
            .index
            .prepare_cached("SELECT entries, bytes FROM total")?;
        Ok(query.query_row([], |row| {
            Ok(Usage {
                entries: row.get(0)?,
                bytes: row.get(1)?,
            })
        })?)
    }

    /// Compares all entries and objects with their digests, and removes those that differ; gives
    /// how many entries are gone.
    ///
    /// # Errors
    /// Those of files and index.
    pub fn verify(&mut self) -> Result<u64, KeptError> {
        self.index_pending()?;
        let mut query = self
            .index
            .prepare("SELECT key, check_digest, body FROM entry WHERE body IS NOT NULL")?;
        let mut rows = query.query([])?;
        let mut damaged: Vec<Vec<u8>> = Vec::new();
        while let Some(row) = rows.next()? {
            let (check, body): (Vec<u8>, Vec<u8>) = (row.get(1)?, row.get(2)?);
            let entry = postcard::from_bytes::<Entry>(&body).ok();
            let is_whole = match entry.filter(|_| check == blob(Digest::of(&body))) {
                Some(entry) => self.has_objects(&entry) || self.has_dropped_bytes(&entry)?,
                None => false,
            };
            if !is_whole {
                damaged.push(row.get(0)?);
            }
        }
        drop(rows);
        drop(query);
        for key in &damaged {
            self.forget(key)?;
        }
        Ok(damaged.len() as u64)
    }

    /// Removes an entry that turned out to be damaged, by its parts.
    ///
    /// # Errors
    /// Those of files and index.
    pub fn discard(&mut self, parts: &Parts) -> Result<(), KeptError> {
        self.forget(&blob(parts.key()))
    }

    fn forget(&mut self, key: &[u8]) -> Result<(), KeptError> {
        let (change, objects) = self.change_with_objects()?;
        let row = change.query_row(
            "SELECT id, bytes FROM entry WHERE key = ?1 AND body IS NOT NULL",
            params![key],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, u64>(1)?)),
        );
        if let Some((id, bytes)) = row.optional()? {
            drop_objects(&change, objects, id)?;
            change.execute("DELETE FROM entry WHERE id = ?1", params![id])?;
            change.execute(
                "UPDATE total SET entries = entries - 1, bytes = bytes - ?1",
                params![bytes],
            )?;
        }
        Ok(change.commit()?)
    }

    /// The index, for what is beside the entries.
    pub(crate) fn connection(&self) -> &Connection {
        &self.index
    }

    /// Whether lookups see the index as it was.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held.get()
    }

    /// The objects.
    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// A transaction, and the objects whose files are linked and removed inside it.
    pub(crate) fn change_with_objects(&mut self) -> Result<(Transaction<'_>, &Objects), KeptError> {
        self.let_go()?;
        self.index_pending()?;
        let behavior = TransactionBehavior::Immediate;
        let change = self.index.transaction_with_behavior(behavior)?;
        Ok((change, &self.objects))
    }

    fn change(&mut self) -> Result<Transaction<'_>, KeptError> {
        Ok(self.change_with_objects()?.0)
    }
}

/// What there is under a key.
enum Under {
    Entry(Box<Entry>),
    Evicted,
    Damaged,
}

/// An entry in the index.
struct Row {
    id: i64,
    used_s: u64,
    check: Vec<u8>,
    /// None if it was evicted.
    body: Option<Vec<u8>>,
}
