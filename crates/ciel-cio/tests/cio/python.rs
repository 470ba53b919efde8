//! The reader in Python that stands beside the page: it shares no code with this crate, and sees
//! the same in golden files, in files of random programs, and in damaged ones.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use ciel_cio::{CioError, Ending, recover};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::support::{bytes_of, program, write};
use crate::vectors::vectors;

/// Reads many files in one process, as the start of an interpreter takes longer than all of them.
const READ_ALL: &str = "
import sys, zlib, pathlib
sys.path.insert(0, sys.argv[1])
import read_cio
for path in sorted(pathlib.Path(sys.argv[2]).iterdir()):
    shown, state = b'', 'complete'
    try:
        with open(path, 'rb') as file:
            for data in read_cio.flat_view(file):
                shown += data
    except (read_cio.NoCio, read_cio.Partial, read_cio.Damaged) as error:
        state = type(error).__name__
    print(path.name, state, len(shown), zlib.crc32(shown))
";

fn reader() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference")
}

/// The interpreter's output, or none where there is no interpreter.
fn python(words: &[&std::ffi::OsStr]) -> Option<Output> {
    let interpreter = std::env::var_os("CIEL_PYTHON").unwrap_or_else(|| "python3".into());
    match Command::new(interpreter).arg("-B").args(words).output() {
        Ok(output) => Some(output),
        Err(error) => {
            println!("skipped: the reader in Python, as there is no python3: {error}");
            None
        }
    }
}

/// What this crate sees, in the words of the program above.
fn seen(file: &[u8]) -> String {
    let (state, flat) = match recover(&file) {
        Ok(found) => {
            let data: Vec<_> = found.extents.iter().map(|extent| extent.data).collect();
            let state = match found.ending {
                Ending::Complete => "complete",
                Ending::Open(_) => "Partial",
                Ending::Damaged(_) | Ending::Repeated(_) => "Damaged",
            };
            (state, bytes_of(file, &data))
        }
        Err(CioError::System(error)) => panic!("{error}"),
        Err(_) => ("NoCio", Vec::new()),
    };
    format!("{state} {} {}", flat.len(), crc32fast::hash(&flat))
}

/// Files of random programs, each also cut and changed at random places.
fn files() -> Vec<Vec<u8>> {
    let mut runner = TestRunner::deterministic();
    let case = (
        program(),
        any::<bool>(),
        any::<[(prop::sample::Index, u8); 6]>(),
    );
    let mut files: Vec<Vec<u8>> = vectors().into_iter().map(|vector| vector.file).collect();
    for _ in 0..60 {
        let ((acts, seed), closes, changes) = case.new_tree(&mut runner).unwrap().current();
        let written = write(&acts, &seed, closes).file;
        files.push(written.clone());
        for (index, change) in changes {
            let mut changed = written.clone();
            // Every second change hits the log, which is small.
            let bound = if change % 2 == 0 {
                400.min(changed.len())
            } else {
                changed.len()
            };
            changed[index.index(bound)] ^= change;
            files.push(changed);
            files.push(written[..index.index(written.len())].to_vec());
        }
    }
    files
}

#[test]
fn reader_in_python_sees_the_same_in_whole_and_in_damaged_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut wanted = String::new();
    let mut states = std::collections::BTreeSet::new();
    for (number, file) in files().iter().enumerate() {
        let name = format!("{number:05}");
        std::fs::write(folder.path().join(&name), file).unwrap();
        let seen = seen(file);
        states.insert(seen.split(' ').next().unwrap().to_string());
        writeln!(wanted, "{name} {seen}").unwrap();
    }
    assert_eq!(states.len(), 4, "the files are of every kind: {states:?}");
    let (reader, files) = (reader(), folder.path());
    let words = [
        "-c".as_ref(),
        READ_ALL.as_ref(),
        reader.as_os_str(),
        files.as_os_str(),
    ];
    let Some(output) = python(&words) else {
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
}

#[test]
fn reader_in_python_prints_golden_files_and_tells_their_state_by_its_exit_code() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for vector in vectors() {
        std::fs::write(file.path(), &vector.file).unwrap();
        let program = reader().join("read_cio.py");
        let Some(output) = python(&[program.as_os_str(), file.path().as_os_str()]) else {
            return;
        };
        let wanted = if vector.is_complete { 0 } else { 3 };
        assert_eq!(output.status.code(), Some(wanted), "{}", vector.name);
        assert_eq!(String::from_utf8_lossy(&output.stdout), vector.flat);
    }
}

#[test]
fn reader_in_python_has_under_150_lines() {
    let text = std::fs::read_to_string(reader().join("read_cio.py")).unwrap();
    assert!(text.lines().count() < 150);
}
