//! The last resort to end a run: the third signal ends the process at once.
//!
//! The first two are for the input/output thread. That may have to wait for the output, and the
//! output for its reader; a thread of its own waits for nothing but signals. The process ends as by
//! `kill -9`: the spawner ends the processes, and the run can be resumed. Read next: `io_thread`.

use std::thread::JoinHandle;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::error::RunError;

/// The signal that ends the process, counted from 1.
const SIGNALS: usize = 3;

/// Exit status of an interrupted run, as in shells.
const INTERRUPTED: i32 = 130;

/// Counts signals until it is dropped.
pub(crate) struct LastResort {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

impl LastResort {
    /// Begins to count.
    ///
    /// # Errors
    /// `System` if there is no thread or descriptor for it.
    pub(crate) fn begin() -> Result<LastResort, RunError> {
        let refused = |source| RunError::System {
            act: "watch for signals",
            source,
        };
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(refused)?;
        let handle = signals.handle();
        let thread = std::thread::Builder::new().name("signals".to_string());
        let count = move || {
            if signals.forever().take(SIGNALS).count() == SIGNALS {
                signal_hook::low_level::exit(INTERRUPTED);
            }
        };
        let thread = Some(thread.spawn(count).map_err(refused)?);
        Ok(LastResort {
            signals: handle,
            thread,
        })
    }
}

impl Drop for LastResort {
    fn drop(&mut self) {
        self.signals.close();
        let thread = self.thread.take().expect("it is joined once");
        thread.join().expect("it only counts");
    }
}
