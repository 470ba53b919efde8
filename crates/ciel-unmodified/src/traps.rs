//! What is done in each stopped call.
//!
//! Calls that start a process fix its place; the first call of a process gives it pipes of its own;
//! calls on ordered files are in `named`. It does not know how calls are stopped (`filter`).

use crate::births::Birth;
use crate::error::{LOOKING, Naming, UnmodifiedError};
use crate::kernel::{self, Kin};
use crate::listener::{Call, Given};
use crate::named;
use crate::order::ProcessKey;
use crate::supervisor::Supervisor;

impl Supervisor {
    /// Answers the next stopped call.
    pub(crate) fn on_call(&mut self) -> Result<(), UnmodifiedError> {
        let Some(listener) = &self.listener else {
            return Ok(());
        };
        let Some(call) = listener.receive().naming("receive a call")? else {
            return Ok(());
        };
        let Some(pid) = self.caller(call)? else {
            return self.proceed(call);
        };
        if starts_process(call.number) {
            self.on_start(call, pid)?;
        } else if call.number == libc::SYS_rt_sigaction {
            let _ = restart_calls(call, pid);
        } else if let Some(named) = named::decode(call, pid)
            && !self.files.is_empty()
        {
            return self.on_named(call, pid, named);
        }
        self.proceed(call)
    }

    /// Lets a call happen.
    pub(crate) fn proceed(&mut self, call: Call) -> Result<(), UnmodifiedError> {
        match &self.listener {
            Some(listener) => listener.proceed(call).naming("answer a call"),
            None => Ok(()),
        }
    }

    /// The process that makes the call, with its own pipes; none if it is not told apart from
    /// others.
    fn caller(&mut self, call: Call) -> Result<Option<u32>, UnmodifiedError> {
        let mut pid = call.thread;
        if !self.running.contains_key(&pid) {
            let Some(kin) = kernel::kin_of(call.thread).naming(LOOKING)? else {
                return Ok(None);
            };
            pid = kin.process;
            if !self.running.contains_key(&pid) {
                let Some(birth) = self.birth_of(kin)? else {
                    return Ok(None);
                };
                self.births.remove(birth.child);
                self.admit_process(pid, birth.child, false)?;
            }
        }
        self.arrive(call, pid)?;
        Ok(Some(pid))
    }

    /// The start of a process that makes its first call.
    fn birth_of(&self, kin: Kin) -> Result<Option<Birth>, UnmodifiedError> {
        let Kin { process, parent } = kin;
        if let Some(only) = self.births.only_under(parent) {
            return Ok(Some(only));
        }
        for birth in self.births.under(parent) {
            let started = kernel::children_of_thread(parent, birth.thread).naming(LOOKING)?;
            if started.contains(&process) {
                return Ok(Some(birth));
            }
        }
        Ok(None)
    }

    /// Gives a new process pipes of its own for all those that it has inherited.
    fn arrive(&mut self, call: Call, pid: u32) -> Result<(), UnmodifiedError> {
        let Some(process) = self
            .running
            .get_mut(&pid)
            .filter(|process| !process.has_arrived)
        else {
            return Ok(());
        };
        process.has_arrived = true;
        let key = process.key;
        let mut writers = Vec::new();
        for end in kernel::pipe_ends(pid).naming(LOOKING)? {
            let Some(segment) = self.segments.get(end.pipe) else {
                continue;
            };
            let stream = segment.stream;
            if !writers.iter().any(|(known, _)| *known == stream) {
                let (pipe, writer) = self.segments.create(key, stream).naming("make a pipe")?;
                self.watch_pipe(pipe)?;
                writers.push((stream, writer));
            }
            let writer = writers.iter().find(|(known, _)| *known == stream);
            let (_, writer) = writer.expect("each stream has a pipe by now");
            let closes_on_exec =
                end.number > 2 && kernel::closes_on_exec(pid, end.number).naming(LOOKING)?;
            let given = Given {
                fd: std::os::fd::AsFd::as_fd(writer),
                closes_on_exec,
            };
            if let Some(listener) = &self.listener {
                let replaced = listener.replace(call, &given, end.number);
                replaced.naming("replace a descriptor")?;
            }
        }
        Ok(())
    }

    /// A thread starts a process: what its process has written stands before it.
    fn on_start(&mut self, call: Call, pid: u32) -> Result<(), UnmodifiedError> {
        self.settle_birth(call.thread, pid)?;
        let key = self.key_of(pid);
        self.drain(key)?;
        let child = self.outputs.order.start(key);
        let flags = if call.number == libc::SYS_clone {
            call.arguments[0]
        } else {
            0
        };
        let visible_parent = match flags & libc::CLONE_PARENT as u64 {
            0 => pid,
            _ => {
                let kin = kernel::kin_of(pid).naming(LOOKING)?;
                kin.map_or(pid, |kin| kin.parent)
            }
        };
        self.births.add(Birth {
            parent: pid,
            visible_parent,
            thread: call.thread,
            child,
        });
        Ok(())
    }

    /// The thread's last start is over: its child is in the list of children, or has gone, or was
    /// never there.
    fn settle_birth(&mut self, thread: u32, pid: u32) -> Result<(), UnmodifiedError> {
        let Some(birth) = self.births.of_thread(thread) else {
            return Ok(());
        };
        self.births.remove(birth.child);
        let children = match birth.visible_parent == pid {
            true => kernel::children_of_thread(pid, thread),
            false => kernel::children_of(birth.visible_parent),
        };
        let children = children.naming(LOOKING)?;
        match children.iter().rev().find(|pid| self.is_unknown(**pid)) {
            Some(child) => self.admit_process(*child, birth.child, false),
            None => {
                self.outputs.order.end(birth.child);
                Ok(())
            }
        }
    }

    /// The key of a process that is known.
    pub(crate) fn key_of(&self, pid: u32) -> ProcessKey {
        self.running[&pid].key
    }
}

/// Lets calls continue that the end of a child interrupts: a stopped call that is not received yet
/// can be interrupted, and no program expects that of a call that starts a process. What cannot be
/// read or changed stays as it is.
fn restart_calls(call: Call, pid: u32) -> std::io::Result<()> {
    let action = call.arguments[1];
    if action == 0 {
        return Ok(());
    }
    let word = |at: u64| -> std::io::Result<u64> {
        let bytes = kernel::memory_at(pid, action + at, 8)?;
        let bytes = bytes
            .try_into()
            .map_err(|_| std::io::ErrorKind::UnexpectedEof)?;
        Ok(u64::from_ne_bytes(bytes))
    };
    let (handler, flags) = (word(0)?, word(FLAGS_AT)?);
    let is_handled = handler != libc::SIG_DFL as u64 && handler != libc::SIG_IGN as u64;
    if !is_handled || flags & libc::SA_RESTART as u64 != 0 {
        return Ok(());
    }
    let changed = flags | libc::SA_RESTART as u64;
    kernel::change_memory(pid, action + FLAGS_AT, &changed.to_ne_bytes())
}

/// Where the flags are in the kernel's `struct sigaction`, behind the handler.
const FLAGS_AT: u64 = 8;

/// Whether a call of this number starts a process.
fn starts_process(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    let starts = matches!(number, libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone);
    #[cfg(not(target_arch = "x86_64"))]
    let starts = number == libc::SYS_clone;
    starts
}
