//! The runtime reads and writes objects through the store, and nothing else opens a file.
//!
//! Code that opens the file of an object by its path bypasses its budget and its digest. A path can
//! be asked whether there is something, but not opened; the few files that are not the store's are
//! listed here with the modules that open them. Read [`super::text`] next.

use super::Finding;
use super::text::{is_word, line_of, mask_rust, without_tests};
use super::tree::Source;

/// Where the rule holds.
const HOME: &str = "crates/ciel-runtime/src/";

/// Modules that open files of their own, and which.
const EXEMPT: &[(&str, &str)] = &[
    ("cleanup.rs", "the folder of a run that is over"),
    ("control.rs", "the socket of a run"),
    ("export_file.rs", "the user's files"),
    ("flat_file.rs", "the ordered files of a job"),
    ("key.rs", "the user's program"),
    ("orphans.rs", "the socket of a killed run"),
    ("released.rs", "the released output of a run"),
    ("tools.rs", "the programs of commands"),
    ("user_files.rs", "the user's files"),
];

/// Names in a module `fs` that open no file.
const QUESTIONS: &[&str] = &[
    "canonicalize",
    "metadata",
    "read_dir",
    "symlink_metadata",
    "DirEntry",
    "DirBuilder",
    "Metadata",
    "MetadataExt",
    "DirBuilderExt",
    "statvfs",
];

/// Types that open files.
const OPENERS: &[&str] = &[
    "File",
    "OpenOptions",
    "Mmap",
    "MmapMut",
    "MmapOptions",
    "memmap2",
];

/// Places of the runtime that open, write or remove a file by its path.
pub fn opened_files(source: &Source) -> Vec<Finding> {
    let Some(module) = source.path.strip_prefix(HOME) else {
        return Vec::new();
    };
    let is_exempt = EXEMPT.iter().any(|(exempt, _)| *exempt == module);
    if is_exempt || !source.path.ends_with(".rs") {
        return Vec::new();
    }
    let code = without_tests(&mask_rust(&source.text));
    let opened = paths(&code).filter(|(_, path)| opens(path));
    let to_finding = |(at, path): (usize, &str)| {
        let message = format!("`{path}` opens a file beside the store");
        Finding::new(&source.path, line_of(&code, at), message)
    };
    opened.map(to_finding).collect()
}

/// The paths of several names in the code.
fn paths(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_end = |byte: char| !(byte.is_ascii() && is_word(byte as u8) || byte == ':');
    let mut at = 0;
    code.split(is_end).filter_map(move |part| {
        let begin = at;
        at += part.len() + 1;
        part.contains("::").then_some((begin, part))
    })
}

/// Whether a path leads to a function that opens, writes or removes: `fs::write`, `File::open`.
fn opens(path: &str) -> bool {
    let names: Vec<&str> = path.split("::").collect();
    names.windows(2).any(|pair| {
        let (outer, inner) = (pair[0], pair[1]);
        let is_known = || QUESTIONS.contains(&inner) || OPENERS.contains(&inner);
        match outer {
            _ if inner.is_empty() => false,
            "fs" => !is_known(),
            outer => OPENERS.contains(&outer),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(module: &str, text: &str) -> Vec<String> {
        let source = Source {
            path: format!("{HOME}{module}"),
            text: text.to_owned(),
        };
        let findings = opened_files(&source);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn file_that_is_opened_beside_the_store_is_found() {
        for (text, path) in [
            ("fn a() { std::fs::write(b, c) }", "std::fs::write"),
            ("use std::fs;\nfn a() { fs::read(b) }", "fs::read"),
            ("fn a() { File::open(b) }", "File::open"),
            (
                "fn a() { std::fs::File::create(b) }",
                "std::fs::File::create",
            ),
            ("fn a() { OpenOptions::new() }", "OpenOptions::new"),
            ("fn a() { unsafe { Mmap::map(b) } }", "Mmap::map"),
            ("use memmap2::Mmap;", "memmap2::Mmap"),
        ] {
            let line = text.lines().count();
            let path = format!("{HOME}core.rs:{line}: `{path}` opens a file beside the store");
            assert_eq!(found("core.rs", text), [path], "{text}");
        }
    }

    #[test]
    fn questions_tests_and_exempt_modules_are_left_alone() {
        let text = "// std::fs::read\nuse std::fs::{self, File};\n\
                    use std::os::unix::fs::MetadataExt;\n\
                    fn a() { fs::metadata(b); std::fs::canonicalize(c); f(\"fs::read\") }\n\
                    #[cfg(test)]\nmod tests { fn a() { fs::write(b, c) } }";
        assert_eq!(found("core.rs", text), [""; 0]);
        assert_eq!(found("released.rs", "fn a() { File::open(b) }"), [""; 0]);
    }
}
