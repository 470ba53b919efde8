//! Random trees of segments, written in a random order of commits, and what they should give.

use ciel_cio::format::HEADER_BYTES;
use ciel_cio::{Data, Item, ROOT, Segment, Writer};
use proptest::prelude::*;

/// What a strand does.
#[derive(Clone, Debug)]
pub enum Act {
    /// Writes so many bytes.
    Write(u16),
    /// Commits what it has written since the last commit.
    Commit,
    /// Spawns a strand, which does this.
    Spawn(Vec<Act>),
}

/// So many programs; a failed one is shown, and written nowhere.
pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A program with a seed that decides which strand runs next.
pub fn program() -> impl Strategy<Value = (Vec<Act>, Vec<u8>)> {
    let write = || (1..40u16).prop_map(Act::Write);
    let leaf = prop_oneof![3 => write(), 1 => Just(Act::Commit)];
    let act = leaf.prop_recursive(4, 40, 6, move |inner| {
        let spawn = prop::collection::vec(inner, 0..6).prop_map(Act::Spawn);
        prop_oneof![2 => write(), 1 => Just(Act::Commit), 2 => spawn]
    });
    let seed = prop::collection::vec(any::<u8>(), 1..20);
    (prop::collection::vec(act, 0..8), seed)
}

/// One commit.
#[derive(Clone, Debug)]
pub struct Commit {
    pub segment: Segment,
    pub items: Vec<Item>,
    pub is_ended: bool,
}

/// A file with its history.
pub struct Written {
    pub file: Vec<u8>,
    pub flat: Vec<u8>,
    pub commits: Vec<Commit>,
}

/// A strand that has not ended.
struct Running {
    segment: Segment,
    /// Its place in serial order: at each level, how many acts came before.
    path: Vec<usize>,
    rest: std::vec::IntoIter<Act>,
    items: Vec<Item>,
    done: usize,
}

impl Running {
    fn new(segment: Segment, path: Vec<usize>, acts: Vec<Act>) -> Running {
        Running {
            segment,
            path,
            rest: acts.into_iter(),
            items: Vec::new(),
            done: 0,
        }
    }
}

struct Run {
    writer: Writer,
    running: Vec<Running>,
    commits: Vec<Commit>,
    pieces: Vec<(Vec<usize>, Vec<u8>)>,
}

impl Run {
    fn step(&mut self, chosen: usize) {
        let strand = &mut self.running[chosen];
        let place = [&strand.path[..], &[strand.done]].concat();
        strand.done += 1;
        match strand.rest.next() {
            Some(Act::Write(count)) => {
                let first = self.pieces.len() * 31;
                let bytes: Vec<u8> = (0..count).map(|at| (first + at as usize) as u8).collect();
                strand
                    .items
                    .push(Item::Data(self.writer.write(&bytes).unwrap()));
                self.pieces.push((place, bytes));
            }
            Some(Act::Commit) => self.commit(chosen, false),
            Some(Act::Spawn(acts)) => {
                let child = self.writer.segment();
                strand.items.push(Item::Child(child));
                self.running.push(Running::new(child, place, acts));
            }
            None => {
                self.commit(chosen, true);
                self.running.swap_remove(chosen);
            }
        }
    }

    fn commit(&mut self, chosen: usize, is_ended: bool) {
        let strand = &mut self.running[chosen];
        let items = std::mem::take(&mut strand.items);
        self.writer
            .commit(strand.segment, &items, is_ended)
            .unwrap();
        self.commits.push(Commit {
            segment: strand.segment,
            items,
            is_ended,
        });
    }
}

/// Runs a program to its end, without the close of the file if it is to look like a crash.
pub fn write(acts: &[Act], seed: &[u8], closes: bool) -> Written {
    let file = tempfile::NamedTempFile::new().unwrap();
    let writer = Writer::create(file.reopen().unwrap()).unwrap();
    let mut run = Run {
        writer,
        running: vec![Running::new(ROOT, Vec::new(), acts.to_vec())],
        commits: Vec::new(),
        pieces: Vec::new(),
    };
    let mut turns = seed.iter().cycle().zip(1..);
    while !run.running.is_empty() {
        let (choice, turn) = turns.next().unwrap();
        run.step(usize::from(*choice) * turn % run.running.len());
    }
    if closes {
        run.writer.close().unwrap();
    }
    run.pieces.sort();
    Written {
        file: std::fs::read(file.path()).unwrap(),
        flat: run
            .pieces
            .into_iter()
            .flat_map(|(_, bytes)| bytes)
            .collect(),
        commits: run.commits,
    }
}

/// The data up to the frontier after some commits, by recursion, and whether they are all.
pub fn frontier(commits: &[Commit], segment: Segment) -> (Vec<Data>, bool) {
    let own: Vec<&Commit> = commits
        .iter()
        .filter(|one| one.segment == segment)
        .collect();
    let mut data = Vec::new();
    for item in own.iter().flat_map(|commit| &commit.items) {
        match item {
            Item::Data(piece) => data.push(*piece),
            Item::Child(child) => {
                let (inner, is_whole) = frontier(commits, *child);
                data.extend(inner);
                if !is_whole {
                    return (data, false);
                }
            }
        }
    }
    (data, own.last().is_some_and(|commit| commit.is_ended))
}

/// Where the record of each commit lies, if all are in the first block.
pub fn records(commits: &[Commit]) -> Vec<std::ops::Range<usize>> {
    let mut at = HEADER_BYTES;
    let mut range = |commit: &Commit| {
        let start = at;
        at += 16 * (1 + commit.items.len());
        start..at
    };
    commits.iter().map(&mut range).collect()
}

/// The bytes of data.
pub fn bytes_of(file: &[u8], data: &[Data]) -> Vec<u8> {
    let piece = |data: &Data| &file[data.offset as usize..][..data.length as usize];
    data.iter().flat_map(|data| piece(data).to_vec()).collect()
}
