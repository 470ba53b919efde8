//! What failed tasks have written of streams that the program had begun to read.
//!
//! The program has read it, so a replay of the program reads it again. There is a file for each
//! such stream, whose name says how its bytes are read. It does not know who reads. Read next:
//! `scratch`, where the files come from.

use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

const FOLDER: &str = "partial";

/// The partial streams of a run. The folder is made with the first one.
#[derive(Debug)]
pub struct PartialStreams {
    folder: PathBuf,
    bytes: Mutex<u64>,
}

impl PartialStreams {
    /// Those in the folder of a run.
    pub fn of(run: &Path) -> PartialStreams {
        let folder = run.join(FOLDER);
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let lengths = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
        let bytes = Mutex::new(lengths.sum());
        PartialStreams { folder, bytes }
    }

    /// Bytes of all of them, which are on the disk.
    pub fn bytes(&self) -> u64 {
        *self.counted()
    }

    fn counted(&self) -> MutexGuard<'_, u64> {
        self.bytes.lock().expect("nobody panics with the number")
    }

    /// Takes a file that a failed attempt has written, unless an earlier one had written more.
    ///
    /// # Errors
    /// As the system says.
    pub fn keep(&self, stream: u128, form: &str, written: &Path) -> io::Result<()> {
        let place = self.folder.join(format!("{stream:032x}.{form}"));
        let length = written.metadata()?.len();
        let mut bytes = self.counted();
        let before = place.metadata().ok().map(|found| found.len());
        if before.is_some_and(|before| before >= length) {
            return Ok(());
        }
        match std::fs::DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => std::fs::rename(written, place)?,
        }
        *bytes += length - before.unwrap_or_default();
        Ok(())
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
        *self.counted() = 0;
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
        let written = folder.path().join("written");
        std::fs::write(&written, "a").unwrap();
        partial.keep(9, "frames", &written).unwrap();
        assert_eq!(partial.bytes(), 5);
        let partial = PartialStreams::of(folder.path());
        assert_eq!(
            partial.bytes(),
            5,
            "the next process of the run counts them"
        );
        let (mut file, form) = partial.open(7).unwrap().unwrap();
        let mut found = String::new();
        file.read_to_string(&mut found).unwrap();
        assert_eq!((&*found, &*form), ("abcd", "frames"));
        assert!(partial.open(8).unwrap().is_none());
        partial.remove();
        assert!(partial.open(7).unwrap().is_none());
        assert_eq!(partial.bytes(), 0);
    }
}
