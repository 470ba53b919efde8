//! Open outputs of running tasks, as both ends of a stream see them.
//!
//! Which way the bytes take is decided once: when the first reader comes, or nobody in time. This
//! module moves none of them. Read next: `streams`.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use ciel_data_plane::{GrowingReader, Progress};
use ciel_model::{Form, Name};
use ciel_node::AttemptKey;
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::watch;

/// The open outputs of running processes, by the names of the objects that they become.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    open: FxHashMap<Name, Arc<Source>>,
    /// Who is to have the newest of each, also when that has ended.
    onlookers: FxHashMap<Name, Vec<watch::Sender<Option<Arc<Source>>>>>,
    /// Those at which anybody has looked.
    looked_at: FxHashSet<Name>,
}

impl Sources {
    /// The open output that becomes the object of that name.
    pub(crate) fn get(&self, name: &Name) -> Option<&Arc<Source>> {
        self.open.get(name)
    }

    /// A process has opened an output.
    pub(crate) fn insert(&mut self, name: Name, source: Arc<Source>) {
        for onlooker in self.onlookers.get(&name).into_iter().flatten() {
            onlooker.send_replace(Some(source.clone()));
        }
        self.open.insert(name, source);
    }

    /// The process of that attempt does not write the output any more.
    pub(crate) fn remove(&mut self, name: &Name, producer: AttemptKey) {
        if self.get(name).is_some_and(|it| it.producer == producer) {
            self.open.remove(name);
        }
    }

    /// Whether anybody has looked at an open output, whose bytes a replay may have to read again.
    pub(crate) fn was_looked_at(&self, name: &Name) -> bool {
        self.looked_at.contains(name)
    }

    /// The newest source of an object, and each one that comes later.
    pub(crate) fn look_at(&mut self, name: Name) -> watch::Receiver<Option<Arc<Source>>> {
        self.onlookers.retain(|_, onlookers| {
            onlookers.retain(|onlooker| !onlooker.is_closed());
            !onlookers.is_empty()
        });
        self.looked_at.insert(name);
        let (onlooker, sources) = watch::channel(self.open.get(&name).cloned());
        self.onlookers.entry(name).or_default().push(onlooker);
        sources
    }
}

/// Which way the bytes of a source take, and how far they have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Undecided: what was written by now is in the pipe.
    Open,
    /// They go to the one reader, who has the pipe.
    Direct,
    /// That reader is gone, and what comes is discarded.
    Discarded,
    /// They are in the file, so many of them; these are all if the producer has ended well.
    Stored { bytes: u64, is_whole: bool },
}

/// An open output of a running process.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) producer: AttemptKey,
    /// Which output of it.
    pub(crate) index: u32,
    /// What the producer writes to.
    pub(crate) pipe: PathBuf,
    /// What takes the bytes that are stored.
    pub(crate) file: File,
    /// How the bytes are read.
    pub(crate) form: Form,
    pub(crate) flow: watch::Sender<Flow>,
    /// The same for readers on other threads, once there is one.
    growth: OnceLock<Arc<Progress>>,
}

impl Source {
    /// An output that nobody has written to or reads.
    pub(crate) fn new(
        (producer, index): (AttemptKey, u32),
        (pipe, file): (PathBuf, File),
        form: Form,
    ) -> Source {
        Source {
            producer,
            index,
            pipe,
            file,
            form,
            flow: watch::Sender::new(Flow::Open),
            growth: OnceLock::new(),
        }
    }

    /// What an attempt has written that has failed: so many bytes of a file, and no more.
    pub(crate) fn failed(
        (producer, index): (AttemptKey, u32),
        file: File,
        form: Form,
    ) -> io::Result<Source> {
        let bytes = file.metadata()?.len();
        let source = Source::new((producer, index), (PathBuf::new(), file), form);
        let is_whole = false;
        source.flow.send_replace(Flow::Stored { bytes, is_whole });
        Ok(source)
    }

    /// More bytes are in the file.
    pub(crate) fn grow(&self, count: u64) {
        self.flow.send_modify(|flow| {
            if let Flow::Stored { bytes, .. } = flow {
                *bytes += count;
                if let Some(growth) = self.growth.get() {
                    growth.publish(*bytes);
                }
            }
        });
    }

    /// The producer has ended well: what is in the file is all.
    pub(crate) fn complete(&self) {
        self.flow.send_modify(|flow| {
            if let Flow::Stored { bytes, is_whole } = flow {
                *is_whole = true;
                if let Some(growth) = self.growth.get() {
                    growth.commit(*bytes);
                }
            }
        });
    }

    /// The producer is gone; without effect if that was after its end.
    pub(crate) fn lose(&self) {
        if let Some(growth) = self.growth.get() {
            growth.lose();
        }
    }

    /// Reads what is stored, as it grows, on another thread.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn growing(&self) -> io::Result<GrowingReader> {
        let file = self.file.try_clone()?;
        let made = Arc::new(Progress::in_memory()?);
        // While it is looked at, it does not change.
        let flow = self.flow.borrow();
        let growth = self.growth.get_or_init(|| made);
        if let Flow::Stored { bytes, is_whole } = *flow {
            growth.publish(bytes);
            if is_whole {
                growth.commit(bytes);
            }
        }
        Ok(GrowingReader::new(file, growth.clone()))
    }

    /// From now on the bytes are stored, unless that has been decided otherwise.
    pub(crate) fn store(&self) {
        self.flow.send_if_modified(|flow| {
            let is_open = *flow == Flow::Open;
            if is_open {
                *flow = Flow::Stored {
                    bytes: 0,
                    is_whole: false,
                };
            }
            is_open
        });
    }

    /// The direct reader is gone.
    pub(crate) fn discard(&self) {
        self.flow.send_if_modified(|flow| {
            let is_direct = *flow == Flow::Direct;
            if is_direct {
                *flow = Flow::Discarded;
            }
            is_direct
        });
    }
}
