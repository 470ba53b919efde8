//! Everything a start needs, prepared before the child exists.
//!
//! Between its birth and its program a child may neither allocate nor fail in complicated ways,
//! so files are opened, paths joined and pointers laid out here. This module does not know how
//! processes are made. Next: `launch`.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use rustix::fs::{Mode, OFlags};

use crate::cookie::{COOKIE_VARIABLE, TEMPLATE_VARIABLE, is_task_name};
use crate::message::Greeting;
use crate::{Cookie, Environment, Input, Limits, Output, Refusal, Start, Step};

/// Where programs are searched when the task's environment has no `PATH`.
const PATH_DEFAULT: &[u8] = b"/bin:/usr/bin";

const NULL: &CStr = c"/dev/null";

/// What is common to all tasks of a run.
pub(crate) struct Base {
    pub cookie: Cookie,
    environment: Vec<CString>,
    enclosing: Vec<u8>,
    /// The null device, to be read; none if it could not be opened.
    null: Option<OwnedFd>,
}

impl Base {
    /// Takes the engine's greeting; the marks of tasks around the engine are set apart.
    pub(crate) fn new(greeting: Greeting) -> Base {
        let Greeting {
            cookie,
            mut environment,
        } = greeting;
        let is = |entry: &CString, variable: &str| name(entry) == variable.as_bytes();
        let own = |entry: &CString| is(entry, COOKIE_VARIABLE);
        let enclosing = environment.iter().find(|entry| own(entry));
        let enclosing = enclosing
            .map(|entry| value(entry).to_vec())
            .unwrap_or_default();
        environment.retain(|entry| !own(entry) && !is(entry, TEMPLATE_VARIABLE));
        Base {
            cookie,
            environment,
            enclosing,
            null: open_at_once(NULL, OFlags::RDONLY).ok(),
        }
    }

    fn entries<'a>(&'a self, environment: &'a Environment) -> Vec<&'a CStr> {
        let own = [COOKIE_VARIABLE.as_bytes(), TEMPLATE_VARIABLE.as_bytes()];
        let keep = |entry: &&CString| !own.contains(&name(entry));
        let (base, added) = match environment {
            Environment::Full(entries) => (&[][..], entries),
            Environment::Additions(entries) => (&self.environment[..], entries),
        };
        let replaced = |entry: &&CString| !added.iter().any(|other| name(other) == name(entry));
        let base = base.iter().filter(replaced);
        base.chain(added.iter().filter(keep))
            .map(CString::as_c_str)
            .collect()
    }
}

fn name(entry: &CStr) -> &[u8] {
    let bytes = entry.to_bytes();
    bytes.split(|&byte| byte == b'=').next().unwrap_or(bytes)
}

fn value(entry: &CStr) -> &[u8] {
    entry
        .to_bytes()
        .get(name(entry).len() + 1..)
        .unwrap_or_default()
}

/// A list of strings as the kernel takes it: pointers, the last one null.
pub(crate) type Pointers = Vec<*const c_char>;

/// A step that failed, with the kernel's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub step: Step,
    pub errno: i32,
}

/// A prepared start. The pointers lead into the request, the base and the plan's own strings.
pub(crate) struct Plan<'a> {
    /// What is run if it can be: the paths to try, in order, and the arguments.
    pub direct: Option<(Vec<CString>, Pointers)>,
    /// The paths to try, in order.
    pub candidates: Vec<CString>,
    /// The program's arguments.
    pub arguments: Pointers,
    /// The arguments when a shell must run the program; the second one is to be filled in.
    pub shell_arguments: Pointers,
    /// The environment.
    pub environment: Pointers,
    /// The folder to enter.
    pub folder: Option<&'a CStr>,
    /// Descriptor here, number there; no source is the number of a target.
    pub moves: Vec<(RawFd, RawFd)>,
    /// The limits to set.
    pub limits: Limits,
    mark: CString,
    template_entry: Option<CString>,
    opened: Vec<OwnedFd>,
}

impl<'a> Plan<'a> {
    /// Prepares a start. The refusal names what could not be opened or makes no sense.
    pub(crate) fn new(
        base: &'a Base,
        start: &'a Start,
        given: &'a [OwnedFd],
    ) -> Result<Plan<'a>, Refusal> {
        let subject = || subject_of(start);
        let nonsense = || refusal(Step::Request, libc::EINVAL, subject());
        let program = start.program.first().ok_or_else(nonsense)?;
        if !is_task_name(&start.task) {
            return Err(nonsense());
        }
        let mark = CString::new(base.cookie.entry(&base.enclosing, &start.task));
        let mark = mark.map_err(|_| nonsense())?;
        let entries = base.entries(&start.environment);
        let path = entries.iter().find(|entry| name(entry) == b"PATH");
        let path = path.map_or(PATH_DEFAULT, |entry| value(entry));
        let mut opened = Vec::new();
        let moves = Moves {
            given,
            null: base.null.as_ref(),
            opened: &mut opened,
        }
        .lay(start)?;
        let direct = start.direct.as_deref().and_then(|words| {
            let arguments = words.iter().map(|word| word.as_ptr());
            Some((candidates(words.first()?, path), terminated(arguments)))
        });
        let arguments = start.program.iter().map(|argument| argument.as_ptr());
        let shell = [c"/bin/sh".as_ptr(), ptr::null()];
        Ok(Plan {
            direct,
            candidates: candidates(program, path),
            shell_arguments: terminated(shell.into_iter().chain(arguments.clone().skip(1))),
            arguments: terminated(arguments),
            environment: terminated(
                std::iter::once(mark.as_ptr()).chain(entries.iter().map(|entry| entry.as_ptr())),
            ),
            folder: start.folder.as_deref(),
            moves,
            limits: start.limits,
            mark,
            template_entry: None,
            opened,
        })
    }
}

