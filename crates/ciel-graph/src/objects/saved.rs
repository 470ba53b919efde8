//! The table of objects as it is written down: what several keys share is written once.
//!
//! It does not know what an object means. Read next: `objects`.

use std::convert::Infallible;
use std::sync::Arc;

use ciel_model::{Content, Failure, HashTrie, Name, ObjectKey, TaskKey, Value};
use rustc_hash::FxHashMap;
use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer};

use crate::lineage::{Origin, OriginOf};

use super::{Object, ObjectState, Objects, Recorded, Stored, Waiter};

/// All objects, by key.
#[derive(Deserialize)]
pub(super) struct Saved {
    next: u64,
    origins: Vec<OriginOf<u32>>,
    sources: Vec<u32>,
    stored: Vec<SavedStored>,
    failures: Vec<Arc<Failure>>,
    objects: Vec<SavedObject>,
}

#[derive(Serialize, Deserialize)]
struct SavedObject {
    key: ObjectKey,
    name: Name,
    state: SavedState,
    holders: u32,
    asked: bool,
    recorded: Recorded,
}

#[derive(Deserialize)]
struct SavedStored {
    name: Name,
    value: Value<ObjectKey>,
    origin: Option<u32>,
}

/// Numbers stored for places in the lists of what is shared.
#[derive(Serialize, Deserialize)]
enum SavedState {
    Future {
        producer: TaskKey,
        waiters: Vec<Waiter>,
        aliases: Vec<ObjectKey>,
    },
    Alias(ObjectKey),
    Ready(u32),
    Failed {
        failure: u32,
        source: ObjectKey,
        is_final: bool,
    },
    Dropped,
}

/// A list that contains each shared value once.
struct Shared<'a, T> {
    all: Vec<&'a Arc<T>>,
    places: FxHashMap<*const T, u32>,
}

impl<'a, T> Shared<'a, T> {
    fn of(values: impl Iterator<Item = &'a Arc<T>>) -> Shared<'a, T> {
        let mut shared = Shared {
            all: Vec::new(),
            places: FxHashMap::default(),
        };
        for value in values {
            shared.places.entry(Arc::as_ptr(value)).or_insert_with(|| {
                shared.all.push(value);
                u32::try_from(shared.all.len() - 1).expect("fewer than 2^32 objects")
            });
        }
        shared
    }

    fn place_of(&self, value: &Arc<T>) -> u32 {
        self.places[&Arc::as_ptr(value)]
    }
}

/// Origins, each after those that it was made of.
#[derive(Default)]
struct Origins {
    all: Vec<OriginOf<u32>>,
    places: FxHashMap<*const OriginOf<Origin>, u32>,
}

impl Origins {
    fn place_of(&mut self, origin: &Origin) -> u32 {
        let at = Arc::as_ptr(&origin.0);
        if let Some(place) = self.places.get(&at) {
            return *place;
        }
        let named = origin
            .0
            .map(&mut |inner| Ok::<_, Infallible>(self.place_of(inner)));
        let Ok(named) = named;
        self.all.push(named);
        let place = u32::try_from(self.all.len() - 1).expect("fewer than 2^32 files");
        self.places.insert(at, place);
        place
    }

    fn saving<'a>(&mut self, stored: &'a Stored) -> SavingStored<'a> {
        SavingStored {
            name: stored.name,
            value: &stored.value,
            origin: stored.origin.as_ref().map(|origin| self.place_of(origin)),
        }
    }
}

/// All objects as [`Saved`] spells them, without a copy of the table.
#[derive(Serialize)]
struct Saving<'a> {
    next: u64,
    origins: Vec<OriginOf<u32>>,
    sources: Vec<u32>,
    stored: Vec<SavingStored<'a>>,
    failures: &'a [&'a Arc<Failure>],
    objects: SavingObjects<'a>,
}

#[derive(Serialize)]
struct SavingStored<'a> {
    name: Name,
    value: &'a Value<ObjectKey>,
    origin: Option<u32>,
}

/// The table, and the places of what its entries share.
struct SavingObjects<'a> {
    objects: &'a Objects,
    stored: &'a Shared<'a, Stored>,
    failures: &'a Shared<'a, Failure>,
}

