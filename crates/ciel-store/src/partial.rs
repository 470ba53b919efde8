//! What failed tasks have written of streams that the program had begun to read.
//!
//! The program has read it, so a replay of the program reads it again. There is a file for each
//! such stream, whose name says how its bytes are read. It does not know who reads. Read next:
//! `scratch`, where the files come from.

use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const FOLDER: &str = "partial";

/// The partial streams of a run. The folder is made with the first one.
#[derive(Debug)]
pub struct PartialStreams {
    folder: PathBuf,
}

impl PartialStreams {
    /// Those in the folder of a run.
    pub fn of(run: &Path) -> PartialStreams {
        let folder = run.join(FOLDER);
        PartialStreams { folder }
    }

    /// Takes a file that a failed attempt has written, unless an earlier one had written more.
    ///
    /// # Errors
    /// As the system says.
    pub fn keep(&self, stream: u128, form: &str, written: &Path) -> io::Result<()> {
        let place = self.folder.join(format!("{stream:032x}.{form}"));
        let length = written.metadata()?.len();
        if place.metadata().is_ok_and(|found| found.len() >= length) {
            return Ok(());
        }
        match std::fs::DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => std::fs::rename(written, place),
        }
    }

    /// What was kept of a stream, and how its bytes are read.
    ///
    /// # Errors
    /// As the system says.
    pub fn open(&self, stream: u128) -> io::Result<Option<(File, String)>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        let prefix = format!("{stream:032x}.");
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            if let Some(form) = name.to_str().and_then(|name| name.strip_prefix(&prefix)) {
                return Ok(Some((File::open(entry.path())?, form.to_string())));
            }
        }
        Ok(None)
    }

    /// Removes all of them: the run has ended.
    pub fn remove(&self) {
        // What cannot be removed now goes with the folder of the run.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn longest_part_that_was_written_of_a_stream_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let partial = PartialStreams::of(folder.path());
        assert!(partial.open(7).unwrap().is_none());
        for bytes in ["ab", "abcd", "abc"] {
            let written = folder.path().join("written");
            std::fs::write(&written, bytes).unwrap();
            partial.keep(7, "frames", &written).unwrap();
        }
        let (mut file, form) = partial.open(7).unwrap().unwrap();
        let mut found = String::new();
        file.read_to_string(&mut found).unwrap();
        assert_eq!((&*found, &*form), ("abcd", "frames"));
        assert!(partial.open(8).unwrap().is_none());
        partial.remove();
        assert!(partial.open(7).unwrap().is_none());
    }
}
