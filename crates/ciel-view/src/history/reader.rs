//! Reads a history, as far as a query needs it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::{COUNTS, FAILED, LOGS, RUN, TASKS, old};
use crate::records::{CountsRecord, EndRecord, LogRecord, Record, RunRecord, TaskRecord};

/// Bytes of a line; longer ones are passed over.
const LINE_BYTES_MAX: usize = 16 << 20;

/// The one that reads a run's history. A line that was not written whole, or that another version
/// wrote, is passed over, and so is a file that is missing.
#[derive(Clone, Debug)]
pub struct Reader {
    folder: PathBuf,
}

impl Reader {
    /// That of a history's folder.
    pub fn new(folder: &Path) -> Reader {
        Reader {
            folder: folder.to_path_buf(),
        }
    }

    /// What was run; none before the run has begun.
    pub fn run(&self) -> Option<RunRecord> {
        let records = self.records(&[RUN]);
        records.into_iter().find_map(|record| match record {
            Record::Run(run) => Some(run),
            _ => None,
        })
    }

    /// How the run ended, if it did.
    pub fn end(&self) -> Option<EndRecord> {
        let records = self.records(&[RUN]);
        records.into_iter().find_map(|record| match record {
            Record::End(end) => Some(*end),
            _ => None,
        })
    }

    /// How many tasks there were.
    pub fn counts(&self) -> Option<CountsRecord> {
        let records = self.records(&[COUNTS]);
        records.into_iter().find_map(|record| match record {
            Record::Counts(counts) => Some(counts),
            _ => None,
        })
    }

    /// The first tasks that failed by themselves, and how many such tasks are known.
    pub fn failures(&self, most: usize) -> (Vec<TaskRecord>, u64) {
        let mut tasks = Vec::new();
        let mut count = 0;
        self.each_line(FAILED, |line| {
            count += 1;
            if tasks.len() < most
                && let Ok(Record::Task(task)) = serde_json::from_slice(line)
            {
                tasks.push(*task);
            }
        });
        (tasks, count)
    }

    /// The tasks that are known and wanted, each as it was recorded last, in the order of their
    /// ends.
    pub fn tasks(&self, is_wanted: impl Fn(&TaskRecord) -> bool) -> Vec<TaskRecord> {
        let mut tasks: Vec<TaskRecord> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for record in self.records(&[FAILED, &old(TASKS), TASKS]) {
            let Record::Task(task) = record else {
                continue;
            };
            match places.get(&task.name) {
                _ if !is_wanted(&task) => {}
                Some(place) if tasks[*place].ended_us() > task.ended_us() => {}
                Some(place) => tasks[*place] = *task,
                None => {
                    places.insert(task.name.clone(), tasks.len());
                    tasks.push(*task);
                }
            }
        }
        tasks.sort_by_key(TaskRecord::ended_us);
        tasks
    }

    /// What is kept of a task's own output, by the task's label.
    pub fn logs(&self, task: &str) -> Vec<LogRecord> {
        let records = self.records(&[&old(LOGS), LOGS]);
        let log = |record| match record {
            Record::Log(log) if log.task == task => Some(log),
            _ => None,
        };
        records.into_iter().filter_map(log).collect()
    }

    /// The records of some files, one file after the other.
    fn records(&self, names: &[&str]) -> Vec<Record> {
        let mut records = Vec::new();
        // The newest file is opened first: one that becomes an old one meanwhile is not missed.
        let files: Vec<Option<File>> = names.iter().rev().map(|name| self.open(name)).collect();
        for file in files.into_iter().rev().flatten() {
            // What cannot be read is not known.
            let _ = each_line_of(file, |line| {
                records.extend(serde_json::from_slice::<Record>(line));
            });
        }
        records
    }

    fn each_line(&self, name: &str, each: impl FnMut(&[u8])) {
        if let Some(file) = self.open(name) {
            // What cannot be read is not known.
            let _ = each_line_of(file, each);
        }
    }

    fn open(&self, name: &str) -> Option<File> {
        File::open(self.folder.join(name)).ok()
    }
}

fn each_line_of(file: File, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        if line.ends_with(b"\n") && line.len() <= LINE_BYTES_MAX {
            each(&line);
        }
        line.clear();
    }
    Ok(())
}
