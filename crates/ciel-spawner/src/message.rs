//! The language of the socket between engine and spawner.
//!
//! Plain values. This module does not know how they travel (`wire`) or what happens on them
//! (`server`). Arguments, environments and paths are byte strings without a zero byte, as the
//! kernel takes them; they need not be UTF-8. Processes are numbered by the kernel's id.

use std::ffi::CString;

use serde::{Deserialize, Serialize};

use crate::{Cookie, Refusal};

/// The first message of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// The run whose processes these are.
    pub cookie: Cookie,
    /// Entries `NAME=value` that [`Environment::Additions`] adds to.
    pub environment: Vec<CString>,
}

/// The requests of the engine. They are obeyed in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Start a process. Answered by `Started` and later `Exited`, or by `Refused` alone.
    Start(Box<Start>),
    /// Send a signal to the first process of a task, or to its process group. Nothing happens,
    /// and nothing is answered, when that process has ended already.
    Kill {
        /// The task.
        id: u64,
        /// The signal's number.
        signal: i32,
        /// Whether the whole process group gets it.
        group: bool,
    },
    /// Kill every process of a task at once, wherever it fled.
    KillTree {
        /// The task.
        id: u64,
    },
    /// A start that waits begins now; nothing happens when it waits no more.
    Begin {
        /// The task.
        id: u64,
    },
    /// A start that waits does not begin. Answered by `Withdrawn`; nothing happens, and nothing is
    /// answered, when it waits no more.
    Withdraw {
        /// The task.
        id: u64,
    },
    /// Make a folder read-only for all processes that are started from now on, as far as the system
    /// allows it: it usually does to root, whom permissions do not bind. Not answered.
    Protect {
        /// The folder.
        folder: CString,
    },
    /// Kill every process of the run and end. The socket is closed when that is done.
    Shutdown,
}

/// A process to be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The engine's number for it; free again after `Refused` or `Exited`.
    pub id: u64,
    /// The task's part of the cookie: 1 to 256 printable ASCII characters, no blank, and unlike
    /// that of every task that runs at the same time.
    pub task: String,
    /// The program and its arguments. A program without a slash is searched in the `PATH` of
    /// the task's own environment; a file without a known format is run by `/bin/sh`.
    pub program: Vec<CString>,
    /// A program and its arguments that are run in place of `program` if they can be. They are
    /// searched in the same way; a file without a known format counts as one that cannot be run.
    pub direct: Option<Vec<CString>>,
    /// The environment, without the cookie, which the spawner adds.
    pub environment: Environment,
    /// The working folder; the spawner's own when absent.
    pub folder: Option<CString>,
    /// Standard input.
    pub stdin: Input,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
    /// Further descriptors: number in the new process, index in the request's descriptors.
    pub descriptors: Vec<(i32, u32)>,
    /// Bounds that the kernel enforces.
    pub limits: Limits,
    /// The number of a further descriptor, with which the process may leave a template behind: it
    /// then finds it in [`crate::TEMPLATE_VARIABLE`]. It is a socket of datagrams. The template is
    /// forked before the process does anything that is its own; it is adopted by the spawner, ends
    /// with it, and carries a mark of its own. Its number comes over the socket, in four bytes, the
    /// lowest first, before it is adopted. Each datagram to it is a request for a process, with the
    /// entry of that one's cookie and these descriptors: one for the answer, then those for the
    /// numbers 0, 1, 2 and the others in their order. The new process, once it is adopted, sends
    /// its number in four bytes as the answer, and continues when a byte comes. If the end of the
    /// file comes, or the answer cannot be sent, it kills itself.
    pub template: Option<i32>,
    /// It begins, and is answered, only on request, or when a process has ended that passes its
    /// slot on. Of those that wait the first one begins then.
    pub waits: bool,
    /// A start that waits may begin when this process has exited with 0 and left these files,
    /// unless it was signalled on request. None if it may not.
    pub passes_on: Option<Vec<CString>>,
}

impl Start {
    /// A process with the base environment, the spawner's folder and all three streams null.
    pub fn new(id: u64, task: &str, program: Vec<CString>) -> Start {
        Start {
            id,
            task: task.to_owned(),
            program,
            direct: None,
            environment: Environment::Additions(Vec::new()),
            folder: None,
            stdin: Input::Null,
            stdout: Output::Null,
            stderr: Output::Null,
            descriptors: Vec::new(),
            limits: Limits::default(),
            template: None,
            waits: false,
            passes_on: None,
        }
    }
}

/// The environment of a task; entries are `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Environment {
    /// These entries and no others.
    Full(Vec<CString>),
    /// The base environment, with these entries added or put in place of their namesakes.
    Additions(Vec<CString>),
}

/// Where standard input comes from. Relative paths start at the spawner's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// Nothing: an end of file at once.
    Null,
    /// A file that exists.
    Path(CString),
    /// A descriptor of the request, by its index.
    Fd(u32),
}

/// Where an output stream goes. Relative paths start at the spawner's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// The stream is discarded.
    Null,
    /// A file, created or emptied.
    Path(CString),
    /// A descriptor of the request, by its index.
    Fd(u32),
}

/// Bounds on one process, inherited by its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Most bytes of address space.
    pub address_space_bytes_max: Option<u64>,
    /// Most bytes in a file that it writes.
    pub file_bytes_max: Option<u64>,
}

/// The reports of the spawner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The process runs the program.
    Started {
        /// The task.
        id: u64,
        /// Its first process, which is also the number of its process group.
        pid: u32,
    },
    /// The process could not be started; nothing of it remains.
    Refused {
        /// The task.
        id: u64,
        /// Why the process was not started.
        refusal: Refusal,
    },
    /// A start that waited was withdrawn; nothing of it remains.
    Withdrawn {
        /// The task.
        id: u64,
    },
    /// A start that waited has begun, because a process has exited that passes its slot on. The
    /// `Exited` of that one follows, then the `Started` of the other.
    Passed {
        /// The task whose process has exited.
        id: u64,
        /// The task that has begun.
        next: u64,
    },
    /// The first process has ended and what it left behind is gone.
    Exited {
        /// The task.
        id: u64,
        /// Its first process.
        pid: u32,
        /// How that process ended, and what it used.
        exit: Exit,
        /// Processes that were still running then and were killed; at most
        /// [`crate::limits::LEFT_NAMED_MAX`] of them. Empty after `KillTree`; after `Kill`
        /// of a group without the members of that group.
        left: Vec<Left>,
        /// How many there were, of those that could be named.
        left_count: u32,
    },
}

/// The end of a process, with what it and the children it waited for used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// How it ended.
    pub status: Status,
    /// Processor time in user mode.
    pub user_us: u64,
    /// Processor time in the kernel.
    pub system_us: u64,
    /// The most memory that one of these processes had resident.
    pub resident_bytes_max: u64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It exited with this code, 0 to 255.
    Code(i32),
    /// It was killed by this signal; true when it left a core file.
    Signal(i32, bool),
}

/// A process that a task left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Its number.
    pub pid: u32,
    /// Its command line, cut to [`crate::limits::COMMAND_BYTES_MAX`].
    pub command: String,
}
