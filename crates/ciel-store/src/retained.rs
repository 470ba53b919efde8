//! The objects that an earlier process of a run has left.
//!
//! Their names and lengths come from the records of the run; here it is compared with what is on
//! the disk. Read next: `digests`, for those of long files.

use std::collections::{HashMap, HashSet};

use ciel_model::Digest;
use rustix::fs::FileType;

use crate::content::Content;
use crate::counts::Kind;
use crate::digests::Part;
use crate::directory::Entry;
use crate::error::StoreError;
use crate::objects::FileObjects;
use crate::values::{LostObject, Object, ObjectName};

impl FileObjects {
    /// [`crate::ObjectStore::retain`]; the limit of the budget does not count here.
    pub(crate) fn take_up(
        &self,
        known: &[Object],
        verified_bytes_max: u64,
    ) -> Result<Vec<LostObject>, StoreError> {
        let late = self.late_digests();
        let with_digest = |object: &Object| Object {
            digest: object.digest.or_else(|| late.get(&object.name).copied()),
            ..*object
        };
        let known: Vec<Object> = known.iter().map(with_digest).collect();
        let changed = self.changed_among(&known, verified_bytes_max)?;
        let mut lost = Vec::new();
        for object in known {
            let (name, expected) = (object.name, object.length);
            match self.found(name)? {
                Some((in_memory, file)) if file.length == expected && !changed.contains(&name) => {
                    let found = Content {
                        in_memory,
                        stamp: self.reliable(Some(file.stamp)),
                        ..Content::found(file.length, object.digest)
                    };
                    self.count_in(name, found);
                }
                found => lost.push(LostObject {
                    name,
                    expected,
                    found: found.map(|(_, file)| file.length),
                }),
            }
        }
        self.remove_unknown()?;
        Ok(lost)
    }

    fn count_in(&self, name: ObjectName, found: Content) {
        if self.contents().insert(name, found).is_none() {
            self.budget.count(Kind::Recovered, found.length);
            if let Some(memory) = self.memory().filter(|_| found.in_memory) {
                memory.add(found.length);
            }
        }
    }

    /// The digests of long files, the newest of each.
    fn late_digests(&self) -> HashMap<ObjectName, Digest> {
        let digests = self.digests.read().into_iter();
        let of_object = |(part, digest)| match part {
            Part::Object(name) => Some((name, digest)),
            Part::Spilled(_) | Part::Released { .. } => None,
        };
        digests.filter_map(of_object).collect()
    }

    /// Removes all files but those of the objects.
    fn remove_unknown(&self) -> Result<(), StoreError> {
        let contents = self.contents();
        for in_memory in self.places() {
            let here = contents
                .iter()
                .filter(|(_, one)| one.in_memory == in_memory);
            let kept: HashSet<String> = here.map(|(name, _)| name.to_string()).collect();
            let directory = self.directory_for(in_memory);
            for name in directory.names()? {
                if !kept.contains(&name) {
                    directory.remove_all(&name)?;
                }
            }
        }
        Ok(())
    }

    /// Whether files may be on the disk, and in memory.
    fn places(&self) -> impl Iterator<Item = bool> {
        std::iter::once(false).chain(self.memory().map(|_| true))
    }

    /// Whether the file of an object is in memory, and what it is.
    fn found(&self, name: ObjectName) -> Result<Option<(bool, Entry)>, StoreError> {
        for in_memory in self.places() {
            let entry = self.directory_for(in_memory).entry(&name.to_string())?;
            if let Some(file) = entry.filter(|entry| entry.kind == FileType::RegularFile) {
                return Ok(Some((in_memory, file)));
            }
        }
        Ok(None)
    }

    /// Those of so many of the files that are as long as they were, with other bytes.
    fn changed_among(
        &self,
        known: &[Object],
        mut room: u64,
    ) -> Result<HashSet<ObjectName>, StoreError> {
        let mut by_length: Vec<&Object> = known.iter().collect();
        by_length.sort_by_key(|object| object.length);
        let mut changed = HashSet::new();
        for object in by_length {
            let Some(digest) = object.digest else {
                continue;
            };
            let found = self.found(object.name)?;
            let Some((in_memory, _)) = found.filter(|(_, file)| file.length == object.length)
            else {
                continue;
            };
            let Some(rest) = room.checked_sub(object.length) else {
                break;
            };
            room = rest;
            let directory = self.directory_for(in_memory);
            if self.digest_in(directory, &object.name.to_string())? != digest {
                changed.insert(object.name);
            }
        }
        Ok(changed)
    }
}
