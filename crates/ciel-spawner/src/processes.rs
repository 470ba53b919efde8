//! What the kernel reports about processes, read from `/proc`.
//!
//! Everything here is a look that may be out of date at once: processes end and numbers are used
//! again. To act on a number, hold the process still: as its parent, or by a handle. This module
//! does not know tasks. Next: `sweep`, which kills, and `ledger`, which decides.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::cookie::COOKIE_VARIABLE;
use crate::limits::{COMMAND_BYTES_MAX, TRACE_ATTEMPTS_MAX, TRACE_PAUSE_US};

/// The place of a process among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    /// It has ended and waits to be collected.
    pub ended: bool,
}

/// The children of this process, which must have a single thread.
pub(crate) struct Children {
    own: u32,
    list: Option<File>,
}

impl Children {
    /// Opens the kernel's list; without one, every look reads all processes instead.
    pub(crate) fn open() -> Children {
        let own = std::process::id();
        Children {
            own,
            list: File::open(format!("/proc/self/task/{own}/children")).ok(),
        }
    }

    /// The children that exist now, ended ones included.
    pub(crate) fn look(&self) -> io::Result<Vec<u32>> {
        let Some(list) = &self.list else {
            return Ok(all()
                .filter(|place| place.parent == self.own)
                .map(|p| p.pid)
                .collect());
        };
        let mut text = Vec::new();
        let mut block = [0; 4096];
        loop {
            let length = list.read_at(&mut block, text.len() as u64)?;
            text.extend_from_slice(&block[..length]);
            // The kernel fills the block with whole numbers as long as there are any.
            if length < block.len() / 2 {
                break;
            }
        }
        Ok(numbers(&String::from_utf8_lossy(&text)))
    }
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_ascii_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect()
}

/// The place of every process that can be seen.
pub(crate) fn all() -> impl Iterator<Item = Place> {
    let folder = fs::read_dir("/proc").into_iter().flatten().flatten();
    folder.filter_map(|entry| place(entry.file_name().to_str()?.parse().ok()?))
}

/// The place of one process; `None` when there is no such process.
pub(crate) fn place(pid: u32) -> Option<Place> {
    parse_place(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The command's name is in brackets and may itself contain brackets, so the last one counts.
fn parse_place(pid: u32, text: &[u8]) -> Option<Place> {
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let mut fields = std::str::from_utf8(&text[end + 1..])
        .ok()?
        .split_ascii_whitespace();
    let state = fields.next()?;
    let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Place {
        pid,
        parent,
        group,
        ended: matches!(state, "Z" | "X" | "x"),
    })
}

/// The marks in a process's environment; `None` when it has none or may not be read.
pub(crate) fn marks(pid: u32) -> Option<Vec<u8>> {
    marks_in(&fs::read(format!("/proc/{pid}/environ")).ok()?)
}

fn marks_in(environment: &[u8]) -> Option<Vec<u8>> {
    let mut entries = environment.split(|&byte| byte == 0);
    entries.find_map(|entry| {
        let value = entry
            .strip_prefix(COOKIE_VARIABLE.as_bytes())?
            .strip_prefix(b"=")?;
        Some(value.to_vec())
    })
}

/// Like [`marks`], but patient: a process that is just starting a program shows an empty
/// environment for a moment. One that has no environment at all costs the whole patience.
pub(crate) fn settled_marks(pid: u32) -> Option<Vec<u8>> {
    for _ in 0..TRACE_ATTEMPTS_MAX {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        if !environment.is_empty() || place(pid)?.ended {
            return marks_in(&environment);
        }
        std::thread::sleep(Duration::from_micros(TRACE_PAUSE_US));
    }
    None
}

/// The command line of a process for messages, or its name in square brackets.
pub(crate) fn command(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&line)
        .trim_end_matches('\0')
        .replace('\0', " ");
    if text.is_empty() {
        let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        return format!("[{}]", String::from_utf8_lossy(&name).trim_end());
    }
    let cut = (0..=COMMAND_BYTES_MAX.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at));
    text[..cut.unwrap_or(0)].to_owned()
}

/// For each given process: itself, its process group and all descendants that still hang on it.
pub(crate) fn trees(roots: &[u32]) -> Vec<BTreeSet<u32>> {
    let places: BTreeMap<u32, Place> = all().map(|place| (place.pid, place)).collect();
    let mut trees = vec![BTreeSet::new(); roots.len()];
    for place in places.values().filter(|place| !place.ended) {
        for (root, tree) in roots.iter().zip(&mut trees) {
            if place.group == *root || descends(&places, place, *root) {
                tree.insert(place.pid);
            }
        }
    }
    trees
}

fn descends(places: &BTreeMap<u32, Place>, place: &Place, root: u32) -> bool {
    let mut at = *place;
    // A look is not one moment, so a chain may seem to be a ring; its length is bounded.
    for _ in 0..places.len() {
        if at.pid == root {
            return true;
        }
        match places.get(&at.parent) {
            Some(parent) => at = *parent,
            None => return false,
        }
    }
    false
}

/// The resident anonymous memory of tasks, in bytes: for each first process, the sum over its
/// process group and its descendants. 0 when none is left. One look serves all, so give all
/// tasks at once; it costs a few microseconds for each process of the machine.
pub fn resident_anonymous(tasks: &[u32]) -> Vec<u64> {
    if tasks.is_empty() {
        return Vec::new();
    }
    trees(tasks)
        .iter()
        .map(|tree| tree.iter().map(|&pid| anonymous_bytes(pid)).sum())
        .collect()
}

fn anonymous_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let mut pages = text
        .split_ascii_whitespace()
        .map(|field| field.parse::<u64>().unwrap_or(0));
    let (resident, shared) = (pages.nth(1).unwrap_or(0), pages.next().unwrap_or(0));
    resident.saturating_sub(shared) * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_brackets_does_not_disturb_the_place() {
        let place = parse_place(7, b"7 (a) Z (b) S 3 4 5 0 -1").unwrap();
        assert_eq!(
            place,
            Place {
                pid: 7,
                parent: 3,
                group: 4,
                ended: false
            }
        );
    }

    #[test]
    fn own_process_is_found_with_its_command() {
        let own = std::process::id();
        assert!(all().any(|place| place.pid == own && !place.ended));
        assert!(command(own).contains("ciel_spawner"), "{}", command(own));
        assert_eq!(place(u32::MAX), None);
    }

    #[test]
    fn marks_are_found_between_other_variables() {
        assert_eq!(
            marks_in(b"A=1\0CIEL_COOKIE=r:t\0B=2\0"),
            Some(b"r:t".to_vec())
        );
        assert_eq!(marks_in(b"XCIEL_COOKIE=r:t\0"), None);
    }

    #[test]
    fn own_memory_is_more_than_a_page() {
        assert!(resident_anonymous(&[std::process::id()])[0] > 4096);
        assert_eq!(resident_anonymous(&[u32::MAX]), [0]);
    }
}
