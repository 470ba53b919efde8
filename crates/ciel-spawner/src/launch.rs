//! The birth of one process.
//!
//! The child is made by `clone` with the parent's memory shared and the parent stopped until the
//! program runs, as `posix_spawn` does; its price does not depend on the size of the parent.
//! Beyond `posix_spawn` it sets limits, dies with the spawner and says which step failed.
//!
//! What the child does here must touch nothing but its own stack and its call: no allocation, no
//! lock, no panic. It relies on the spawner having one thread, all signals blocked and none
//! ignored (`server` sees to that). This module does not know tasks. Next: `plan`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::ptr;

use crate::limits::CHILD_STACK_BYTES;
use crate::plan::{Failure, Plan, Pointers};
use crate::{Limits, Step};

const GUARD_BYTES: usize = 64 << 10;

/// Starts processes, one at a time, on a stack that is used again for each.
pub(crate) struct Launcher {
    stack: *mut c_void,
    own: libc::pid_t,
}

impl Launcher {
    /// Sets a stack aside, with a guard below it.
    pub(crate) fn new() -> io::Result<Launcher> {
        let (length, access) = (
            GUARD_BYTES + CHILD_STACK_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
        );
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: a fresh anonymous mapping touches no existing memory; the guard is its part.
        let stack = unsafe {
            let stack = libc::mmap(ptr::null_mut(), length, access, kind, -1, 0);
            if stack == libc::MAP_FAILED || libc::mprotect(stack, GUARD_BYTES, libc::PROT_NONE) != 0
            {
                return Err(io::Error::last_os_error());
            }
            stack
        };
        // SAFETY: it only reads a number.
        Ok(Launcher {
            stack,
            own: unsafe { libc::getpid() },
        })
    }

    /// Starts the program. When it returns, either the program runs or nothing remains.
    pub(crate) fn launch(&mut self, plan: &mut Plan<'_>) -> Result<u32, Failure> {
        let mut call = Call {
            plan,
            own: self.own,
            failure: None,
        };
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the parent is suspended until the child has left this memory, so `call` and the
        // stack outlive the child's use of them; `run_child` keeps the rules above.
        let pid = unsafe {
            let top = self.stack.byte_add(GUARD_BYTES + CHILD_STACK_BYTES);
            libc::clone(run_child, top, flags, ptr::from_mut(&mut call).cast())
        };
        if pid < 0 {
            return Err(Failure {
                step: Step::Process,
                errno: errno(),
            });
        }
        match call.failure {
            None => Ok(pid.unsigned_abs()),
            Some(failure) => {
                // SAFETY: the child is ours and has ended; collecting it leaves nothing behind.
                unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
                Err(failure)
            }
        }
    }
}

struct Call<'a, 'b> {
    plan: &'a mut Plan<'b>,
    own: libc::pid_t,
    failure: Option<Failure>,
}

extern "C" fn run_child(argument: *mut c_void) -> c_int {
    // SAFETY: `launch` passes its call, which no other code touches while the child runs.
    let call = unsafe { &mut *argument.cast::<Call<'_, '_>>() };
    // SAFETY: this is the child.
    call.failure = unsafe { become_program(call.plan, call.own) }.err();
    // SAFETY: ends the child without running anything of the parent's.
    unsafe { libc::_exit(127) }
}

/// Never returns `Ok`: then the program has taken over.
///
/// # Safety
/// Only in a child made by `launch`.
unsafe fn become_program(plan: &mut Plan<'_>, parent: libc::pid_t) -> Result<(), Failure> {
    // SAFETY: plain system calls on values that the plan keeps alive.
    unsafe {
        check(Step::Process, libc::setpgid(0, 0))?;
        check(
            Step::Process,
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
        )?;
        if libc::getppid() != parent {
            return Err(Failure {
                step: Step::Process,
                errno: libc::ESRCH,
            });
        }
        set_limits(&plan.limits)?;
        if let Some(folder) = plan.folder {
            check(Step::Folder, libc::chdir(folder.as_ptr()))?;
        }
        for (source, target) in &plan.moves {
            check(Step::Descriptor, libc::dup2(*source, *target))?;
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        check(
            Step::Process,
            libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut()),
        )?;
        Err(Failure {
            step: Step::Program,
            errno: run(plan),
        })
    }
}

/// # Safety
/// Only in a child made by `launch`.
unsafe fn set_limits(limits: &Limits) -> Result<(), Failure> {
    let set = |resource, bytes| {
        let limit = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: bytes,
        };
        // SAFETY: the kernel only reads the limit.
        check(Step::Limits, unsafe { libc::setrlimit(resource, &limit) })
    };
    if let Some(bytes) = limits.address_space_bytes_max {
        set(libc::RLIMIT_AS, bytes)?;
    }
    if let Some(bytes) = limits.file_bytes_max {
        set(libc::RLIMIT_FSIZE, bytes)?;
    }
    Ok(())
}

/// Runs what the plan has to be run if it can be, else its program; returns why neither runs.
///
/// # Safety
/// Only in a child made by `launch`.
unsafe fn run(plan: &mut Plan<'_>) -> i32 {
    // SAFETY: as promised by the caller; the lists end with null and their strings are alive.
    unsafe {
        if let Some((candidates, arguments)) = &plan.direct {
            run_directly(candidates, arguments, &plan.environment);
        }
        run_first(plan)
    }
}

/// Runs the first candidate that can be run, as a shell finds it; returns if there is none, or at
/// one of which only a shell knows what it is.
///
/// # Safety
/// As for `execute`.
unsafe fn run_directly(candidates: &[CString], arguments: &Pointers, environment: &Pointers) {
    for candidate in candidates {
        // SAFETY: as promised by the caller.
        let errno = unsafe { execute(candidate, arguments, environment) };
        if !matches!(errno, libc::ENOENT | libc::ENOTDIR | libc::EACCES) {
            return;
        }
    }
}

/// Runs the first candidate that can be run; returns why there is none. A folder that does not
/// hold the program is passed over, and a file that may not be run counts when no other is found.
///
/// # Safety
/// Only in a child made by `launch`.
unsafe fn run_first(plan: &mut Plan<'_>) -> i32 {
    let Plan {
        candidates,
        arguments,
        shell_arguments,
        environment,
        ..
    } = plan;
    let mut worst = libc::ENOENT;
    for candidate in candidates {
        // SAFETY: the lists end with null and their strings are alive.
        match unsafe { execute(candidate, arguments, environment) } {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => worst = libc::EACCES,
            libc::ENOEXEC => {
                let slot = shell_arguments.as_mut_ptr();
                // SAFETY: the shell's arguments are at least `sh`, the file and the final null.
                unsafe {
                    slot.add(1).write(candidate.as_ptr());
                    return execute(c"/bin/sh", shell_arguments, environment);
                }
            }
            errno => return errno,
        }
    }
    worst
}

/// # Safety
/// Both lists must end with null and lead to living strings.
unsafe fn execute(path: &CStr, arguments: &Pointers, environment: &Pointers) -> i32 {
    let arguments: *const *const c_char = arguments.as_ptr();
    // SAFETY: as promised by the caller.
    unsafe { libc::execve(path.as_ptr(), arguments, environment.as_ptr()) };
    errno()
}

fn check(step: Step, result: c_int) -> Result<(), Failure> {
    if result < 0 {
        Err(Failure {
            step,
            errno: errno(),
        })
    } else {
        Ok(())
    }
}

fn errno() -> i32 {
    // SAFETY: the location is that of the only thread.
    unsafe { *libc::__errno_location() }
}
