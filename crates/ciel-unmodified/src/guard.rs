//! The process that the user started: it waits for the supervisor, and cleans up if that is killed.
//!
//! Both adopt orphans below them and see each other's death at once; whoever is left ends every
//! process of the command. So neither `kill -9` leaves one. It does not know what is supervised.
//! Read next: `supervisor`.

use rustix::process::{Pid, Signal};

use crate::error::{Naming, UnmodifiedError};
use crate::kernel;
use crate::signals::{self, Notice, Signals};

/// Who this process is after the division.
pub(crate) enum Role {
    /// The supervisor; it watches the guard with this process id, and reads its own signals.
    Supervisor(Pid, Signals),
    /// The guard; the supervisor has ended with this exit status.
    Guard(u8),
}

/// Divides this process, which must have one thread, into guard and supervisor. In the guard it
/// returns when the supervisor has ended.
pub(crate) fn divide() -> Result<Role, UnmodifiedError> {
    let guard = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(guard)).naming("adopt orphans")?;
    let signals = Signals::block().naming("block signals")?;
    match fork().naming("start the supervisor")? {
        None => {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
                .naming("adopt orphans")?;
            Ok(Role::Supervisor(guard, signals))
        }
        Some(supervisor) => Ok(Role::Guard(keep_watch(&signals, supervisor)?)),
    }
}

/// Waits for the supervisor; passes on to it what somebody sends.
fn keep_watch(signals: &Signals, supervisor: Pid) -> Result<u8, UnmodifiedError> {
    loop {
        match signals.next().naming("wait for signals")? {
            Notice::Sent(signal) => signals::send(supervisor, signal),
            Notice::FromTerminal => {}
            Notice::Child => {
                while let Some((pid, status)) = signals::reap() {
                    if pid != supervisor.as_raw_nonzero().get() as u32 {
                        continue;
                    }
                    end_all();
                    return match status.exit_status() {
                        Some(code) => Ok(code as u8),
                        None => Err(UnmodifiedError::Killed),
                    };
                }
            }
        }
    }
}

/// Ends every process below this one and waits for them.
pub(crate) fn end_all() {
    let own = rustix::process::getpid().as_raw_nonzero().get() as u32;
    // What this process had open for the command is closed by now.
    let children_of = |pid| kernel::children_of(pid).unwrap_or_default();
    loop {
        let mut below = children_of(own);
        let mut seen = 0;
        while seen < below.len() {
            below.extend(children_of(below[seen]));
            seen += 1;
        }
        for pid in below {
            if let Some(pid) = Pid::from_raw(pid as i32) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        // One of them ends, and leaves its children to this process.
        match rustix::process::wait(rustix::process::WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Divides the process; the child gets nothing, its parent the process id. Only a process with one
/// thread can be divided: a lock that another thread holds would stay locked in the child.
pub(crate) fn fork() -> std::io::Result<Option<Pid>> {
    // SAFETY: this process has one thread, as this function demands.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}
