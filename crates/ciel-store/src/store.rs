//! The door to objects: immutable bytes, each written once and whole under a name known beforehand.
//!
//! What keeps them is behind [`ObjectStore`]: files of a run's folder ([`crate::FileObjects`]), or
//! the memory of this process ([`crate::MemoryObjects`]). It does not know who wants an object, nor
//! when no caller does any more: callers say so by `retain` and `release`. Read next: `objects`.

use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ciel_model::Digest;

use crate::error::StoreError;
use crate::values::{Location, LostObject, Object, ObjectName};

/// An object that is being written. Dropping it discards the bytes.
pub trait Draft: fmt::Debug {
    /// Writes the next bytes.
    ///
    /// # Errors
    /// `DiskFull`, `System`; the draft is of no use after these.
    fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError>;

    /// Makes an object of all bytes so far. Sealing a name again keeps the first object.
    ///
    /// # Errors
    /// `Full`, `DiskFull`, `System`; `ObjectDiffers` if the name has an object of another length.
    fn seal(self: Box<Self>) -> Result<Object, StoreError>;
}

/// Keeps objects. Any thread may use it.
///
/// An object exists from the moment it is sealed or adopted until it is released. Its bytes are
/// compared with its digest once in the life of a process: at its first use, if another process
/// wrote them.
pub trait ObjectStore: fmt::Debug + Send + Sync {
    /// Begins an object that is written piece by piece. It is invisible before it is sealed, and
    /// nothing is left of one that never is.
    ///
    /// # Errors
    /// `DiskFull`, `ReadOnly`, `System`.
    fn open(&self, name: ObjectName) -> Result<Box<dyn Draft + '_>, StoreError>;

    /// Makes an object of a whole file at a path given by [`crate::Scratch::path`], without copying
    /// it if possible; the path is free afterwards. Adopting a name again keeps the first object.
    ///
    /// # Errors
    /// `ForeignScratch`, `NotAFile`, `Full`; `ObjectDiffers` if the name has an object of another
    /// length. The file is still there after these.
    fn adopt(&self, name: ObjectName, path: &Path) -> Result<Object, StoreError>;

    /// Makes an object of a whole file at such a path, which has that digest: the caller has just
    /// compared them. The file may have other names; it is never written through any of them.
    ///
    /// # Errors
    /// As [`ObjectStore::adopt`].
    fn adopt_known(
        &self,
        name: ObjectName,
        path: &Path,
        digest: Digest,
    ) -> Result<Object, StoreError>;

    /// The bytes of an object, shared rather than copied. They stay readable after its release.
    ///
    /// # Errors
    /// `UnknownObject`; `DamagedObject` or `ChangedObject` if the bytes are not those that were
    /// sealed.
    fn map(&self, name: ObjectName) -> Result<Bytes, StoreError>;

    /// A path at which other processes of this machine can read an object until its release.
    ///
    /// # Errors
    /// As [`ObjectStore::map`].
    fn share(&self, name: ObjectName) -> Result<PathBuf, StoreError>;

    /// Where an object is; none if there is no such object. The bytes are not looked at.
    fn location(&self, name: ObjectName) -> Option<Location>;

    /// Compares the bytes of an object with its digest now. An object without a digest has only its
    /// length to be compared. Changed bytes are discarded, so that no reader gets them later.
    ///
    /// # Errors
    /// As [`ObjectStore::map`].
    fn verify(&self, name: ObjectName) -> Result<(), StoreError>;

    /// Looks at the files of all objects: those that are gone, or have other bytes than they had,
    /// are discarded; returns their names, with those of objects that were discarded at a use since
    /// the last search. Bytes are read of what was written to since its last use, and of nothing
    /// else.
    fn find_lost(&self) -> Vec<ObjectName>;

    /// Recovers the objects that an earlier process of the run has left: exactly `known`. Returns
    /// those that are missing or changed, in the order of `known`; everything else is removed, so
    /// this comes before anything is written. Up to `verified_bytes_max` bytes are compared with
    /// their digests at once, short objects first, the others at their first use.
    ///
    /// # Errors
    /// `ReadOnly` or `System` if what was left cannot be read or removed.
    fn retain(
        &self,
        known: &[Object],
        verified_bytes_max: u64,
    ) -> Result<Vec<LostObject>, StoreError>;

    /// Discards an object; returns whether it existed.
    ///
    /// # Errors
    /// `ReadOnly`, `System`.
    fn release(&self, name: ObjectName) -> Result<bool, StoreError>;

    /// Makes an object of complete bytes. Putting a name again keeps the first object.
    ///
    /// # Errors
    /// Those of opening, appending and sealing.
    fn put(&self, name: ObjectName, bytes: &[u8]) -> Result<Object, StoreError> {
        let mut draft = self.open(name)?;
        draft.append(bytes)?;
        draft.seal()
    }
}
