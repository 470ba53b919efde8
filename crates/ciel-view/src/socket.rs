//! Where the control socket of a live run is, and what it answers.
//!
//! The socket lies in the user's runtime folder and goes when the run ends. It does not know who
//! listens.

use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

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

/// The whole answer of a run; empty if nobody listens.
pub(crate) fn ask(run: &str) -> Vec<u8> {
    let Some(mut stream) = path_of(run).and_then(|path| UnixStream::connect(path).ok()) else {
        return Vec::new();
    };
    let mut answer = Vec::new();
    let limited = stream.set_read_timeout(Some(ANSWER_TIME));
    match limited.and_then(|()| stream.read_to_end(&mut answer)) {
        Ok(_) => answer,
        Err(_) => Vec::new(),
    }
}
