//! Times, counts and tables as text, and printing that handles a closed pipe.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

pub use ciel_view::words::{shortened, size};

use crate::cli_error::{CliError, JOB_FAILED};
use crate::closed_streams;

/// Prints data on standard output; a closed pipe is no error.
pub fn print(bytes: &[u8]) -> Result<ExitCode, CliError> {
    let mut stdout = std::io::stdout().lock();
    let written = closed_streams::check_output()
        .and_then(|()| stdout.write_all(bytes))
        .and_then(|()| stdout.flush());
    match written {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(CliError::Unread),
        Err(error) => {
            let message = format!("cannot write to standard output: {error}");
            Err(CliError::usage("output", message).with_exit(JOB_FAILED))
        }
    }
}

/// Prints values as JSON, one a line.
pub fn print_json(values: &[serde_json::Value]) -> Result<ExitCode, CliError> {
    let lines: String = values.iter().map(|value| format!("{value}\n")).collect();
    print(lines.as_bytes())
}

/// A span of time: `7 ms`, `0.42 s`, `12.3 s`, `4 min 05 s`, `3 h 12 min`.
pub fn duration(microseconds: u64) -> String {
    let seconds = microseconds as f64 / 1e6;
    let whole = microseconds / 1_000_000;
    match whole {
        0 if microseconds < 100_000 => format!("{} ms", microseconds.div_ceil(1000)),
        0..10 => format!("{seconds:.2} s"),
        10..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

/// A length of time that is not known exactly: `12 s`, `3 min`, `2 h 05 min`.
pub fn roughly(microseconds: u64) -> String {
    let seconds = microseconds.div_ceil(1_000_000);
    match seconds {
        0..100 => format!("{seconds} s"),
        100..3600 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A text in which files of the current folder are named as from it.
pub fn from_here(text: &str) -> String {
    match std::env::current_dir() {
        Ok(folder) => text.replace(&format!("{}/", folder.display()), ""),
        Err(_) => text.to_string(),
    }
}

/// `1 task`, `2 tasks`.
pub fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// Rows as lines: two blanks between columns, each as wide as its widest cell, the last one free.
pub fn columns(rows: &[Vec<String>], indent: &str) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width_of).collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        let joined = cells.collect::<Vec<String>>().join("  ");
        format!("{indent}{}", joined.trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_or_two_units() {
        let cases = [
            (0, "0 ms"),
            (6_200, "7 ms"),
            (420_000, "0.42 s"),
            (12_340_000, "12.3 s"),
            (245_000_000, "4 min 05 s"),
            (11_530_000_000, "3 h 12 min"),
        ];
        for (microseconds, text) in cases {
            assert_eq!(duration(microseconds), text);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "bcd", "x"], ["long", "b", ""]];
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.map(str::to_string).to_vec())
            .collect();
        assert_eq!(columns(&rows, "  "), ["  a     bcd  x", "  long  b"]);
    }
}
