//! The signals that ask a run to end: `SIGINT` (Ctrl-C), `SIGTERM` and `SIGHUP`.
//!
//! One that is ignored when the process starts stays ignored, as in any program: `nohup` and the
//! background of a script rely on that.
//!
//! They are counted from the first moment of the run on, by a thread that waits for nothing else.
//! The first two are for the input/output thread, whenever it begins to look at them. That thread
//! may have to wait for the output, and the output for its reader; so the third ends the process at
//! once, as by `kill -9`: the spawner ends the processes, and the run can be resumed. Read next:
//! `io_thread`.

use std::thread::JoinHandle;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::error::RunError;

/// The signal that ends the process, counted from 1.
const SIGNALS: usize = 3;

/// Exit status of an interrupted run, as in shells.
const INTERRUPTED: i32 = 130;

/// One signal that asked the run to end.
pub(crate) struct Interrupt;

/// Counts signals until it is dropped.
pub(crate) struct Interrupts {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Interrupts {
    /// Begins to count. What is received are the signals since then, however late it is read.
    ///
    /// # Errors
    /// `System` if there is no thread or descriptor for it.
    pub(crate) fn begin() -> Result<(Interrupts, UnboundedReceiver<Interrupt>), RunError> {
        let refused = |source| RunError::System {
            act: "watch for signals",
            source,
        };
        let heeded = [SIGINT, SIGTERM, SIGHUP]
            .into_iter()
            .filter(|&number| !is_ignored(number));
        let signals = Signals::new(heeded).map_err(refused)?;
        let handle = signals.handle();
        let (sender, receiver) = unbounded_channel();
        let thread = std::thread::Builder::new().name("signals".to_string());
        let thread = Some(
            thread
                .spawn(move || count(signals, &sender))
                .map_err(refused)?,
        );
        let interrupts = Interrupts {
            signals: handle,
            thread,
        };
        Ok((interrupts, receiver))
    }
}

/// Whether this process ignores that signal.
fn is_ignored(number: libc::c_int) -> bool {
    // SAFETY: all bits zero are a valid `sigaction`, which the system overwrites; nothing is set.
    let set = unsafe {
        let mut set: libc::sigaction = std::mem::zeroed();
        libc::sigaction(number, std::ptr::null(), &mut set);
        set.sa_sigaction
    };
    set == libc::SIG_IGN
}

/// Passes each signal on; the last one ends the process.
fn count(mut signals: Signals, sender: &UnboundedSender<Interrupt>) {
    let mut counted = 0;
    for _ in signals.forever() {
        // Nobody receives it once the input/output thread has ended; the run is over then.
        let _ = sender.send(Interrupt);
        counted += 1;
        if counted == SIGNALS {
            signal_hook::low_level::exit(INTERRUPTED);
        }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.signals.close();
        let thread = self.thread.take().expect("it is joined once");
        thread.join().expect("it only counts");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::Interrupts;

    /// A Ctrl-C in the first moments of a run was lost: it was counted here, but the input/output
    /// thread did not watch for signals yet. One run of an endless script in twenty never ended.
    #[test]
    fn signal_before_anybody_receives_is_kept() {
        // Whoever starts this test by nohup has the signal ignored; one that is handled is heeded.
        let seen = Arc::<AtomicBool>::default();
        let ours = signal_hook::flag::register(super::SIGHUP, seen).unwrap();
        let (counting, mut interrupts) = Interrupts::begin().unwrap();
        signal_hook::low_level::raise(super::SIGHUP).unwrap();
        assert!(interrupts.blocking_recv().is_some());
        drop(counting);
        assert!(interrupts.blocking_recv().is_none());
        signal_hook::low_level::unregister(ours);
    }
}
