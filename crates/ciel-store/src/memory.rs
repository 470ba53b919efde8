//! Objects in the memory of this process, for tests and for runs that leave nothing behind.
//!
//! It keeps the contract of [`ObjectStore`] without a disk, and can be damaged on purpose. What it
//! shares with other processes is a file without a name. Read next: `store`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use ciel_model::Digest;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::budget::Budget;
use crate::counts::Kind;
use crate::error::StoreError;
use crate::store::{Draft, ObjectStore};
use crate::values::{Location, LostObject, Object, ObjectName, Place};

/// Objects that end with this process.
#[derive(Debug)]
pub struct MemoryObjects {
    budget: Budget,
    kept: Mutex<BTreeMap<ObjectName, Kept>>,
}

#[derive(Debug)]
struct Kept {
    object: Object,
    /// None if they were lost on purpose.
    bytes: Option<Bytes>,
    /// What other processes read.
    shared: Option<File>,
}

impl MemoryObjects {
    /// No objects, of at most `limit` bytes in all; `u64::MAX` for no limit.
    pub fn new(limit: u64) -> MemoryObjects {
        MemoryObjects {
            budget: Budget::new(limit),
            kept: Mutex::default(),
        }
    }

    /// Bytes in use.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Replaces the bytes of an object behind the back of the store, or takes them away.
    pub fn damage(&self, name: ObjectName, bytes: Option<Bytes>) {
        if let Some(kept) = self.kept().get_mut(&name) {
            kept.bytes = bytes;
        }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<ObjectName, Kept>> {
        self.kept.lock().expect("nobody panics with the objects")
    }

    /// The bytes are charged; they are refunded if they do not become an object.
    fn insert(&self, name: ObjectName, bytes: Bytes) -> Result<Object, StoreError> {
        let offered = bytes.len() as u64;
        let mut kept = self.kept();
        if let Some(held) = kept.get(&name) {
            self.budget.refund(Kind::Value, offered);
            let held = held.object;
            return match held.length == offered {
                true => Ok(held),
                false => Err(StoreError::ObjectDiffers {
                    name,
                    held: held.length,
                    offered,
                }),
            };
        }
        let object = Object {
            name,
            length: offered,
            digest: Some(Digest::of(&bytes)),
        };
        let (bytes, shared) = (Some(bytes), None);
        kept.insert(
            name,
            Kept {
                object,
                bytes,
                shared,
            },
        );
        Ok(object)
    }
}

impl Kept {
    fn bytes(&self) -> Result<Bytes, StoreError> {
        let Object { name, length, .. } = self.object;
        let found = self.bytes.as_ref().map(|bytes| bytes.len() as u64);
        match &self.bytes {
            Some(bytes) if found == Some(length) => Ok(bytes.clone()),
            _ => Err(StoreError::DamagedObject {
                name,
                expected: length,
                found,
            }),
        }
    }
}

fn no_memory(act: &'static str, error: std::io::Error) -> StoreError {
    StoreError::of_system(act, Path::new("memory"), error)
}

impl ObjectStore for MemoryObjects {
    fn open(&self, name: ObjectName) -> Result<Box<dyn Draft + '_>, StoreError> {
        Ok(Box::new(MemoryDraft {
            objects: self,
            name,
            bytes: Vec::new(),
        }))
    }

    fn adopt(&self, name: ObjectName, path: &Path) -> Result<Object, StoreError> {
        let not_a_file = || StoreError::NotAFile {
            path: path.to_path_buf(),
        };
        let found = fs::symlink_metadata(path).map_err(|_| not_a_file())?;
        if !found.is_file() {
            return Err(not_a_file());
        }
        let bytes = fs::read(path).map_err(|error| StoreError::of_system("read", path, error))?;
        self.budget.charge(Kind::Value, bytes.len() as u64)?;
        let object = self.insert(name, bytes.into())?;
        fs::remove_file(path).map_err(|error| StoreError::of_system("remove", path, error))?;
        Ok(object)
    }

    fn adopt_known(&self, name: ObjectName, path: &Path, _: Digest) -> Result<Object, StoreError> {
        self.adopt(name, path)
    }

    fn map(&self, name: ObjectName) -> Result<Bytes, StoreError> {
        let kept = self.kept();
        let kept = kept.get(&name).ok_or(StoreError::UnknownObject { name })?;
        kept.bytes()
    }

    fn share(&self, name: ObjectName) -> Result<PathBuf, StoreError> {
        let mut kept = self.kept();
        let kept = kept
            .get_mut(&name)
            .ok_or(StoreError::UnknownObject { name })?;
        let bytes = kept.bytes()?;
        if kept.shared.is_none() {
            let file = memfd_create("object", MemfdFlags::CLOEXEC);
            let mut file = File::from(file.map_err(|errno| no_memory("make", errno.into()))?);
            let written = file.write_all(&bytes);
            written.map_err(|error| no_memory("write", error))?;
            kept.shared = Some(file);
        }
        let number = kept.shared.as_ref().map(AsRawFd::as_raw_fd);
        let number = number.expect("made just now");
        Ok(format!("/proc/{}/fd/{number}", std::process::id()).into())
    }

    fn location(&self, name: ObjectName) -> Option<Location> {
        let length = self.kept().get(&name)?.object.length;
        Some(Location {
            length,
            place: Place::Memory,
        })
    }

    fn verify(&self, name: ObjectName) -> Result<(), StoreError> {
        let digest = Some(Digest::of(&self.map(name)?));
        let known = self.kept().get(&name).map(|kept| kept.object.digest);
        match known == Some(digest) {
            true => Ok(()),
            false => {
                self.release(name)?;
                Err(StoreError::ChangedObject { name })
            }
        }
    }

    /// Nobody else reaches these bytes.
    fn find_lost(&self) -> Vec<ObjectName> {
        Vec::new()
    }

    /// There is nothing that an earlier process could have left: what this one does not have is
    /// lost.
    fn retain(&self, known: &[Object], _: u64) -> Result<Vec<LostObject>, StoreError> {
        let names: Vec<ObjectName> = self.kept().keys().copied().collect();
        for name in names {
            if !known.iter().any(|object| object.name == name) {
                self.release(name)?;
            }
        }
        let mut lost = Vec::new();
        for object in known {
            let (name, expected) = (object.name, object.length);
            let found = self.map(name).ok().map(|bytes| bytes.len() as u64);
            if found != Some(expected) || self.verify(name).is_err() {
                lost.push(LostObject {
                    name,
                    expected,
                    found,
                });
            }
        }
        Ok(lost)
    }

    fn release(&self, name: ObjectName) -> Result<bool, StoreError> {
        let gone = self.kept().remove(&name);
        if let Some(kept) = &gone {
            self.budget.release(Kind::Value, kept.object.length);
        }
        Ok(gone.is_some())
    }
}

/// Bytes that grow.
#[derive(Debug)]
struct MemoryDraft<'a> {
    objects: &'a MemoryObjects,
    name: ObjectName,
    bytes: Vec<u8>,
}

impl Draft for MemoryDraft<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.objects
            .budget
            .charge(Kind::Value, bytes.len() as u64)?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn seal(mut self: Box<Self>) -> Result<Object, StoreError> {
        let bytes = std::mem::take(&mut self.bytes);
        self.objects.insert(self.name, bytes.into())
    }
}

impl Drop for MemoryDraft<'_> {
    fn drop(&mut self) {
        self.objects
            .budget
            .refund(Kind::Value, self.bytes.len() as u64);
    }
}
