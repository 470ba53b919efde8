//! Numbers and texts as the page shows them.
//!
//! It does not know the page. Read next: `ciel_view::words`.

pub use ciel_view::words::{shortened, size};

/// A text as part of HTML or of an attribute in double quotes. Characters that a page cannot hold
/// are replaced.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(character),
            _ if character.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// A span of time: `840 µs`, `7.3 ms`, `0.42 s`, `12.3 s`, `4 min 05 s`, `3 h 12 min`.
pub fn duration(us: u64) -> String {
    let seconds = us / 1_000_000;
    match us {
        0..1000 => format!("{us} µs"),
        1000..100_000 => format!("{:.1} ms", us as f64 / 1e3),
        100_000..10_000_000 => format!("{:.2} s", us as f64 / 1e6),
        10_000_000..60_000_000 => format!("{:.1} s", us as f64 / 1e6),
        60_000_000..3_600_000_000 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `1 task`, `12,345 tasks`.
pub fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", grouped(count)),
    }
}

/// A number with its digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place_in_the_page() {
        let hostile = "</td><script>\"x\" & 'y'\u{1}";
        let expected = "&lt;/td&gt;&lt;script&gt;&quot;x&quot; &amp; 'y'\u{fffd}";
        assert_eq!(escaped(hostile), expected);
    }

    #[test]
    fn times_have_their_unit() {
        let cases = [
            (840, "840 µs"),
            (7_300, "7.3 ms"),
            (420_000, "0.42 s"),
            (12_340_000, "12.3 s"),
            (245_000_000, "4 min 05 s"),
            (11_530_000_000, "3 h 12 min"),
        ];
        for (us, text) in cases {
            assert_eq!(duration(us), text);
        }
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(counted(1, "task"), "1 task");
    }
}
