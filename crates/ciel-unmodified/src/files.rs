//! Which files are ordered: patterns of paths, and the stream of each file that was named.
//!
//! A file is one and the same under every name of its folder. It does not know what is done with
//! the files. Read next: `named`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::error::UnmodifiedError;
use crate::order::StreamKey;

/// A `*` stands for letters of one name.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// The patterns and the files that matched.
#[derive(Debug, Default)]
pub(crate) struct OrderedFiles {
    patterns: Vec<PathPattern>,
    streams: BTreeMap<PathBuf, StreamKey>,
}

/// A pattern of absolute paths, and its last part alone, which rejects most paths cheaply.
#[derive(Debug)]
struct PathPattern {
    /// As it was given.
    text: String,
    whole: Pattern,
    name: Pattern,
}

impl OrderedFiles {
    /// Files that match one of the patterns; relative ones begin in `folder`.
    pub(crate) fn new(patterns: &[String], folder: &Path) -> Result<OrderedFiles, UnmodifiedError> {
        let patterns = patterns.iter().map(|text| PathPattern::new(text, folder));
        Ok(OrderedFiles {
            patterns: patterns.collect::<Result<_, _>>()?,
            streams: BTreeMap::new(),
        })
    }

    /// Whether no file is ordered.
    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a file of this name might be ordered.
    pub(crate) fn may_cover(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        self.patterns
            .iter()
            .any(|pattern| pattern.name.matches(&name))
    }

    /// Whether the file of this path is ordered. The path is absolute, with no link in its folder.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        let patterns = &mut self.patterns.iter();
        patterns.any(|pattern| pattern.whole.matches_path_with(path, OPTIONS))
    }

    /// Patterns of which no file was named.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &str> {
        let patterns = self.patterns.iter().filter(|pattern| {
            let mut named = self.streams.keys();
            !named.any(|path| pattern.whole.matches_path_with(path, OPTIONS))
        });
        patterns.map(|pattern| pattern.text.as_str())
    }

    /// The stream of a file, if it has one.
    pub(crate) fn stream(&self, path: &Path) -> Option<StreamKey> {
        self.streams.get(path).copied()
    }

    /// Remembers the stream of a file.
    pub(crate) fn insert(&mut self, path: PathBuf, stream: StreamKey) {
        self.streams.insert(path, stream);
    }
}

impl PathPattern {
    fn new(text: &str, folder: &Path) -> Result<PathPattern, UnmodifiedError> {
        let refused = |reason: String| UnmodifiedError::Pattern {
            pattern: text.to_owned(),
            reason,
        };
        let path = folder.join(text);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(refused("it names no file".to_owned()));
        };
        // A folder that is named without wildcards is known by its real path.
        let parent = match std::fs::canonicalize(parent) {
            Ok(real) => Pattern::escape(&real.to_string_lossy()),
            Err(_) => parent.to_string_lossy().into_owned(),
        };
        let name = name.to_string_lossy();
        let parse = |text: &str| Pattern::new(text).map_err(|error| refused(error.to_string()));
        Ok(PathPattern {
            text: text.to_owned(),
            whole: parse(&format!("{}/{name}", parent.trim_end_matches('/')))?,
            name: parse(&name)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(pattern: &str) -> OrderedFiles {
        OrderedFiles::new(&[pattern.to_owned()], Path::new("/srv")).unwrap()
    }

    #[test]
    fn relative_pattern_covers_its_folder_only() {
        let files = files("*.log");
        assert!(files.may_cover(OsStr::new("a.log")));
        assert!(files.covers(Path::new("/srv/a.log")));
        assert!(!files.covers(Path::new("/srv/deep/a.log")));
        assert!(!files.covers(Path::new("/a.log")));
    }

    #[test]
    fn pattern_without_a_name_is_refused() {
        let refused = OrderedFiles::new(&["/".to_owned()], Path::new("/srv"));
        assert!(matches!(refused, Err(UnmodifiedError::Pattern { .. })));
    }
}
