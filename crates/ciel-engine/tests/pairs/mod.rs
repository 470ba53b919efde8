//! Direct streams whose ends share few slots: both ends of each run at the same time.

use std::collections::{BTreeMap, BTreeSet};

use ciel_engine::{Caller, Event};
use ciel_graph::{self as graph, Carriage, Output, Step};
use ciel_model::{Class, Descriptor, Handle, Input, Streams, TaskKey};
use proptest::prelude::*;

use super::house::{House, attempt_of, finished};

/// Pairs of a producer and its reader, and what has become of them.
struct Pairs {
    house: House,
    /// The task of each producer, and the pair of each task.
    producers: BTreeMap<usize, u64>,
    pair_of: BTreeMap<u64, usize>,
    running: BTreeSet<u64>,
    direct: BTreeSet<usize>,
}

fn process() -> Descriptor {
    Descriptor::plain("sh", Class::Process, "c", b"c".as_slice())
}

fn producer() -> Descriptor {
    let streams = Streams {
        outputs: vec![0],
        single_consumer: true,
        ..Streams::default()
    };
    process().with(|it| it.streams = streams.into())
}

fn reader(producer: u64) -> Descriptor {
    Descriptor {
        inputs: vec![Input::stream(Handle(producer as u32 - 1))],
        ..process()
    }
}

impl Pairs {
    fn new(cores: u32) -> Pairs {
        Pairs {
            house: House::new(cores),
            producers: BTreeMap::new(),
            pair_of: BTreeMap::new(),
            running: BTreeSet::new(),
            direct: BTreeSet::new(),
        }
    }

    /// Spawns the producer of a pair, or its reader if the producer was spawned.
    fn spawn(&mut self, pair: usize) {
        let task = self.pair_of.len() as u64 + 1;
        self.pair_of.insert(task, pair);
        let descriptor = match self.producers.get(&pair) {
            Some(producer) => reader(*producer),
            None => producer(),
        };
        self.producers.entry(pair).or_insert(task);
        let told = self.house.spawn(descriptor);
        self.follow(&told);
    }

    /// Producers that begin open their outputs, and readers have those directly that are running.
    fn follow(&mut self, told: &str) {
        let started = told
            .split(", ")
            .filter_map(|word| word.strip_prefix("start "));
        let started: Vec<u64> = started.map(|task| task.parse().unwrap()).collect();
        for task in started {
            self.running.insert(task);
            let pair = self.pair_of[&task];
            let producer = self.producers[&pair];
            let told = match task == producer {
                true => self.open(producer, Carriage::Stored),
                false => self.pass_directly(pair, task),
            };
            self.follow(&told);
        }
    }

    fn pass_directly(&mut self, pair: usize, reader: u64) -> String {
        let producer = self.producers[&pair];
        let graph = self.house.engine.graph();
        let refused = graph.not_direct(TaskKey(producer), 0, TaskKey(reader));
        assert_eq!(refused, None, "pair {pair}");
        self.direct.insert(pair);
        self.open(producer, Carriage::Direct)
    }

    fn open(&mut self, producer: u64, carriage: Carriage) -> String {
        let step = Step::OpenOutput { index: 0, carriage };
        self.house.step(attempt_of(producer), step)
    }

    /// The ends of a pair whose both ends run, in one order or the other.
    fn end(&mut self, pair: usize, reader_first: bool) {
        let mut ends: Vec<u64> = self.running.iter().copied().collect();
        ends.retain(|task| self.pair_of[task] == pair);
        if reader_first {
            ends.reverse();
        }
        for task in ends {
            let attempt = attempt_of(task);
            let mut end = finished(attempt);
            if let graph::Event::TaskFinished { outputs, .. } = &mut end
                && task == self.producers[&pair]
            {
                *outputs = vec![Output::Passed];
            }
            self.running.remove(&task);
            let end = Some(end);
            let told = self
                .house
                .ask(Event::TurnEnded { attempt, end }, Caller::Nobody);
            self.follow(&told);
        }
    }

    /// Of the pairs with an end that runs, those of which only one does.
    fn torn(&self) -> Vec<usize> {
        let count = |pair: &usize| {
            let ends = self.running.iter();
            ends.filter(|task| self.pair_of[task] == *pair).count()
        };
        let pairs: BTreeSet<usize> = self.running.iter().map(|it| self.pair_of[it]).collect();
        pairs.into_iter().filter(|pair| count(pair) == 1).collect()
    }
}

/// With two slots and three pairs whose producers were spawned first, two producers had both slots,
/// and after 50 ms their streams were stored, in ten of sixteen runs.
#[test]
fn three_pairs_whose_producers_come_first_are_direct_on_two_cores() {
    let mut pairs = Pairs::new(2);
    for pair in [0, 1, 2, 0, 1, 2] {
        pairs.spawn(pair);
    }
    for pair in 0..3 {
        assert_eq!(pairs.torn(), [0; 0]);
        pairs.end(pair, false);
    }
    assert_eq!(pairs.direct.len(), 3);
}

proptest! {
    #[test]
    fn all_pairs_are_direct_in_whatever_order_they_are_spawned_and_end(
        cores in 2..6_u32,
        order in Just((0..6).chain(0..6).collect::<Vec<usize>>()).prop_shuffle(),
        ends in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 6),
    ) {
        let mut pairs = Pairs::new(cores);
        for pair in order {
            pairs.spawn(pair);
        }
        for (which, reader_first) in ends {
            prop_assert_eq!(pairs.torn(), Vec::<usize>::new());
            let running: Vec<u64> = pairs.running.iter().copied().collect();
            let pair = pairs.pair_of[which.get(&running)];
            pairs.end(pair, reader_first);
        }
        prop_assert_eq!(pairs.direct.len(), 6);
        prop_assert!(pairs.running.is_empty());
    }
}
