//! What an append costs: time, bytes and system calls, with the journal's threads at work.
//!
//! It knows no payload but filler. Read next: `README.md` of this crate.

use std::path::Path;
use std::time::{Duration, Instant};

use ciel_journal::{Durability, Journal, JournalError};

const RECORDS: u64 = 100_000;
const PAYLOAD: [u8; 100] = [b'p'; 100];
const ROUNDS: usize = 5;

fn main() -> Result<(), JournalError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let folder = Path::new(&folder).join(format!("measure-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("the folder to measure in can be made");
    let outcome = measure(&folder);
    std::fs::remove_dir_all(&folder).expect("the folder was made here");
    outcome
}

fn measure(folder: &Path) -> Result<(), JournalError> {
    let journal = Journal::create(folder, Durability::Process)?;
    for _ in 0..ROUNDS {
        append_many(&journal)?;
    }
    for _ in 0..ROUNDS {
        wait_each(&journal)?;
    }
    journal.close()
}

fn append_many(journal: &Journal) -> Result<(), JournalError> {
    let (bytes, writes) = (journal.grown().log_bytes, writes());
    let start = Instant::now();
    for _ in 0..RECORDS {
        journal.append(|into| into.extend_from_slice(&PAYLOAD));
    }
    let appended = start.elapsed();
    journal.wait_for(journal.appended())?;
    let written = start.elapsed();
    let bytes = journal.grown().log_bytes - bytes;
    let each = appended.as_nanos() / u128::from(RECORDS);
    let rate = bytes as f64 / written.as_secs_f64() / 1e6;
    let writes = self::writes() - writes;
    println!("append: {each} ns each; {rate:.0} MB/s written; {writes} writes for {RECORDS}");
    Ok(())
}

fn wait_each(journal: &Journal) -> Result<(), JournalError> {
    const WAITS: u32 = 10_000;
    let start = Instant::now();
    for _ in 0..WAITS {
        let number = journal.append(|into| into.extend_from_slice(&PAYLOAD));
        journal.wait_for(number)?;
    }
    let each: Duration = start.elapsed() / WAITS;
    println!("append and wait: {} ns each", each.as_nanos());
    Ok(())
}

/// Calls to write that the kernel has counted for this process.
fn writes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("syscw: "));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}
