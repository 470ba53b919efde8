//! Amounts on the command line: times, sizes, packages.
//!
//! It does not know what they are for. Errors are sentences without a full stop, for the parser
//! of options to show.

use std::path::PathBuf;

use ciel_model::limits::RETRIES_MAX;
use ciel_skywriting::amounts;

/// Bytes of the smallest heap that a script can do anything with.
const HEAP_BYTES_MIN: u64 = 64 << 10;

const SECONDS_OF_A_DAY: f64 = 86_400.0;

/// Cores that a run may use.
const CORES_MAX: u32 = 4096;

/// Microseconds of `30`, `1.5`, `300ms`, `30s`, `5m` or `2h`; more than none.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let wrong = || "expected a time like 30, 1.5, 300ms, 30s, 5m or 2h".to_string();
    amounts::microseconds(text).ok_or_else(wrong)
}

/// Bytes of `1000`, `64K`, `256M`, `1G`, also with `B` or `iB` behind; units are powers of 1024.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || "expected a size like 65536, 64K, 256M or 1G".to_string();
    match amounts::bytes(text).ok_or_else(wrong)? {
        ..HEAP_BYTES_MIN => Err("a script needs at least 64K".to_string()),
        bytes => usize::try_from(bytes).map_err(|_| "the size is too large".to_string()),
    }
}

/// Bytes of disk, in the same form; `0` too.
pub fn parse_disk_size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a size like 0, 500M or 10G".to_string();
    match text {
        "0" => Ok(0),
        _ => amounts::bytes(text).ok_or_else(wrong),
    }
}

/// Seconds of `30s`, `5m`, `12h`, `7d` or `2w`.
pub fn parse_age(text: &str) -> Result<u64, String> {
    let wrong = || "expected an age like 30m, 12h, 7d or 2w".to_string();
    let days = |text: &str, each: f64| {
        let number = text.parse::<f64>().ok()?;
        let seconds = number * each * SECONDS_OF_A_DAY;
        (0.0..=1e12).contains(&seconds).then_some(seconds as u64)
    };
    let age = match (text.strip_suffix('d'), text.strip_suffix('w')) {
        (Some(number), _) => days(number, 1.0),
        (None, Some(number)) => days(number, 7.0),
        // A number alone would be seconds, and remove nearly all.
        (None, None) if text.ends_with(|last: char| last.is_ascii_digit()) => None,
        (None, None) => amounts::microseconds(text).map(|age_us| age_us.div_ceil(1_000_000)),
    };
    age.ok_or_else(wrong)
}

/// Number of cores, at most [`CORES_MAX`].
pub fn parse_jobs(text: &str) -> Result<u32, String> {
    let count = text
        .parse()
        .ok()
        .filter(|count| (1..=CORES_MAX).contains(count));
    count.ok_or_else(|| format!("expected a number of cores from 1 to {CORES_MAX}"))
}

/// Number of retries.
pub fn parse_retries(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count <= RETRIES_MAX);
    count.ok_or_else(|| format!("expected a number of retries from 0 to {RETRIES_MAX}"))
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

/// Name and thousandths of `NAME=COUNT`, for example `gpu=2`.
pub fn parse_resource(text: &str) -> Result<(String, u32), String> {
    let wrong = || "expected a name, an equals sign and a count, like gpu=2".to_string();
    let (name, count) = text.split_once('=').ok_or_else(wrong)?;
    let count: u32 = count.parse().map_err(|_| wrong())?;
    if name.is_empty() || matches!(name, "cores" | "memory") {
        return Err("cores are set with -j, memory is that of the machine".to_string());
    }
    let thousandths = count.checked_mul(1000).ok_or_else(wrong)?;
    Ok((name.to_string(), thousandths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_time_is_told_with_examples() {
        assert_eq!(parse_duration("1.5"), Ok(1_500_000));
        assert!(parse_duration("1d").is_err_and(|told| told.contains("300ms")));
    }

    #[test]
    fn heap_that_is_too_small_for_anything_is_refused() {
        assert_eq!(parse_size("64K"), Ok(65536));
        for text in ["", "1", "63K", "1X"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn disk_may_be_none_at_all() {
        assert_eq!(parse_disk_size("0"), Ok(0));
        assert_eq!(parse_disk_size("2G"), Ok(2 << 30));
        assert!(parse_disk_size("much").is_err_and(|told| told.contains("500M")));
    }

    #[test]
    fn ages_have_days_and_weeks_too() {
        assert_eq!(parse_age("7d"), Ok(604_800));
        assert_eq!(parse_age("0d"), Ok(0));
        assert_eq!(parse_age("1.5w"), Ok(907_200));
        assert_eq!(parse_age("2h"), Ok(7_200));
        for text in ["", "d", "-1d", "old", "30", "1.5"] {
            assert!(
                parse_age(text).is_err_and(|told| told.contains("7d")),
                "{text}"
            );
        }
    }

    #[test]
    fn resource_is_a_name_and_a_count() {
        assert_eq!(parse_resource("gpu=2"), Ok(("gpu".to_string(), 2000)));
        for text in [
            "gpu",
            "gpu=",
            "=2",
            "gpu=x",
            "gpu=-1",
            "cores=2",
            "gpu=9999999",
        ] {
            assert!(parse_resource(text).is_err(), "{text}");
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
