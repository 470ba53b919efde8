//! Text that comes in pieces and is shown in whole lines; its end is kept for messages.
//!
//! It does not know where the text comes from or who is shown it.

use std::collections::VecDeque;

use ciel_model::limits;

use crate::limits::LINE_BYTES_MAX;

/// Pieces on their way to lines.
#[derive(Debug, Default)]
pub struct Lines {
    /// The beginning of a line that has not ended.
    begun: Vec<u8>,
    /// The last bytes.
    kept: VecDeque<u8>,
}

impl Lines {
    /// Takes a piece; gives the lines that are whole now.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.kept.extend(piece);
        let excess = self.kept.len().saturating_sub(limits::ERROR_TAIL_BYTES_MAX);
        self.kept.drain(..excess);
        self.begun.extend_from_slice(piece);
        let end = self.begun.iter().rposition(|byte| *byte == b'\n');
        let whole = match end {
            Some(end) => end + 1,
            None if self.begun.len() > LINE_BYTES_MAX => self.begun.len(),
            None => 0,
        };
        let rest = self.begun.split_off(whole);
        std::mem::replace(&mut self.begun, rest)
    }

    /// No more comes: gives the last line, ended, if there is one.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut last = std::mem::take(&mut self.begun);
        if !last.is_empty() {
            last.push(b'\n');
        }
        last
    }

    /// The last lines, for a failure.
    pub fn last(&self) -> String {
        let bytes: Vec<u8> = self.kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(limits::ERROR_TAIL_LINES_MAX)..].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_as_whole_lines() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"one\ntw"), b"one\n");
        assert_eq!(lines.push(b"o"), b"");
        assert_eq!(lines.push(b"\n"), b"two\n");
        assert_eq!(lines.push(b"end"), b"");
        assert_eq!(lines.finish(), b"end\n");
        assert_eq!(lines.last(), "one\ntwo\nend");
    }

    #[test]
    fn line_without_end_comes_in_parts() {
        let mut lines = Lines::default();
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        assert_eq!(lines.push(&long).len(), long.len());
    }
}
