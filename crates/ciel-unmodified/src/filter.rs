//! Which calls of a supervised process stop it: a program for the kernel's filter of calls.
//!
//! Stopped are the calls that start a process, the first calls of a new one, and, where files are
//! ordered, those that open, look at or remove files. All others keep their native speed. It knows
//! numbers of calls and does not install anything. Read next: `listener`.

use libc::{c_long, sock_filter};

/// A call of the wrong kind of machine is not ours to judge: 32-bit programs run unordered.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Where in the kernel's `struct seccomp_data` the number, the architecture and the low half of the
/// first argument are.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const FIRST_ARGUMENT_AT: u32 = 16;

/// Numbers from here on belong to the other ABI of the same machine.
#[cfg(target_arch = "x86_64")]
const OTHER_ABI: u32 = 0x4000_0000;

/// What starts a process or is the first call of one: a forked child of glibc begins with
/// `set_robust_list`, one of musl with `set_tid_address`, one of `vfork` with `execve`.
#[cfg(target_arch = "x86_64")]
const PROCESS_CALLS: &[c_long] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
];
#[cfg(target_arch = "aarch64")]
const PROCESS_CALLS: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
];

/// What names a file by its path and sees or changes what it holds.
#[cfg(target_arch = "x86_64")]
const FILE_CALLS: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_stat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_truncate,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
];
#[cfg(target_arch = "aarch64")]
const FILE_CALLS: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_truncate,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
];

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
#[cfg(target_arch = "x86_64")]
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;

/// The program. A thread, and a process that shares its descriptors, passes: what they write cannot
/// be told apart. `clone3` is refused as unknown, since its flags are out of a filter's sight; the
/// C libraries then use `clone`. What a process does when a child ends is stopped, too: see
/// `traps`.
pub(crate) fn program(with_files: bool) -> Vec<sock_filter> {
    let mut steps = vec![
        step(LOAD, 0, 0, ARCHITECTURE_AT),
        step(IF_EQUAL, 1, 0, ARCHITECTURE),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(LOAD, 0, 0, NUMBER_AT),
    ];
    #[cfg(target_arch = "x86_64")]
    {
        steps.push(step(IF_AT_LEAST, 0, 1, OTHER_ABI));
        steps.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    }
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    push_case(&mut steps, libc::SYS_clone3, unknown);
    let files = if with_files { FILE_CALLS } else { &[] };
    for number in PROCESS_CALLS.iter().chain(files) {
        push_case(&mut steps, *number, libc::SECCOMP_RET_USER_NOTIF);
    }
    steps.extend([
        step(IF_EQUAL, 0, 4, libc::SYS_rt_sigaction as u32),
        step(LOAD, 0, 0, FIRST_ARGUMENT_AT),
        step(IF_EQUAL, 1, 0, libc::SIGCHLD as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
    ]);
    let shared = (libc::CLONE_THREAD | libc::CLONE_FILES) as u32;
    steps.extend([
        step(IF_EQUAL, 0, 4, libc::SYS_clone as u32),
        step(LOAD, 0, 0, FIRST_ARGUMENT_AT),
        step(IF_ANY_BIT, 0, 1, shared),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]);
    steps
}

/// The call of this number ends in `verdict`.
fn push_case(steps: &mut Vec<sock_filter>, number: c_long, verdict: u32) {
    steps.push(step(IF_EQUAL, 0, 1, number as u32));
    steps.push(step(RETURN, 0, 0, verdict));
}

fn step(code: u16, if_so: u8, if_not: u8, operand: u32) -> sock_filter {
    sock_filter {
        code,
        jt: if_so,
        jf: if_not,
        k: operand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program says about a call of this number and first argument.
    fn verdict(with_files: bool, architecture: u32, number: c_long, argument: u32) -> u32 {
        let steps = program(with_files);
        let (mut at, mut value) = (0, 0);
        loop {
            let now = steps[at];
            let holds = match now.code {
                LOAD => {
                    value = match now.k {
                        NUMBER_AT => number as u32,
                        ARCHITECTURE_AT => architecture,
                        FIRST_ARGUMENT_AT => argument,
                        other => panic!("loads from {other}"),
                    };
                    at += 1;
                    continue;
                }
                RETURN => return now.k,
                IF_EQUAL => value == now.k,
                IF_ANY_BIT => value & now.k != 0,
                _ => value >= now.k,
            };
            at += 1 + usize::from(if holds { now.jt } else { now.jf });
        }
    }

    #[test]
    fn start_of_a_process_stops_and_start_of_a_thread_passes() {
        let of_clone = |flags: i32| verdict(false, ARCHITECTURE, libc::SYS_clone, flags as u32);
        assert_eq!(of_clone(libc::SIGCHLD), libc::SECCOMP_RET_USER_NOTIF);
        let spawned = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        assert_eq!(of_clone(spawned), libc::SECCOMP_RET_USER_NOTIF);
        let thread = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_THREAD;
        assert_eq!(of_clone(thread), libc::SECCOMP_RET_ALLOW);
        assert_eq!(of_clone(libc::CLONE_FILES), libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn calls_on_files_stop_only_if_files_are_ordered() {
        let of_open = |with_files| verdict(with_files, ARCHITECTURE, libc::SYS_openat, 0);
        assert_eq!(of_open(false), libc::SECCOMP_RET_ALLOW);
        assert_eq!(of_open(true), libc::SECCOMP_RET_USER_NOTIF);
        for number in [libc::SYS_write, libc::SYS_read, libc::SYS_close] {
            assert_eq!(
                verdict(true, ARCHITECTURE, number, 1),
                libc::SECCOMP_RET_ALLOW
            );
        }
    }

    #[test]
    fn handlers_of_ended_children_stop_and_other_handlers_pass() {
        let of_handler = |signal: i32| {
            let number = libc::SYS_rt_sigaction;
            verdict(false, ARCHITECTURE, number, signal as u32)
        };
        assert_eq!(of_handler(libc::SIGCHLD), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(of_handler(libc::SIGTERM), libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn foreign_call_passes_and_unfilterable_start_is_unknown() {
        let foreign = verdict(true, ARCHITECTURE ^ 1, libc::SYS_execve, 0);
        assert_eq!(foreign, libc::SECCOMP_RET_ALLOW);
        let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
        assert_eq!(verdict(false, ARCHITECTURE, libc::SYS_clone3, 0), unknown);
    }
}
