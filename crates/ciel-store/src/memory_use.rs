//! What is in memory of a run, as the shell sees it: objects, and what streams share.
//!
//! It counts nothing itself. Read next: `stream_memory`, `memory_folder`.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::memory_folder::MemoryUse;
use crate::objects::FileObjects;
use crate::stream_memory;

impl FileObjects {
    /// Grants an attempt of a task memory that it shares with the reader of its stream: the path of
    /// a memory file, in which four values of `length` bytes have room. None if so much is not
    /// free, or its end could not be told.
    pub fn grant_stream_memory(&self, task: (u128, u32), length: u64) -> Option<PathBuf> {
        if let Some(memory) = self.memory().filter(|memory| memory.has_budget()) {
            return memory.grant_stream(task, length);
        }
        let streams = &self.streams;
        if stream_memory::is_scarce(streams.free()) {
            streams.reclaim();
        }
        streams.grant(task, length, streams.free())
    }

    /// The attempt of the task is over: what it was granted counts until no process has it.
    pub fn end_stream_memory(&self, task: (u128, u32)) {
        self.note_memory_peak();
        self.streams.end(task);
    }

    /// A descriptor that can be read without waiting when a process has closed what was granted.
    /// Nothing is granted before somebody has that.
    ///
    /// # Errors
    /// The system watches no more for this user.
    pub fn watch_stream_memory(&self) -> io::Result<OwnedFd> {
        self.streams.watch()
    }

    /// How much of the store is in memory, with what streams share.
    pub fn memory_use(&self) -> MemoryUse {
        self.note_memory_peak();
        let (streams, streams_peak) = self.streams.pages();
        let objects = self.memory().map(|memory| memory.counts());
        let objects = objects.unwrap_or_default();
        MemoryUse {
            peak: objects.peak.max(streams_peak),
            streams,
            streams_peak,
            ..objects
        }
    }

    fn note_memory_peak(&self) {
        if let Some(memory) = self.memory() {
            memory.note_peak();
        }
    }
}
