//! What failed tasks have written of streams before they failed.
//!
//! Who reads such a stream has that before the failure, and a replay has it again. There is a file
//! for each such stream, whose name says how its bytes are read. It does not know who reads. Read
//! next: `scratch`, where the files come from.

use std::collections::BTreeMap;
use std::fs::{DirEntry, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

const FOLDER: &str = "partial";

/// The partial streams of a run. The folder is made with the first one.
#[derive(Debug)]
pub struct PartialStreams {
    folder: PathBuf,
    parts: Mutex<BTreeMap<u128, Part>>,
}

/// What there is of one stream.
#[derive(Debug)]
struct Part {
    /// How its bytes are read.
    form: String,
    bytes: u64,
}

impl Part {
    /// A file in the folder, and of which stream it is.
    fn of(entry: &DirEntry) -> Option<(u128, Part)> {
        let name = entry.file_name();
        let (stream, form) = name.to_str()?.split_once('.')?;
        let stream = u128::from_str_radix(stream, 16).ok()?;
        let (form, bytes) = (form.to_string(), entry.metadata().ok()?.len());
        Some((stream, Part { form, bytes }))
    }
}

impl PartialStreams {
    /// Those in the folder of a run.
    pub fn of(run: &Path) -> PartialStreams {
        let folder = run.join(FOLDER);
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let parts = entries.filter_map(|entry| Part::of(&entry)).collect();
        PartialStreams {
            folder,
            parts: Mutex::new(parts),
        }
    }

    /// Bytes of all of them, which are on the disk.
    pub fn bytes(&self) -> u64 {
        self.parts().values().map(|part| part.bytes).sum()
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<u128, Part>> {
        self.parts.lock().expect("nobody panics with the table")
    }

    fn path(&self, stream: u128, form: &str) -> PathBuf {
        self.folder.join(format!("{stream:032x}.{form}"))
    }

    /// Takes a file that a failed attempt has written, unless it is empty or an earlier one had
    /// written more.
    ///
    /// # Errors
    /// As the system says.
    pub fn keep(&self, stream: u128, form: &str, written: &Path) -> io::Result<()> {
        let bytes = written.metadata()?.len();
        let mut parts = self.parts();
        let before = parts.get(&stream);
        if bytes <= before.map_or(0, |before| before.bytes) {
            return Ok(());
        }
        match std::fs::DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => std::fs::rename(written, self.path(stream, form))?,
        }
        if let Some(before) = before.filter(|before| before.form != form) {
            let _ = std::fs::remove_file(self.path(stream, &before.form));
        }
        let form = form.to_string();
        parts.insert(stream, Part { form, bytes });
        Ok(())
    }

    /// What was kept of a stream, and how its bytes are read.
    ///
    /// # Errors
    /// As the system says.
    pub fn open(&self, stream: u128) -> io::Result<Option<(File, String)>> {
        let parts = self.parts();
        let Some(Part { form, .. }) = parts.get(&stream) else {
            return Ok(None);
        };
        let file = File::open(self.path(stream, form))?;
        Ok(Some((file, form.clone())))
    }

    /// A later attempt has ended well: nothing was written before a failure.
    pub fn forget(&self, stream: u128) {
        if let Some(part) = self.parts().remove(&stream) {
            // What cannot be removed now goes with the folder of the run.
            let _ = std::fs::remove_file(self.path(stream, &part.form));
        }
    }

    /// Removes all of them: the run has ended.
    pub fn remove(&self) {
        // What cannot be removed now goes with the folder of the run.
        let _ = std::fs::remove_dir_all(&self.folder);
        self.parts().clear();
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
        for stream in [8, 9] {
            partial.forget(stream);
        }
        assert!(partial.open(9).unwrap().is_none());
        assert_eq!(partial.bytes(), 4);
        partial.remove();
        assert!(partial.open(7).unwrap().is_none());
        assert_eq!(partial.bytes(), 0);
    }
}
