//! How far a growing object has grown, in a page that several processes map.
//!
//! A writer publishes a length; a reader sleeps until there is as much as it asks for, or the end.
//! A publication that nobody waits for costs no system call. Offsets: `TURN` and `STATE` are words
//! of 32 bits, `LENGTH` and `WANTED` of 64, in the machine's byte order.
//!
//! It does not know the object. Read next: `growing`.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::shared::{Shared, memory_file, sleep_while, wake_all};

const TURN: usize = 0;
const STATE: usize = 4;
const LENGTH: usize = 8;
const WANTED: usize = 16;
const BYTES: usize = 64;

/// What is known of a growing object at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// Bytes that can be read.
    pub length: u64,
    /// Whether there will be more.
    pub state: State,
}

/// Whether there will be more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The producer may write more.
    Writing,
    /// The length is that of the whole.
    Committed,
    /// The producer is lost; there will be neither more nor an end.
    Lost,
}

/// The shared page. Any number of handles, in any number of processes.
#[derive(Debug)]
pub struct Progress {
    shared: Shared,
}

impl Progress {
    /// A page in memory, for readers of this process.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn in_memory() -> io::Result<Progress> {
        Progress::from_file(&memory_file("ciel-progress", BYTES)?)
    }

    /// A page in a new file, which other processes [`open`](Progress::open) by its path.
    ///
    /// # Errors
    /// If the file is there already or cannot be written.
    pub fn create(path: &Path) -> io::Result<Progress> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(path)?;
        file.set_len(BYTES as u64)?;
        Progress::from_file(&file)
    }

    /// The page that another process has created.
    ///
    /// # Errors
    /// If it cannot be opened or is none.
    pub fn open(path: &Path) -> io::Result<Progress> {
        Progress::from_file(&OpenOptions::new().read(true).write(true).open(path)?)
    }

    /// The page in an open file: a memory file that another process has passed on, for example.
    ///
    /// # Errors
    /// If it is too short to be one.
    pub fn from_file(file: &File) -> io::Result<Progress> {
        let shared = Shared::map(file, BYTES)?;
        Ok(Progress { shared })
    }

    /// What is known now.
    pub fn look(&self) -> Look {
        // The state first: a length that is read after `Committed` is that of the whole.
        let state = match self.shared.word(STATE).load(Ordering::SeqCst) {
            0 => State::Writing,
            1 => State::Committed,
            _ => State::Lost,
        };
        let length = self.shared.long_word(LENGTH).load(Ordering::SeqCst);
        Look { length, state }
    }

    /// Says that so many bytes can be read.
    pub fn publish(&self, length: u64) {
        self.shared
            .long_word(LENGTH)
            .store(length, Ordering::SeqCst);
        if length >= wanted_above_zero(self.shared.long_word(WANTED).load(Ordering::SeqCst)) {
            self.wake();
        }
    }

    /// Says that these are all. Without effect after an end of either kind.
    pub fn commit(&self, length: u64) {
        if self.look().state == State::Writing {
            self.shared
                .long_word(LENGTH)
                .store(length, Ordering::SeqCst);
        }
        self.end(1);
    }

    /// Says that there will be neither more nor an end. Without effect after a commit.
    pub fn lose(&self) {
        self.end(2);
    }

    fn end(&self, state: u32) {
        let word = self.shared.word(STATE);
        let order = Ordering::SeqCst;
        if word.compare_exchange(0, state, order, order).is_ok() {
            self.wake();
        }
    }

    fn wake(&self) {
        self.shared.long_word(WANTED).store(0, Ordering::SeqCst);
        self.shared.word(TURN).fetch_add(1, Ordering::SeqCst);
        wake_all(self.shared.word(TURN));
    }

    /// Sleeps until `length` bytes can be read, the stream has ended, or the time is over, and says
    /// what is known then.
    ///
    /// # Errors
    /// If the system refuses to wait.
    pub fn wait(&self, length: u64, limit: Option<Duration>) -> io::Result<Look> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let turn = self.shared.word(TURN).load(Ordering::SeqCst);
            self.want(length.max(1));
            let look = self.look();
            let rest = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let is_over = rest.is_some_and(|rest| rest.is_zero());
            if look.length >= length || look.state != State::Writing || is_over {
                return Ok(look);
            }
            sleep_while(self.shared.word(TURN), turn, rest)?;
        }
    }

    /// Lowers the length at which the writer wakes the sleepers. Zero stands for none.
    fn want(&self, length: u64) {
        let word = self.shared.long_word(WANTED);
        let lower = |old| (length < wanted_above_zero(old)).then_some(length);
        // An error says that another reader wants to be woken no later.
        let _ = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lower);
    }
}

fn wanted_above_zero(wanted: u64) -> u64 {
    if wanted == 0 { u64::MAX } else { wanted }
}
