//! What a text consists of: paragraphs, which are lines of equal indentation, and blank lines.
//!
//! It does not know how a paragraph is filled. Read next: `filler`.

use crate::blanks;

/// A paragraph, or a blank line before the next one.
pub struct Piece {
    /// The place of its first byte.
    pub begin: usize,
    /// The place behind its last byte.
    pub end: usize,
    /// Where the blanks end that follow, the last ones that are read before it is filled.
    pub behind: usize,
    /// Columns before each of its lines.
    pub indent: i64,
    /// Whether the text has a tab before it.
    pub uses_tabs: bool,
    /// Whether it is a blank line.
    pub is_blank: bool,
}

/// Cuts a text.
pub fn of(text: &[u8]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut at, mut uses_tabs) = (0, false);
    while at < text.len() {
        let line = line(text, at, uses_tabs);
        at = line.end;
        uses_tabs |= text[line.begin..line.end].contains(&b'\t');
        match pieces.last_mut().filter(|last| !last.is_blank) {
            Some(last) if !line.is_blank && last.indent == line.indent => {
                last.end = line.end;
                last.behind = line.end;
            }
            Some(last) => {
                last.behind = blanks::from(text, line.begin, 0).end;
                pieces.push(line);
            }
            None => pieces.push(line),
        }
    }
    pieces
}

/// The line that begins at a place.
fn line(text: &[u8], begin: usize, uses_tabs: bool) -> Piece {
    let indent = blanks::from(text, begin, 0);
    let rest = &text[indent.end..];
    let length = rest.iter().position(|byte| *byte == b'\n');
    let end = length.map_or(text.len(), |length| indent.end + length + 1);
    Piece {
        begin,
        end,
        behind: end,
        indent: indent.column,
        uses_tabs,
        is_blank: matches!(rest.first(), None | Some(b'\n')),
    }
}
