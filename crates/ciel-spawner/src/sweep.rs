//! Killing processes by their marks, wherever they are.
//!
//! Used when there is no parent that knows them: after a spawner's death, and for trees whose
//! members fled. A number is only acted on through a handle of the process, after it was seen
//! once more that the process is the one that was meant. Next: `processes`.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::limits::{KILL_ROUNDS_MAX, SWEEP_MS_MAX};
use crate::{Cookie, processes};

/// Kills every process that carries the run's cookie, this one excepted, and waits until they
/// are gone. Returns their numbers and command lines. Processes whose environment this user may
/// not read are not found.
///
/// Call it when the spawner of a run has died, and before a run whose engine and spawner both died
/// is resumed. It reads the environment of every process: some milliseconds.
pub fn sweep(cookie: &Cookie) -> Vec<(u32, String)> {
    let carries = |pid| processes::marks(pid).is_some_and(|m| cookie.task_in(&m).is_some());
    let own = std::process::id();
    let find = || {
        processes::all()
            .filter(|p| !p.ended && p.pid != own)
            .map(|p| p.pid)
    };
    let mut killed = Vec::new();
    kill_until_none(
        || find().filter(|&pid| carries(pid)).collect(),
        carries,
        |pid, command, handle| {
            wait_for_end(&handle);
            killed.push((pid, command));
        },
    );
    killed
}

/// Kills a task's processes: those that carry its mark, and the tree of its first process. Does
/// not wait for their end.
pub(crate) fn kill_task(cookie: &Cookie, task: &str, root: u32) {
    let marked =
        |pid| processes::marks(pid).is_some_and(|m| cookie.task_in(&m) == Some(task.as_bytes()));
    let own = std::process::id();
    let find = || {
        let mut found = processes::trees(&[root]).remove(0);
        found.extend(
            processes::all()
                .filter(|p| !p.ended)
                .map(|p| p.pid)
                .filter(|&p| marked(p)),
        );
        found.remove(&own);
        found
    };
    let belongs = |pid| marked(pid) || processes::trees(&[root])[0].contains(&pid);
    kill_until_none(find, belongs, |_, _, _| {});
}

/// Kills what `find` finds until it finds nothing new: what a process was just starting while it
/// was killed shows up in the next round.
fn kill_until_none(
    find: impl Fn() -> BTreeSet<u32>,
    belongs: impl Fn(u32) -> bool,
    mut on_killed: impl FnMut(u32, String, OwnedFd),
) {
    let mut seen = BTreeSet::new();
    for _ in 0..KILL_ROUNDS_MAX {
        let found: Vec<u32> = find().into_iter().filter(|&pid| seen.insert(pid)).collect();
        if found.is_empty() {
            return;
        }
        for pid in found {
            let command = processes::command(pid);
            if let Some(handle) = kill(pid, &belongs) {
                on_killed(pid, command, handle);
            }
        }
    }
}

fn kill(pid: u32, belongs: impl Fn(u32) -> bool) -> Option<OwnedFd> {
    let handle = rustix::process::pidfd_open(pid_of(pid)?, PidfdFlags::empty()).ok()?;
    // The number may have passed to another process before the handle was made, not after.
    if !belongs(pid) {
        return None;
    }
    rustix::process::pidfd_send_signal(&handle, Signal::KILL).ok()?;
    Some(handle)
}

fn wait_for_end(handle: &OwnedFd) {
    let limit = Duration::from_millis(SWEEP_MS_MAX);
    let limit = limit.try_into().expect("the limit fits the kernel's type");
    // Whether it ended or the time is up, there is nothing more to be done about it.
    let mut ready = [PollFd::new(handle, PollFlags::IN)];
    let _ = retry_on_intr(|| rustix::event::poll(&mut ready, Some(&limit)));
}

/// The kernel's form of a process number.
fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
