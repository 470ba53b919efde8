//! Where the control socket of a live run is, and what it answers.
//!
//! The socket is in the user's runtime folder and is removed when the run ends. It does not know
//! who listens.

use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::records::Record;

/// How long a live run may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Where the control socket of a run is; none if the user has no folder for it.
pub fn path_of(run: &str) -> Option<PathBuf> {
    Some(runtime_folder()?.join(format!("{run}.sock")))
}

/// The user's runtime folder, made if need be; only if it is the user's own.
fn runtime_folder() -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("ciel"),
        None => std::env::temp_dir().join(format!("ciel-{user}")),
    };
    // It may be there already; what matters is whose it is.
    let _ = std::fs::DirBuilder::new().mode(0o700).create(&folder);
    let found = std::fs::symlink_metadata(&folder).ok()?;
    (found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0).then_some(folder)
}

/// A query or a request to a live run, as one line of JSON. The answer is records, a line each: the
/// counts first, then tasks; who follows the run gets moments after that, until the run ends. A
/// moment may be in the story of a task already that came before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// The first so many live tasks in serial order.
    Tasks(usize),
    /// The live tasks that this text, as typed by a person, may mean.
    Find(String),
    /// The live task of that whole name is to be cancelled, with all that it has spawned. The
    /// answer has the task as it was, unless it had ended.
    Cancel(String),
    /// The first so many live tasks, and whatever happens to any task from then on.
    Follow(usize),
}

impl Request {
    /// The request of a line; none if it is not understood.
    pub fn read(line: &str) -> Option<Request> {
        serde_json::from_str(line).ok()
    }
}

/// The answer of a run; empty if no process listens, or not for long.
pub(crate) fn ask(run: &str, request: &Request) -> Vec<Record> {
    let Some(stream) = path_of(run).and_then(|path| UnixStream::connect(path).ok()) else {
        return Vec::new();
    };
    exchange(stream, request).unwrap_or_default()
}

fn exchange(mut stream: UnixStream, request: &Request) -> io::Result<Vec<Record>> {
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let lines = answer.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}