impl SavingObjects<'_> {
    fn saved(&self, key: ObjectKey, object: &Object) -> SavedObject {
        let state = match &object.state {
            ObjectState::Future {
                producer,
                waiters,
                aliases,
            } => SavedState::Future {
                producer: *producer,
                waiters: waiters.iter().collect(),
                aliases: aliases.iter().collect(),
            },
            ObjectState::Alias(target) => SavedState::Alias(*target),
            ObjectState::Ready(value) => SavedState::Ready(self.stored.place_of(value)),
            ObjectState::Failed {
                failure,
                source,
                is_final,
            } => SavedState::Failed {
                failure: self.failures.place_of(failure),
                source: *source,
                is_final: *is_final,
            },
            ObjectState::Dropped => SavedState::Dropped,
        };
        SavedObject {
            key,
            name: object.name,
            state,
            holders: object.holders,
            asked: object.asked,
            recorded: object.recorded,
        }
    }
}

impl Serialize for SavingObjects<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = &self.objects.table;
        let mut list = serializer.serialize_seq(Some(table.len()))?;
        for (key, object) in table.iter() {
            list.serialize_element(&self.saved(key, object))?;
        }
        list.end()
    }
}

impl Objects {
    /// The states of all objects.
    fn states(&self) -> impl Iterator<Item = &ObjectState> {
        self.table.iter().map(|(_, object)| &object.state)
    }
}

impl Serialize for Objects {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = Shared::of(self.states().filter_map(|state| match state {
            ObjectState::Ready(stored) => Some(stored),
            _ => None,
        }));
        let failures = Shared::of(self.states().filter_map(|state| match state {
            ObjectState::Failed { failure, .. } => Some(failure),
            _ => None,
        }));
        let mut origins = Origins::default();
        let named = stored.all.iter().map(|stored| origins.saving(stored));
        let named = named.collect();
        let sources = self.sources.iter().map(|source| origins.place_of(source));
        let sources = sources.collect();
        let saving = Saving {
            next: self.next,
            origins: origins.all,
            sources,
            stored: named,
            failures: &failures.all,
            objects: SavingObjects {
                objects: self,
                stored: &stored,
                failures: &failures,
            },
        };
        saving.serialize(serializer)
    }
}

/// A reference to an element that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("an object refers to an object that does not exist")]
pub(super) struct Dangling;

/// The index in `list` that a number encodes.
fn at<T: Clone>(list: &[T], place: u32) -> Result<T, Dangling> {
    list.get(place as usize).cloned().ok_or(Dangling)
}

impl TryFrom<Saved> for Objects {
    type Error = Dangling;

    fn try_from(saved: Saved) -> Result<Objects, Dangling> {
        let Saved {
            next,
            origins,
            sources,
            stored,
            failures,
            objects,
        } = saved;
        let origins = restored(origins)?;
        let mut files: HashTrie<Name, u32> = HashTrie::default();
        let stored = stored.into_iter().map(|stored| {
            if let Content::File { name, .. } = stored.value.content {
                let count = files.get(&name).copied().unwrap_or(0);
                files.insert(name, count + 1);
            }
            let origin = stored.origin.map(|place| at(&origins, place));
            Ok(Arc::new(Stored {
                name: stored.name,
                value: stored.value,
                origin: origin.transpose()?,
            }))
        });
        let stored = stored.collect::<Result<Vec<_>, Dangling>>()?;
        let sources = sources.into_iter().map(|place| at(&origins, place));
        let sources = sources.collect::<Result<_, Dangling>>()?;
        let table = objects.into_iter().map(|object| {
            let state = match object.state {
                SavedState::Future {
                    producer,
                    waiters,
                    aliases,
                } => ObjectState::Future {
                    producer,
                    waiters: waiters.into_iter().collect(),
                    aliases: aliases.into_iter().collect(),
                },
                SavedState::Alias(target) => ObjectState::Alias(target),
                SavedState::Ready(place) => ObjectState::Ready(at(&stored, place)?),
                SavedState::Failed {
                    failure,
                    source,
                    is_final,
                } => ObjectState::Failed {
                    failure: at(&failures, failure)?,
                    source,
                    is_final,
                },
                SavedState::Dropped => ObjectState::Dropped,
            };
            let (key, name) = (object.key, object.name);
            let (holders, asked) = (object.holders, object.asked);
            let object = Object {
                name,
                state,
                holders,
                asked,
                recorded: object.recorded,
            };
            Ok((key, object))
        });
        Ok(Objects {
            next,
            table: table.collect::<Result<_, Dangling>>()?,
            files,
            sources,
        })
    }
}

/// Origins as they share each other.
fn restored(named: Vec<OriginOf<u32>>) -> Result<Vec<Origin>, Dangling> {
    let mut origins: Vec<Origin> = Vec::with_capacity(named.len());
    for origin in named {
        let origin = origin.map(&mut |place| at(&origins, *place))?;
        origins.push(Origin(Arc::new(origin)));
    }
    Ok(origins)
}
