//! The table of objects as it is written down: what several keys share is written once.
//!
//! It does not know what an object means to anybody. Read next: `objects`.

use std::sync::Arc;

use ciel_model::{Failure, Name, ObjectKey, TaskKey};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{Object, ObjectState, Objects, Stored, Waiter};

/// All objects, by key.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    next: u64,
    stored: Vec<Arc<Stored>>,
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
}

/// Numbers stand for places in the lists of what is shared.
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
    },
}

/// A list in which each shared value stands once.
struct Shared<T> {
    all: Vec<Arc<T>>,
    places: FxHashMap<*const T, u32>,
}

impl<T> Shared<T> {
    fn new() -> Shared<T> {
        Shared {
            all: Vec::new(),
            places: FxHashMap::default(),
        }
    }

    fn place_of(&mut self, value: Arc<T>) -> u32 {
        *self.places.entry(Arc::as_ptr(&value)).or_insert_with(|| {
            self.all.push(value);
            u32::try_from(self.all.len() - 1).expect("fewer than 2^32 objects")
        })
    }
}

impl From<Objects> for Saved {
    fn from(objects: Objects) -> Saved {
        let (mut stored, mut failures) = (Shared::new(), Shared::new());
        let mut table: Vec<(ObjectKey, Object)> = objects.table.into_iter().collect();
        table.sort_by_key(|(key, _)| *key);
        let saved = table.into_iter().map(|(key, object)| SavedObject {
            key,
            name: object.name,
            state: match object.state {
                ObjectState::Future {
                    producer,
                    waiters,
                    aliases,
                } => SavedState::Future {
                    producer,
                    waiters,
                    aliases,
                },
                ObjectState::Alias(target) => SavedState::Alias(target),
                ObjectState::Ready(value) => SavedState::Ready(stored.place_of(value)),
                ObjectState::Failed { failure, source } => SavedState::Failed {
                    failure: failures.place_of(failure),
                    source,
                },
            },
            holders: object.holders,
            asked: object.asked,
        });
        let saved = saved.collect();
        Saved {
            next: objects.next,
            stored: stored.all,
            failures: failures.all,
            objects: saved,
        }
    }
}

/// A state that refers to nothing.
#[derive(Debug, thiserror::Error)]
#[error("object {0:?} refers to a value that is not there")]
pub(super) struct Dangling(ObjectKey);

impl TryFrom<Saved> for Objects {
    type Error = Dangling;

    fn try_from(saved: Saved) -> Result<Objects, Dangling> {
        let Saved {
            next,
            stored,
            failures,
            objects,
        } = saved;
        let table = objects.into_iter().map(|object| {
            let dangling = Dangling(object.key);
            let state = match object.state {
                SavedState::Future {
                    producer,
                    waiters,
                    aliases,
                } => ObjectState::Future {
                    producer,
                    waiters,
                    aliases,
                },
                SavedState::Alias(target) => ObjectState::Alias(target),
                SavedState::Ready(place) => {
                    ObjectState::Ready(stored.get(place as usize).cloned().ok_or(dangling)?)
                }
                SavedState::Failed { failure, source } => ObjectState::Failed {
                    failure: failures.get(failure as usize).cloned().ok_or(dangling)?,
                    source,
                },
            };
            let (key, name) = (object.key, object.name);
            let (holders, asked) = (object.holders, object.asked);
            let object = Object {
                name,
                state,
                holders,
                asked,
            };
            Ok((key, object))
        });
        Ok(Objects {
            next,
            table: table.collect::<Result<_, Dangling>>()?,
        })
    }
}