impl Plan<'_> {
    /// The entry of the cookie in the environment.
    pub(crate) fn mark(&self) -> &CStr {
        &self.mark
    }

    /// The descriptors here, in the order of their numbers there.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let sources = self.moves.iter().map(|(source, _)| *source);
        // SAFETY: every source is a descriptor that this plan or its request holds open.
        sources
            .map(|source| unsafe { BorrowedFd::borrow_raw(source) })
            .collect()
    }

    /// The process may leave a template behind, by this socket under that number.
    pub(crate) fn let_leave_template(&mut self, socket: OwnedFd, number: RawFd) {
        if self.moves.iter().any(|(_, target)| *target == number) {
            return;
        }
        let targets = self.moves.iter().map(|(_, target)| *target);
        let above = targets.max().unwrap_or(0).max(number) + 1;
        // A process without the socket leaves no template, and nothing else depends on that.
        let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(&socket, above) else {
            return;
        };
        self.moves.push((socket.as_raw_fd(), number));
        self.opened.push(socket);
        let entry = CString::new(format!("{TEMPLATE_VARIABLE}={number}"));
        let entry = entry.expect("a number holds no zero byte");
        let end = self.environment.len() - 1;
        self.environment.insert(end, entry.as_ptr());
        self.template_entry = Some(entry);
    }

    /// The refusal that describes a failed start. A program that exists and yet "does not exist"
    /// lacks its interpreter; one that was not found was not "denied".
    pub(crate) fn explain(&self, start: &Start, failure: Failure) -> Refusal {
        let Failure { step, errno } = failure;
        let folder = Path::new(OsStr::from_bytes(self.folder.unwrap_or(c"").to_bytes()));
        let exists = |path: &CString| folder.join(OsStr::from_bytes(path.to_bytes())).exists();
        let found = self.candidates.iter().any(exists);
        match (step, errno) {
            (Step::Folder, _) => refusal(step, errno, folder.display().to_string()),
            (Step::Program, libc::ENOENT) if found => {
                refusal(Step::Interpreter, errno, subject_of(start))
            }
            // Only a folder of the search path may not be entered.
            (Step::Program, libc::EACCES) if !found && self.candidates.len() > 1 => {
                refusal(step, libc::ENOENT, subject_of(start))
            }
            _ => refusal(step, errno, subject_of(start)),
        }
    }
}

fn terminated(pointers: impl Iterator<Item = *const c_char>) -> Pointers {
    pointers.chain(std::iter::once(ptr::null())).collect()
}

/// The program's name for messages.
pub(crate) fn subject_of(start: &Start) -> String {
    start
        .program
        .first()
        .map(|program| lossy(program))
        .unwrap_or_default()
}

pub(crate) fn lossy(text: &CStr) -> String {
    text.to_string_lossy().into_owned()
}

pub(crate) fn refusal(step: Step, errno: i32, subject: String) -> Refusal {
    Refusal {
        step,
        errno,
        subject,
    }
}

/// A program with a slash is a path; another one is looked for in each folder of the `PATH`, of
/// which an empty one is the working folder.
fn candidates(program: &CStr, path: &[u8]) -> Vec<CString> {
    if program.to_bytes().is_empty() || program.to_bytes().contains(&b'/') {
        return vec![program.to_owned()];
    }
    let join = |folder: &[u8]| {
        let slash: &[u8] = if folder.is_empty() { b"" } else { b"/" };
        let joined = [folder, slash, program.to_bytes()].concat();
        CString::new(joined).expect("its parts hold no zero byte")
    };
    path.split(|&byte| byte == b':').map(join).collect()
}

/// Lays out the descriptors of the new process.
struct Moves<'a> {
    given: &'a [OwnedFd],
    null: Option<&'a OwnedFd>,
    opened: &'a mut Vec<OwnedFd>,
}

