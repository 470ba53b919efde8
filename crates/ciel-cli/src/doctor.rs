//! `ciel doctor`: whether this machine has what jobs need.
//!
//! Every check is independent and prints one line: what was checked, what was found, a hint. It
//! leaves nothing behind.

use std::ffi::{CString, OsStr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use ciel_spawner::{Cookie, Report, Request, Spawner, Start, Status};
use ciel_store::StateFolder;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::Access;
use serde_json::{Value, json};

use crate::SPAWNER;
use crate::cli_error::{CliError, JOB_FAILED};
use crate::display::{self, columns, size};
use crate::options::{JsonOption, Shared};
use crate::paint::{Paint, paint_output};

/// Bytes of disk below which jobs may soon be in trouble.
const SPACE_BYTES_MIN: u64 = 1 << 30;

/// Bytes of memory below which jobs may soon be in trouble.
const MEMORY_BYTES_MIN: u64 = 512 << 20;

/// Open files below which many tasks at once are in trouble.
const OPEN_FILES_MIN: u64 = 1024;

/// Time a process may take to start and end.
const START_TIME: Duration = Duration::from_secs(20);

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grade {
    Ok,
    Warning,
    Problem,
}

impl Grade {
    fn word(self) -> &'static str {
        match self {
            Grade::Ok => "ok",
            Grade::Warning => "warning",
            Grade::Problem => "problem",
        }
    }
}

/// What a check found.
#[derive(Debug)]
struct Finding {
    what: &'static str,
    grade: Grade,
    detail: String,
    hint: Option<&'static str>,
}

fn ok(what: &'static str, detail: impl Into<String>) -> Finding {
    Finding {
        what,
        grade: Grade::Ok,
        detail: detail.into(),
        hint: None,
    }
}

fn bad(what: &'static str, grade: Grade, detail: impl Into<String>, hint: &'static str) -> Finding {
    Finding {
        what,
        grade,
        detail: detail.into(),
        hint: Some(hint),
    }
}

/// Checks everything and prints the findings; ends with 1 if there is a problem.
pub fn examine(shared: &Shared, options: &JsonOption) -> Result<ExitCode, CliError> {
    let findings = [
        ok("version", format!("ciel {}", env!("CARGO_PKG_VERSION"))),
        kernel(),
        processes(),
        shell(),
        state(&shared.state),
        space(&shared.state),
        cores(),
        memory(),
        open_files(),
        spawner(),
        python(),
        plugins(),
    ];
    match options.json {
        true => display::print_json(&findings.iter().map(value).collect::<Vec<Value>>())?,
        false => display::print(table(&findings, paint_output(shared.colour)).as_bytes())?,
    };
    let problem = findings
        .iter()
        .any(|finding| finding.grade == Grade::Problem);
    Ok(if problem {
        ExitCode::from(JOB_FAILED)
    } else {
        ExitCode::SUCCESS
    })
}

fn value(finding: &Finding) -> Value {
    json!({
        "check": finding.what,
        "grade": finding.grade.word(),
        "detail": finding.detail,
        "hint": finding.hint,
    })
}

fn table(findings: &[Finding], paint: Paint) -> String {
    let row = |finding: &Finding| {
        vec![
            finding.grade.word().to_string(),
            finding.what.to_string(),
            finding.detail.clone(),
        ]
    };
    let lines = columns(&findings.iter().map(row).collect::<Vec<_>>(), "");
    let mut text = String::new();
    for (finding, line) in findings.iter().zip(lines) {
        let word = finding.grade.word();
        let painted = match finding.grade {
            Grade::Ok => paint.good(word),
            Grade::Warning => paint.warning(word),
            Grade::Problem => paint.error(word),
        };
        text.push_str(&format!("{painted}{}\n", &line[word.len()..]));
        if let Some(hint) = finding.hint {
            text.push_str(&format!("  {}: {hint}\n", paint.hint("hint")));
        }
    }
    text
}

