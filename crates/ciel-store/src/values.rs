//! The values of the store's interface: names, objects, extents.
//!
//! It does not know where bytes are kept. Read next: `store`.

use std::fmt;
use std::path::{Path, PathBuf};

use ciel_model::Digest;

/// The name of an object, decided before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectName(pub u128);

impl ObjectName {
    /// The object whose file has that path, as the store gives paths to other processes; none if it
    /// can be the path of none.
    pub fn of_path(path: &Path) -> Option<ObjectName> {
        let name = path.file_name()?.to_str()?;
        let number = u128::from_str_radix(name, 16).ok()?;
        Some(ObjectName(number)).filter(|object| object.to_string() == name)
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

/// An object that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// Its name.
    pub name: ObjectName,
    /// Number of its bytes.
    pub length: u64,
    /// The digest of its bytes, if it was computed.
    pub digest: Option<Digest>,
}

/// An object that was known and is no longer as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostObject {
    /// Its name.
    pub name: ObjectName,
    /// Number of its bytes, as it was known.
    pub expected: u64,
    /// Bytes found; none if there was nothing. As many as expected if they are other bytes.
    pub found: Option<u64>,
}

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Number of its bytes.
    pub length: u64,
    /// What holds them.
    pub place: Place,
}

/// What holds the bytes of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The memory of this process.
    Memory,
    /// A file of this machine.
    File(PathBuf),
}

/// Bytes in a spill file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Number of the file.
    pub blob: u64,
    /// First byte in it.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}
