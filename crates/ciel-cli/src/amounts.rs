//! Amounts as people type them: times, sizes, packages.
//!
//! It does not know what they are for. Errors are sentences without a full stop, for the parser
//! of options to show.

use std::path::PathBuf;

/// Microseconds of `30`, `1.5`, `300ms`, `30s`, `5m` or `2h`; more than none.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let units = [("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3600e6)];
    let found = units
        .iter()
        .find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (number, size) = found.unwrap_or((text, 1e6));
    let wrong = || "expected a time like 30, 1.5, 300ms, 30s, 5m or 2h".to_string();
    let amount = plain_number(number).ok_or_else(wrong)? * size;
    match amount {
        ..1.0 => Err("the time must be more than nothing".to_string()),
        1.0..=1e18 => Ok(amount as u64),
        _ => Err("the time is too long".to_string()),
    }
}

/// Bytes of `1000`, `64K`, `256M`, `1G`, also with `B` or `iB` behind; units are powers of 1024.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let upper = text.to_ascii_uppercase();
    let trimmed = upper.trim_end_matches('B').trim_end_matches('I');
    let units = [
        ("K", 1u64 << 10),
        ("M", 1 << 20),
        ("G", 1 << 30),
        ("T", 1 << 40),
    ];
    let found = units
        .iter()
        .find_map(|(unit, size)| Some((trimmed.strip_suffix(unit)?, *size)));
    let (number, size) = found.unwrap_or((trimmed, 1));
    let wrong = || "expected a size like 65536, 64K, 256M or 1G".to_string();
    let amount = plain_number(number).ok_or_else(wrong)? * size as f64;
    match amount {
        ..65536.0 => Err("a script needs at least 64K".to_string()),
        65536.0..=1e18 => Ok(amount as usize),
        _ => Err("the size is too large".to_string()),
    }
}

/// Name and file of `NAME=FILE`.
pub fn parse_package(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_string(), PathBuf::from(file)))
        }
        _ => Err("expected a name, an equals sign and a file".to_string()),
    }
}

/// A number of digits and at most one point; none of the other forms that a float may take.
fn plain_number(text: &str) -> Option<f64> {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !plain {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_unit() {
        let cases = [
            ("30", 30_000_000),
            ("1.5", 1_500_000),
            ("300ms", 300_000),
            ("30s", 30_000_000),
            ("5m", 300_000_000),
            ("2h", 7_200_000_000),
        ];
        for (text, microseconds) in cases {
            assert_eq!(parse_duration(text), Ok(microseconds), "{text}");
        }
        for text in [
            "",
            "0",
            "-1",
            "1d",
            "s",
            "1e3",
            "inf",
            "nan",
            "1 s",
            "9999999999999999h",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_in_every_unit() {
        let cases = [
            ("65536", 65536),
            ("64K", 65536),
            ("1.5M", 3 << 19),
            ("1GiB", 1 << 30),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "1", "K", "-1M", "1X", "9e9G"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn package_is_a_name_and_a_file() {
        assert_eq!(parse_package("a=b=c"), Ok(("a".to_string(), "b=c".into())));
        for text in ["", "a", "=b", "a="] {
            assert!(parse_package(text).is_err(), "{text}");
        }
    }
}