impl Moves<'_> {
    fn lay(mut self, start: &Start) -> Result<Vec<(RawFd, RawFd)>, Refusal> {
        let mut moves = vec![
            (self.input(&start.stdin)?, 0),
            (self.output(Step::Output, &start.stdout)?, 1),
            (self.output(Step::ErrorOutput, &start.stderr)?, 2),
        ];
        for &(target, index) in &start.descriptors {
            if target < 3 || moves.iter().any(|(_, taken)| *taken == target) {
                return Err(refusal(Step::Request, libc::EINVAL, subject_of(start)));
            }
            moves.push((self.pick(index)?, target));
        }
        let above = moves
            .iter()
            .map(|(_, target)| *target)
            .chain(start.template)
            .map(|target| target + 1)
            .max()
            .unwrap_or(3);
        for (source, _) in &mut moves {
            if *source < above {
                *source = self.raise(*source, above)?;
            }
        }
        Ok(moves)
    }

    fn pick(&self, index: u32) -> Result<RawFd, Refusal> {
        let picked = self.given.get(index as usize).map(AsRawFd::as_raw_fd);
        picked.ok_or_else(|| refusal(Step::Descriptor, libc::EBADF, index.to_string()))
    }

    /// A copy with a number that no target has.
    fn raise(&mut self, source: RawFd, above: RawFd) -> Result<RawFd, Refusal> {
        // SAFETY: every source is a descriptor that this plan or its request holds open.
        let source = unsafe { BorrowedFd::borrow_raw(source) };
        let copy = rustix::io::fcntl_dupfd_cloexec(source, above).map_err(|errno| {
            refusal(
                Step::Descriptor,
                errno.raw_os_error(),
                source.as_raw_fd().to_string(),
            )
        })?;
        Ok(self.keep(copy))
    }

    fn keep(&mut self, descriptor: OwnedFd) -> RawFd {
        let number = descriptor.as_raw_fd();
        self.opened.push(descriptor);
        number
    }

    fn input(&mut self, input: &Input) -> Result<RawFd, Refusal> {
        let path = match (input, self.null) {
            (Input::Null, Some(null)) => return Ok(null.as_raw_fd()),
            (Input::Null, None) => NULL,
            (Input::Path(path), _) => path,
            (Input::Fd(index), _) => return self.pick(*index),
        };
        self.open(Step::Input, path, OFlags::RDONLY)
    }

    fn output(&mut self, step: Step, output: &Output) -> Result<RawFd, Refusal> {
        match output {
            Output::Null => self.open(step, NULL, OFlags::WRONLY),
            Output::Path(path) => self.emptied(step, path),
            Output::Fd(index) => self.pick(*index),
        }
    }

    fn open(&mut self, step: Step, path: &CStr, flags: OFlags) -> Result<RawFd, Refusal> {
        self.opened(step, path, open_at_once(path, flags))
    }

    /// Empties a file, unless it is empty: a file system takes its time for that, too.
    fn emptied(&mut self, step: Step, path: &CStr) -> Result<RawFd, Refusal> {
        let file = open_at_once(path, OFlags::WRONLY | OFlags::CREATE);
        let emptied = file.and_then(|file| {
            if rustix::fs::fstat(&file)?.st_size > 0 {
                rustix::fs::ftruncate(&file, 0)?;
            }
            Ok(file)
        });
        self.opened(step, path, emptied)
    }

    fn opened(
        &mut self,
        step: Step,
        path: &CStr,
        opened: io::Result<OwnedFd>,
    ) -> Result<RawFd, Refusal> {
        match opened {
            Ok(file) => Ok(self.keep(file)),
            Err(error) => Err(refusal(
                step,
                error.raw_os_error().unwrap_or(libc::EIO),
                lossy(path),
            )),
        }
    }
}

/// Opens a file without waiting: a named pipe without a partner must not stop the spawner.
fn open_at_once(path: &CStr, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o666))?;
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn base(entries: &[&str]) -> Base {
        let environment = entries
            .iter()
            .map(|entry| CString::new(*entry).unwrap())
            .collect();
        Base::new(Greeting {
            cookie: Cookie::new("run").unwrap(),
            environment,
        })
    }

    #[test]
    fn addition_takes_the_place_of_its_namesake() {
        let base = base(&["A=1", "AB=2", "CIEL_COOKIE=outer:x"]);
        let additions = Environment::Additions(vec![c"A=9".to_owned()]);
        assert_eq!(base.entries(&additions), [c"AB=2", c"A=9"]);
        assert_eq!(base.enclosing, b"outer:x");
    }

    #[test]
    fn program_is_searched_in_every_folder_unless_it_has_a_slash() {
        assert_eq!(candidates(c"p", b"/a::/b"), [c"/a/p", c"p", c"/b/p"]);
        assert_eq!(candidates(c"./p", b"/a"), [c"./p"]);
        assert_eq!(candidates(c"", b"/a"), [c""]);
    }

    #[test]
    fn target_given_twice_is_refused() {
        let (base, given) = (
            base(&[]),
            [std::io::stdin().as_fd().try_clone_to_owned().unwrap()],
        );
        let mut start = Start::new(1, "t", vec![c"p".to_owned()]);
        start.descriptors = vec![(3, 0), (3, 0)];
        let refusal = Plan::new(&base, &start, &given).err().unwrap();
        assert_eq!(refusal.step, Step::Request);
    }
}
