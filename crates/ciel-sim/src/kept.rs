//! What of a world survives its engine: records, snapshots, and what the world itself has noted.
//!
//! Each note belongs to a record and is forgotten if that is lost. It does not know when an engine
//! is lost. Read next: `crash`, where that happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use ciel_coordinator::Recorder;
use ciel_graph::{Action, Assignment};
use ciel_model::{Label, Name, TaskKey, WaitEnd};
use ciel_node::AttemptKey;

use crate::program::{Fault, Scenario};
use crate::random::Random;
use crate::told::Told;

/// All records, as bytes; a clone is another hand on the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records(Arc<Mutex<Vec<Vec<u8>>>>);

impl Records {
    pub(crate) fn all(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().expect("nobody panics while holding it")
    }
}

impl Recorder for Records {
    fn append(&mut self, spell: &mut dyn FnMut(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        spell(&mut bytes);
        self.all().push(bytes);
    }
}

/// The whole coordinator at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) bytes: Vec<u8>,
    /// How many records it stands for.
    pub(crate) covers: usize,
    /// Bytes of output that were released.
    pub(crate) released: usize,
}

/// Something that the world has to know of what happened.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// A task begins without answers.
    Began(Name),
    /// The answers of a task's races so far, each with its action.
    Raced(Name, Vec<(u64, WaitEnd)>),
    /// What a task did from that action on was undone.
    RolledBack(Name, u64),
    /// An attempt spawned something.
    Spawned(AttemptKey),
    /// A task lost its worker.
    Lost(TaskKey),
    /// A task has ended, perhaps because another one cancelled it.
    Ended {
        /// Its name.
        task: Name,
        /// Whether it was.
        cut: bool,
    },
}

/// What all notes together say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    races: BTreeMap<Name, Vec<(u64, WaitEnd)>>,
    pub(crate) spawned: BTreeSet<AttemptKey>,
    pub(crate) losses: BTreeMap<TaskKey, u32>,
    cut: BTreeSet<Name>,
}

impl Noted {
    /// The answers of each task's races, by its name, and the tasks that were cancelled.
    pub(crate) fn told(&self) -> Told {
        let ends =
            |races: &Vec<(u64, WaitEnd)>| races.iter().map(|(_, ended)| ended.clone()).collect();
        let all = self.races.iter();
        Told {
            races: all.map(|(name, races)| (*name, ends(races))).collect(),
            cut: self.cut.clone(),
        }
    }

    fn add(&mut self, note: Note) {
        match note {
            Note::Began(name) => drop(self.races.remove(&name)),
            Note::Raced(name, races) => self.add_races(name, races),
            Note::RolledBack(name, to) => {
                let races = self.races.entry(name).or_default();
                races.retain(|(action, _)| *action < to);
            }
            Note::Spawned(attempt) => drop(self.spawned.insert(attempt)),
            Note::Lost(task) => *self.losses.entry(task).or_default() += 1,
            Note::Ended { task, cut: true } => drop(self.cut.insert(task)),
            Note::Ended { task, cut: false } => drop(self.cut.remove(&task)),
        }
    }

    /// A replayed task must receive the same answers again.
    fn add_races(&mut self, name: Name, races: Vec<(u64, WaitEnd)>) {
        let known = self.races.entry(name).or_default();
        let common = known.len().min(races.len());
        assert_eq!(known[..common], races[..common], "races of {name}");
        if races.len() > common {
            *known = races;
        }
    }
}

/// How many attempts of each task have failed, as the graph reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts {
    names: BTreeMap<Name, TaskKey>,
    failures: BTreeMap<TaskKey, u32>,
}

impl Attempts {
    pub(crate) fn see(&mut self, action: &Action) {
        match action {
            Action::Begin(assignment) => self.begun(assignment),
            Action::AttemptFailed { task, .. } => self.failed(task),
            _ => {}
        }
    }

    pub(crate) fn begun(&mut self, assignment: &Assignment) {
        self.names.insert(assignment.label.name, assignment.task);
    }

    pub(crate) fn failed(&mut self, task: &Label) {
        if let Some(task) = self.names.get(&task.name) {
            *self.failures.entry(*task).or_default() += 1;
        }
    }

    pub(crate) fn failures_of(&self, task: TaskKey) -> u32 {
        self.failures.get(&task).copied().unwrap_or(0)
    }
}

/// Everything that is kept.
#[derive(Debug)]
pub(crate) struct Saved {
    /// Whether the engine will be lost at all; else nothing is recorded.
    pub(crate) records_all: bool,
    pub(crate) records: Records,
    /// Records that released output depends on: these are never lost.
    pub(crate) gated: usize,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) noted: Noted,
    notes: Vec<(usize, Note)>,
    /// Decides all that has to do with losing the engine, so that other scenarios stay as they are.
    pub(crate) chance: Random,
}

impl Saved {
    pub(crate) fn new(scenario: &Scenario) -> Saved {
        let lost = |(_, fault): &(u64, Fault)| *fault == Fault::KillEngine;
        Saved {
            records_all: scenario.faults.iter().any(lost),
            records: Records::default(),
            gated: 0,
            snapshots: Vec::new(),
            noted: Noted::default(),
            notes: Vec::new(),
            chance: Random::new(scenario.seed.rotate_left(32)),
        }
    }

    /// Adds the content of the next record.
    pub(crate) fn note(&mut self, note: Note) {
        let next = self.records.all().len();
        self.note_at(next, note);
    }

    /// Notes what the last record has brought about.
    pub(crate) fn note_done(&mut self, note: Note) {
        let last = self.records.all().len().saturating_sub(1);
        self.note_at(last, note);
    }

    /// Notes what that record has brought about.
    pub(crate) fn note_at(&mut self, record: usize, note: Note) {
        self.notes.push((record, note.clone()));
        self.noted.add(note);
    }

    /// What the notes of the first so many records say.
    pub(crate) fn noted_of(&self, records: usize) -> Noted {
        let mut noted = Noted::default();
        let survivors = self.notes.iter().filter(|(record, _)| *record < records);
        survivors.for_each(|(_, note)| noted.add(note.clone()));
        noted
    }

    /// Forgets all but the first so many records and whatever belongs to others.
    pub(crate) fn forget_after(&mut self, records: usize) {
        self.noted = self.noted_of(records);
        self.notes.retain(|(record, _)| *record < records);
        self.snapshots.retain(|snapshot| snapshot.covers <= records);
        self.records.all().truncate(records);
    }
}
