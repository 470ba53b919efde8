//! Bare processes: started by `posix_spawn`, timed, waited for with what they used.
//!
//! Ciel and what it is compared with are started by the same few lines. It does not know what the
//! programs do.

use std::ffi::{CString, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A program ready to be started, as often as wanted.
#[derive(Clone, Debug)]
pub struct Launch {
    words: Vec<CString>,
    environment: Vec<CString>,
    stdout: Option<CString>,
    stderr: Option<CString>,
}

/// What a process that ended well took.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// From just before its start to its end.
    pub elapsed: Duration,
    /// Processor time of it and of every process that it waited for.
    pub processor: Duration,
    /// Most bytes of memory that it, or one process that it waited for, had resident.
    pub resident_bytes_max: u64,
}

/// A process that has been started.
#[derive(Debug)]
pub struct Process {
    /// Its process id.
    pub pid: libc::pid_t,
    begun: Instant,
}

impl Launch {
    /// A program, found by `PATH`, with its arguments and the environment of this process.
    ///
    /// # Errors
    /// If a word holds a zero byte.
    pub fn new<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Result<Launch> {
        let words = words.into_iter().map(|word| c_string(word.as_ref()));
        let mut launch = Launch {
            words: words.collect::<Result<_>>()?,
            environment: Vec::new(),
            stdout: None,
            stderr: None,
        };
        for (name, value) in std::env::vars_os() {
            launch = launch.with(&name, &value)?;
        }
        Ok(launch)
    }

    /// One variable more.
    ///
    /// # Errors
    /// If it holds a zero byte.
    pub fn with(mut self, name: &OsStr, value: &OsStr) -> Result<Launch> {
        let mut entry = name.to_os_string();
        entry.push("=");
        entry.push(value);
        self.environment.push(c_string(&entry)?);
        Ok(self)
    }

    /// Standard output goes to a file, which is made or cut to nothing.
    ///
    /// # Errors
    /// If the path holds a zero byte.
    pub fn stdout_to(mut self, path: &Path) -> Result<Launch> {
        self.stdout = Some(c_string(path.as_os_str())?);
        Ok(self)
    }

    /// Standard error goes to a file, which is made or cut to nothing.
    ///
    /// # Errors
    /// If the path holds a zero byte.
    pub fn stderr_to(mut self, path: &Path) -> Result<Launch> {
        self.stderr = Some(c_string(path.as_os_str())?);
        Ok(self)
    }

    /// Starts it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn start(&self) -> Result<Process> {
        let begun = Instant::now();
        let mut words: Vec<*mut libc::c_char> = pointers(&self.words);
        words.push(null_mut());
        let mut environment = pointers(&self.environment);
        environment.push(null_mut());
        let mut actions = FileActions::new()?;
        for (descriptor, path) in [(1, &self.stdout), (2, &self.stderr)] {
            if let Some(path) = path {
                actions.open(descriptor, path)?;
            }
        }
        let mut pid = 0;
        // SAFETY: all strings and arrays outlive the call, the arrays end in null, and the file
        // actions have been initialised.
        let refused = unsafe {
            libc::posix_spawnp(
                &mut pid,
                self.words[0].as_ptr(),
                &actions.0,
                std::ptr::null(),
                words.as_ptr(),
                environment.as_ptr(),
            )
        };
        if refused != 0 {
            let error = std::io::Error::from_raw_os_error(refused);
            return Err(error).with_context(|| format!("starting {:?}", self.words[0]));
        }
        Ok(Process { pid, begun })
    }

    /// Starts it and waits until it has ended.
    ///
    /// # Errors
    /// If it cannot be started or does not end well.
    pub fn run(&self) -> Result<Spent> {
        self.start()?.wait()
    }
}

impl Process {
    /// Waits until it has ended.
    ///
    /// # Errors
    /// If it does not end well.
    pub fn wait(self) -> Result<Spent> {
        let (pid, status, usage) = wait_for(self.pid)?;
        let elapsed = self.begun.elapsed();
        check(pid, status)?;
        Ok(Spent {
            elapsed,
            processor: duration(usage.ru_utime) + duration(usage.ru_stime),
            resident_bytes_max: usage.ru_maxrss as u64 * 1024,
        })
    }

    /// Sends it a signal; `SIGKILL` ends it whatever it does.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: the process is ours and has not been waited for, so its id is its own.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// Waits until it has ended, however.
    pub fn bury(self) {
        // Only a process that is gone cannot be waited for.
        let _ = wait_for(self.pid);
    }
}

/// Waits for whichever child ends first; gives its process id.
///
/// # Errors
/// If there is none, or it does not end well.
pub fn wait_any() -> Result<libc::pid_t> {
    let (pid, status, _) = wait_for(-1)?;
    check(pid, status)?;
    Ok(pid)
}

fn wait_for(pid: libc::pid_t) -> Result<(libc::pid_t, libc::c_int, libc::rusage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to values that outlive the call.
    let ended = unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) };
    if ended < 0 {
        return Err(std::io::Error::last_os_error()).context("waiting for a process");
    }
    // SAFETY: the kernel has filled it in, and all bit patterns are valid.
    Ok((ended, status, unsafe { usage.assume_init() }))
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
}

fn check(pid: libc::pid_t, status: libc::c_int) -> Result<()> {
    if status != 0 {
        bail!("process {pid} ended with wait status {status:#x}");
    }
    Ok(())
}

struct FileActions(libc::posix_spawn_file_actions_t);

impl FileActions {
    fn new() -> Result<FileActions> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: the pointer is to room for the value, which the call initialises.
        let refused = unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) };
        if refused != 0 {
            bail!("there is no memory for file actions");
        }
        // SAFETY: initialised just now.
        Ok(FileActions(unsafe { actions.assume_init() }))
    }

    fn open(&mut self, descriptor: libc::c_int, path: &CString) -> Result<()> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
        // SAFETY: the value has been initialised, and the call copies the path.
        let refused = unsafe {
            libc::posix_spawn_file_actions_addopen(
                &mut self.0,
                descriptor,
                path.as_ptr(),
                flags,
                0o644,
            )
        };
        if refused != 0 {
            bail!("there is no memory for file actions");
        }
        Ok(())
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: initialised, and not used afterwards.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

fn pointers(strings: &[CString]) -> Vec<*mut libc::c_char> {
    strings.iter().map(|one| one.as_ptr().cast_mut()).collect()
}

fn c_string(word: &OsStr) -> Result<CString> {
    CString::new(word.as_bytes()).context("a word with a zero byte")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_that_ends_well_tells_what_it_took() {
        let spent = Launch::new(["true"]).unwrap().run().unwrap();
        assert!(spent.elapsed > Duration::ZERO && spent.resident_bytes_max > 0);
    }

    #[test]
    fn program_that_fails_is_an_error() {
        assert!(Launch::new(["false"]).unwrap().run().is_err());
    }

    #[test]
    fn output_goes_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let launch = Launch::new(["sh", "-c", "echo $WORD"]).unwrap();
        let launch = launch.with("WORD".as_ref(), "well".as_ref()).unwrap();
        launch.stdout_to(&path).unwrap().run().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "well\n");
    }
}
