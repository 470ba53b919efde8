//! Amounts and texts as people read them, the same on a terminal and on a page.
//!
//! It does not know what they are amounts of.

pub use ciel_model::words::size;

/// A text on one line, at most `length_max` characters long.
pub fn shortened(text: &str, length_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    match line.chars().count() <= length_max {
        true => line,
        false => line.chars().take(length_max - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_ends_in_an_ellipsis() {
        assert_eq!(shortened("a\n b", 3), "a b");
        assert_eq!(shortened("ab cd", 4), "ab …");
    }
}
