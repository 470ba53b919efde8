//! Amounts with units, in options of spawns and of the command line.
//!
//! It does not know what they are for.

/// Microseconds of `30`, `1.5`, `300ms`, `30s`, `5m` or `2h`; none for anything else, for nothing
/// at all, and for more than 10^18.
pub fn microseconds(text: &str) -> Option<u64> {
    amount(
        text,
        &[("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3600e6)],
        1e6,
    )
}

/// Bytes of `1000`, `64K`, `256M`, `1G` or `1T`, also with `B` or `iB` behind; units are powers of
/// 1024. None for anything else, for nothing at all, and for more than 10^18.
pub fn bytes(text: &str) -> Option<u64> {
    let upper = text.to_ascii_uppercase();
    let plain = upper.trim_end_matches('B').trim_end_matches('I');
    let units = [10, 20, 30, 40].map(|bits| (1u64 << bits) as f64);
    let [kilo, mega, giga, tera] = units;
    amount(
        plain,
        &[("K", kilo), ("M", mega), ("G", giga), ("T", tera)],
        1.0,
    )
}

/// A number of digits and at most one point, times the size of its unit.
fn amount(text: &str, units: &[(&str, f64)], without: f64) -> Option<u64> {
    let text = text.trim();
    let found = units
        .iter()
        .find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (number, size) = found.unwrap_or((text, without));
    let number = number.trim_end();
    let plain = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let amount = number.parse::<f64>().ok().filter(|_| plain)? * size;
    (1.0..=1e18).contains(&amount).then_some(amount as u64)
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
            ("2 h", 7_200_000_000),
        ];
        for (text, expected) in cases {
            assert_eq!(microseconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_in_every_unit() {
        let cases = [
            ("65536", 65536),
            ("64K", 65536),
            ("1.5M", 3 << 19),
            ("1GiB", 1 << 30),
            ("2 TB", 2 << 40),
        ];
        for (text, expected) in cases {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "",
            "0",
            "-1",
            "1d",
            "s",
            "1e3",
            "inf",
            "nan",
            "a lot",
            "9999999999999999h",
        ] {
            assert_eq!(microseconds(text), None, "{text}");
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