fn kernel() -> Finding {
    let names = rustix::system::uname();
    let detail = format!(
        "{} {}",
        names.sysname().to_string_lossy(),
        names.release().to_string_lossy()
    );
    let own = rustix::process::getpid();
    match rustix::process::pidfd_open(own, rustix::process::PidfdFlags::empty()) {
        Ok(_) => ok("kernel", detail),
        Err(_) => bad(
            "kernel",
            Grade::Problem,
            format!("{detail} cannot watch processes by descriptor"),
            "Linux 5.3 or later is needed, and a sandbox must allow pidfd_open",
        ),
    }
}

fn processes() -> Finding {
    match std::fs::read("/proc/self/stat") {
        Ok(_) => ok("processes", "/proc lists them"),
        Err(error) => bad(
            "processes",
            Grade::Problem,
            format!("/proc cannot be read: {error}"),
            "mount proc on /proc; without it leftovers of tasks cannot be found",
        ),
    }
}

fn shell() -> Finding {
    match on_path("sh") {
        Some(path) => ok("shell", path.display().to_string()),
        None => bad(
            "shell",
            Grade::Problem,
            "sh was not found on PATH",
            "tasks that run shell commands need it; set PATH so that it is found",
        ),
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(program));
    files.find(|file| file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok())
}

fn state(path: &Path) -> Finding {
    let shown = path.display();
    let hint = "name another folder with --state, or run `ciel clean` for state of another version";
    match StateFolder::open_existing(path) {
        Err(error) => return bad("state", Grade::Problem, error.to_string(), hint),
        Ok(_) if path.is_file() => {
            return bad("state", Grade::Problem, format!("{shown} is a file"), hint);
        }
        Ok(_) => {}
    }
    match rustix::fs::access(nearest_folder(path), Access::WRITE_OK) {
        Ok(()) if path.is_dir() => ok("state", format!("{shown} can be written")),
        Ok(()) => ok("state", format!("{shown} can be created")),
        Err(error) => bad(
            "state",
            Grade::Problem,
            format!("{shown} cannot be written: {error}"),
            hint,
        ),
    }
}

/// The folder itself, or the nearest existing one around it.
fn nearest_folder(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut around = path.ancestors();
    around
        .find(|folder| folder.is_dir())
        .unwrap_or(Path::new("/"))
        .to_path_buf()
}

fn space(path: &Path) -> Finding {
    match rustix::fs::statvfs(nearest_folder(path)) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let detail = format!("{} free for state", size(free));
            match free < SPACE_BYTES_MIN {
                false => ok("space", detail),
                true => bad(
                    "space",
                    Grade::Warning,
                    detail,
                    "free some, or use another disk with --state",
                ),
            }
        }
        Err(error) => bad(
            "space",
            Grade::Warning,
            format!("unknown: {error}"),
            "check the disk of the state folder",
        ),
    }
}

fn cores() -> Finding {
    match std::thread::available_parallelism() {
        Ok(cores) => ok("cores", cores.to_string()),
        Err(error) => bad(
            "cores",
            Grade::Warning,
            format!("unknown: {error}"),
            "set the number with -j",
        ),
    }
}

fn memory() -> Finding {
    let info = rustix::system::sysinfo();
    let total = info.totalram.saturating_mul(u64::from(info.mem_unit));
    match total < MEMORY_BYTES_MIN {
        false => ok("memory", size(total)),
        true => bad("memory", Grade::Warning, size(total), "lower --heap and -j"),
    }
}

fn open_files() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let (soft, detail) = match limit.current {
        Some(soft) => (soft, format!("{soft} at once")),
        None => (u64::MAX, "no limit".to_string()),
    };
    match soft < OPEN_FILES_MIN {
        false => ok("open files", detail),
        true => bad(
            "open files",
            Grade::Warning,
            detail,
            "raise the limit: ulimit -n 4096",
        ),
    }
}

fn spawner() -> Finding {
    let begun = Instant::now();
    match start_one() {
        Ok(()) => {
            let milliseconds = begun.elapsed().as_secs_f64() * 1e3;
            ok(
                "spawner",
                format!("started a process and ended it in {milliseconds:.0} ms"),
            )
        }
        Err(why) => bad(
            "spawner",
            Grade::Problem,
            why,
            "tasks cannot be started; check the limits of processes and memory: ulimit -a",
        ),
    }
}

