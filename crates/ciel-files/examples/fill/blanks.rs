//! Blanks from a place of a text on, and the columns that they take.
//!
//! It does not know paragraphs.

/// Columns from one tab stop to the next.
pub const TAB_COLUMNS: i64 = 8;

/// Where blanks end.
pub struct Blanks {
    /// The place behind the last one.
    pub end: usize,
    /// The column there.
    pub column: i64,
    /// Whether one of them is a tab.
    pub has_tab: bool,
}

/// Spaces and tabs from a place on, which has that column.
pub fn from(text: &[u8], at: usize, column: i64) -> Blanks {
    let mut found = Blanks {
        end: at,
        column,
        has_tab: false,
    };
    while let Some(byte @ (b' ' | b'\t')) = text.get(found.end) {
        found.end += 1;
        if *byte == b'\t' {
            found.has_tab = true;
            found.column = next_stop(found.column);
        } else {
            found.column += 1;
        }
    }
    found
}

/// The next tab stop behind a column.
pub fn next_stop(column: i64) -> i64 {
    (column / TAB_COLUMNS + 1) * TAB_COLUMNS
}
