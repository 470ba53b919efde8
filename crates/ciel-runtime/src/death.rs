//! Debug builds can be made to die, like by `kill -9`, at any record and at any step of the end of
//! a run, and to lose a task, so that tests can see what is left then. Release builds never do.
//!
//! Read next: `recovery` and `run::finish`, where it is asked.

use std::sync::atomic::{AtomicU64, Ordering};

use ciel_journal::{Journal, Sequence};
use ciel_model::Label;

use crate::for_tests::variable;

/// `7` dies when record 7 is written, `7-` when it is made and not written.
const AT_RECORD: &str = "CIEL_DIE_AT_RECORD";

/// `3` dies at the third step of the end.
const AT_END: &str = "CIEL_DIE_AT_END";

/// `step` loses the end of every task of that function that is a process.
const LOSES: &str = "CIEL_LOSES";

/// When to die.
pub(crate) struct Death {
    at: u64,
    written: bool,
}

impl Death {
    /// At the record that the environment names, if it does.
    pub(crate) fn of_environment() -> Option<Death> {
        let named = variable(AT_RECORD)?;
        let number = named.trim_end_matches('-');
        Some(Death {
            at: number.parse().ok()?,
            written: number == named,
        })
    }

    /// Dies if this is the record.
    pub(crate) fn look(&self, journal: &Journal, record: Sequence) {
        if record.0 != self.at {
            return;
        }
        if self.written {
            // It dies as well if the record could not be written.
            let _ = journal.wait_for(record);
        }
        die();
    }
}

/// A step of the end of a run: dies if it is the one that the environment names.
pub(crate) fn at_the_end() {
    static STEPS: AtomicU64 = AtomicU64::new(0);
    let named = variable(AT_END).and_then(|named| named.parse::<u64>().ok());
    if named.is_some_and(|at| STEPS.fetch_add(1, Ordering::Relaxed) + 1 == at) {
        die();
    }
}

/// Whether the end of a task is to be lost, as a bug in what runs it would lose it.
pub(crate) fn loses(task: &Label) -> bool {
    variable(LOSES).is_some_and(|what| *task.what == *what)
}

fn die() -> ! {
    let me = rustix::process::getpid();
    let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}
