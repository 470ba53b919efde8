//! Processes that were killed and are not gone yet.
//!
//! A killed process first gives back its memory and then its locks, which takes the longer the more
//! it had and the busier the machine is. A run that is started meanwhile would take the former one
//! for live. It does not know what the process was. Read next: `folder`, `run`.

use std::fs;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::limits;

/// The signal that kills, in the sets of signals that the system shows.
const KILL: u64 = 1 << 8;

/// Waits for the end of a process that was killed, for a bounded time; false if it was not, and
/// true if there is none.
pub(crate) fn has_ended(process: u32) -> bool {
    let number = i32::try_from(process).ok();
    let Some(pid) = number.and_then(Pid::from_raw) else {
        return false;
    };
    // The handle first: a later process of the same number is not the one that is awaited.
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return true;
    };
    let status = fs::read_to_string(format!("/proc/{process}/status"));
    if !status.is_ok_and(|status| was_killed(&status)) {
        return false;
    }
    let limit = Timespec {
        tv_sec: limits::KILLED_WAIT_S,
        tv_nsec: 0,
    };
    let mut ends = [PollFd::new(&handle, PollFlags::IN)];
    retry_on_intr(|| poll(&mut ends, Some(&limit))).is_ok_and(|ended| ended > 0)
}

/// Whether the status of a process says that it was killed: the signal stays in the set of the
/// process until the end, and the first thread may have ended before others.
fn was_killed(status: &str) -> bool {
    status.lines().any(|line| match line.split_once(":\t") {
        Some(("State", state)) => state.starts_with(['Z', 'X']),
        Some(("SigPnd" | "ShdPnd", set)) => {
            u64::from_str_radix(set, 16).is_ok_and(|set| set & KILL != 0)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_was_killed_if_that_signal_is_pending_or_its_first_thread_has_ended() {
        let status = |state: &str, set: &str| {
            format!("Name:\tciel\nState:\t{state}\nSigPnd:\t0000000000000000\nShdPnd:\t{set}\n")
        };
        assert!(was_killed(&status("R (running)", "0000000000000100")));
        assert!(was_killed(&status("Z (zombie)", "0000000000000000")));
        assert!(!was_killed(&status("S (sleeping)", "0000000000004000")));
    }

    #[test]
    fn process_that_lives_is_not_awaited_and_one_that_is_gone_has_ended() {
        assert!(!has_ended(std::process::id()));
        assert!(has_ended(i32::MAX as u32));
    }
}