/// Starts `true` by a spawner of its own and waits for its end.
fn start_one() -> Result<(), String> {
    let said = |what: &'static str| move |error: std::io::Error| format!("cannot {what}: {error}");
    let cookie = Cookie::new(&format!("doctor-{}", std::process::id()))
        .expect("a word and a number are a cookie");
    let environment = ciel_spawner::current_environment();
    let own = Path::new("/proc/self/exe");
    let spawner = Spawner::start(own, &[OsStr::new(SPAWNER)], &cookie, &environment)
        .map_err(said("start the spawner"))?;
    let program = ["sh", "-c", ":"].map(|word| CString::new(word).expect("no zero byte"));
    let start = Start::new(0, "doctor", program.to_vec());
    spawner
        .send(&Request::Start(Box::new(start)), &[])
        .map_err(said("reach the spawner"))?;
    let end = Instant::now() + START_TIME;
    loop {
        match spawner
            .receive()
            .map_err(said("receive from the spawner"))?
        {
            Some(Report::Exited { exit, .. }) if exit.status == Status::Code(0) => return Ok(()),
            Some(Report::Exited { exit, .. }) => {
                return Err(format!("sh ended with {:?}", exit.status));
            }
            Some(Report::Refused { refusal, .. }) => return Err(refusal.to_string()),
            Some(_) => {}
            None => wait(&spawner, end)?,
        }
    }
}

/// Waits for the spawner's socket, until `end` at most.
fn wait(spawner: &Spawner, end: Instant) -> Result<(), String> {
    let told = |error: std::io::Error| format!("cannot wait for the spawner: {error}");
    spawner.flush().map_err(told)?;
    let mut events = PollFlags::IN;
    events.set(PollFlags::OUT, spawner.want_write());
    let left = end.saturating_duration_since(Instant::now());
    let limit = left.try_into().expect("seconds fit the kernel's type");
    match rustix::event::poll(&mut [PollFd::new(spawner, events)], Some(&limit)) {
        Ok(0) => Err(format!(
            "the spawner did not answer for {} s",
            START_TIME.as_secs()
        )),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(told(error.into())),
    }
}

/// Whether tasks in Python can be run, with what.
fn python() -> Finding {
    let what = "python";
    let hint = "only tasks in Python need it: pip install the wheel of ciel for that \
                interpreter, or name another one in CIEL_PYTHON";
    let found = match crate::python::find(None) {
        Ok(Some(found)) => found.interpreter,
        Ok(None) => return bad(what, Grade::Warning, "python3 was not found", hint),
        Err(_) => {
            return bad(
                what,
                Grade::Warning,
                "CIEL_PYTHON names no interpreter",
                hint,
            );
        }
    };
    let line = "import ciel, platform; print(platform.python_version(), 'with ciel', \
                ciel.__version__)";
    let tried = Command::new(&found).args(["-P", "-c", line]).output();
    let shown = found.display();
    match tried {
        Ok(output) if output.status.success() => {
            let told = String::from_utf8_lossy(&output.stdout);
            ok(what, format!("{shown}, {}", told.trim()))
        }
        _ => bad(
            what,
            Grade::Warning,
            format!("{shown} cannot import ciel"),
            hint,
        ),
    }
}

/// Executors of the user's own: in `executors` of this folder, and on `PATH`.
fn plugins() -> Finding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(PathBuf::from("executors")).chain(std::env::split_paths(&path));
    let mut found: Vec<(String, PathBuf)> =
        folders.flat_map(|folder| plugins_in(&folder)).collect();
    found.dedup_by(|later, earlier| later.0 == earlier.0);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let lame = found
        .iter()
        .find(|(_, file)| rustix::fs::access(file, Access::EXEC_OK).is_err());
    match (lame, names.is_empty()) {
        (Some((_, file)), _) => bad(
            "executors",
            Grade::Warning,
            format!("{} cannot be executed", file.display()),
            "make it executable: chmod +x",
        ),
        (None, true) => ok("executors", "none beside the builtin ones"),
        (None, false) => ok("executors", names.join(", ")),
    }
}

fn plugins_in(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((
            name.strip_prefix("ciel-executor-")?.to_string(),
            entry.path(),
        ))
    });
    let mut found: Vec<(String, PathBuf)> = named.collect();
    found.sort();
    found
}
