//! The engine itself is lost: another one folds the remaining records and continues.
//!
//! Records that no output depended on may be lost, the last ones first. The rest is folded from the
//! beginning and from a snapshot, with the same result; then everything that was not recorded is
//! dropped, and the graph receives the event. It does not know the layout on disk. Read next:
//! `kept`.

use ciel_coordinator::{Coordinator, FoldError};
use ciel_graph::{Action, Event, Policy, Situation};
use ciel_model::AttemptNumber;
use ciel_node::AttemptKey;
use ciel_ordered::Piece;

use crate::kept::{Attempts, Noted, Snapshot};
use crate::line::Line;
use crate::program::{Act, Definition, Scenario};
use crate::setup::{engine_of, policy_of};
use crate::summaries::Summaries;
use crate::world::World;

/// What a fold has come to.
#[derive(Debug)]
struct Folded {
    coordinator: Coordinator,
    /// What it took out.
    output: String,
    /// What the beginning, which did nothing, and each record behind it had to do.
    actions: Vec<Vec<Action>>,
}

impl World<'_> {
    /// Loses the engine, if the serial program can still say what the job does then.
    pub(crate) fn kill_engine(&mut self) {
        let records = self.kept.records.all().clone();
        let survivors = self.choose_survivors(records.len());
        if survivors < records.len() && self.kept.chance.one_in(3) {
            self.check_torn(&records[..=survivors]);
        }
        let records = &records[..survivors];
        let folded = self.fold_whole(records);
        if !self.may_go_on(&folded.coordinator, &self.kept.noted_of(survivors)) {
            return;
        }
        let shorter = self.fold_from_a_snapshot(records, &folded);
        let from_snapshot = shorter.filter(|_| self.kept.chance.one_in(2));
        self.trace.add(self.now, "engine lost", &survivors);
        self.forget_all_but(survivors, &folded);
        let mut coordinator =
            from_snapshot.map_or(folded.coordinator, |shorter| shorter.coordinator);
        coordinator.watch(true);
        self.engine = engine_of(self.scenario, coordinator);
        self.go_on();
    }

    /// How many records are left: at least those that let-out output depended on.
    fn choose_survivors(&mut self, all: usize) -> usize {
        let (gated, chance) = (self.kept.gated, &mut self.kept.chance);
        match chance.below(3) {
            0 => all,
            1 => gated + chance.below(all - gated + 1),
            _ => all - chance.below((all - gated).min(4) + 1),
        }
    }

    /// A record of which the end is missing is refused.
    fn check_torn(&mut self, records: &[Vec<u8>]) {
        let (last, whole) = records.split_last().expect("one was lost");
        let torn = last[..self.kept.chance.below(last.len())].to_vec();
        let records: Vec<Vec<u8>> = whole.iter().cloned().chain([torn]).collect();
        let refused = fold(None, &records).expect_err("a torn record is no record");
        assert_eq!(refused, FoldError::Record);
    }

    /// From the beginning; it must release again all that was released.
    fn fold_whole(&self, records: &[Vec<u8>]) -> Folded {
        let folded = match records {
            [] => Folded {
                coordinator: Coordinator::new(policy_of(self.scenario), false),
                output: String::new(),
                actions: Vec::new(),
            },
            records => fold(None, records).expect("what was recorded can be folded"),
        };
        assert!(
            folded.output.starts_with(&self.output),
            "let out: {:?}\nfolded: {:?}",
            self.output,
            folded.output
        );
        folded
    }

    /// From one of the snapshots that are left, if there is any; it must come to the same.
    fn fold_from_a_snapshot(&mut self, records: &[Vec<u8>], whole: &Folded) -> Option<Folded> {
        let covered = |snapshot: &&Snapshot| snapshot.covers <= records.len();
        let snapshots: Vec<&Snapshot> = self.kept.snapshots.iter().filter(covered).collect();
        if snapshots.is_empty() {
            return None;
        }
        let snapshot = snapshots[self.kept.chance.below(snapshots.len())];
        let records = &records[snapshot.covers..];
        let shorter = fold(Some(&snapshot.bytes), records).expect("so can the end of it");
        assert_eq!(shorter.output, whole.output[snapshot.released..]);
        assert_eq!(shorter.actions[1..], whole.actions[snapshot.covers..]);
        assert_eq!(normal(&shorter.coordinator), normal(&whole.coordinator));
        Some(shorter)
    }

    /// Whether every attempt that begins from scratch can be rolled back. That is not so if it is
    /// not replayable and its output, with the children it spawned, is released; or if it gave an
    /// output that depends on how a race ended. A real engine runs no such task while it records:
    /// there every script is replayable.
    fn may_go_on(&self, coordinator: &Coordinator, noted: &Noted) -> bool {
        let graph = coordinator.graph();
        graph.all().into_iter().all(|task| {
            let view = graph.view(task).expect("it is one of them");
            let running = matches!(view.situation, Situation::Running(_));
            if !running && !graph.keeps_live_copy(task) {
                return true;
            }
            let attempt = AttemptNumber(view.attempts - 1);
            let definition = definition_of(self.scenario, &view.label.what);
            let held = !definition.live || definition.retries > 0;
            let raced = definition.acts.iter().any(Act::is_race);
            let gave = definition
                .acts
                .iter()
                .any(|act| matches!(act, Act::Publish(_)));
            let spawned = noted.spawned.contains(&AttemptKey {
                task,
                number: attempt,
            });
            definition.replayable || (held || !spawned) && !(raced && gave)
        })
    }

    /// Nothing runs any more, and everything that was not recorded is dropped.
    fn forget_all_but(&mut self, survivors: usize, folded: &Folded) {
        self.kept.forget_after(survivors);
        self.kept.gated = survivors;
        self.output.clone_from(&folded.output);
        self.attempts = Attempts::default();
        self.summaries = Summaries::default();
        for action in folded.actions.iter().flatten() {
            self.attempts.see(action);
            self.summaries.see(action);
        }
        self.summaries.forget_stories();
        self.ending = None;
        self.processes.clear();
        self.begun.clear();
        self.copies.clear();
        self.workers.clear();
        self.line = Line::default();
        self.forget_happenings();
    }

    fn go_on(&mut self) {
        self.crashes += 1;
        let records = self.kept.records.clone();
        self.engine.state_mut().record_to(Box::new(records));
        let policy: Policy = self.engine.graph().policy();
        self.submit(Event::EngineLost {
            policy,
            lost: Vec::new(),
        });
        if self.counts().spawned == 0 {
            self.submit_root();
        }
    }
}

fn fold(snapshot: Option<&[u8]>, records: &[Vec<u8>]) -> Result<Folded, FoldError> {
    let (mut output, mut actions) = (String::new(), Vec::new());
    let records = records.iter().map(Vec::as_slice);
    let mut coordinator = Coordinator::fold(snapshot, records, |coordinator, done| {
        actions.push(done.to_vec());
        take_out(coordinator, &mut output);
        Ok::<(), FoldError>(())
    })?;
    take_out(&mut coordinator, &mut output);
    assert_eq!(coordinator.refusal(), None, "in the fold");
    Ok(Folded {
        coordinator,
        output,
        actions,
    })
}

/// Takes out everything that is final.
///
/// Standard output and files have one order, which is that of the serial program; each word must
/// come out of the file that it was written to.
pub(crate) fn take_out(state: &mut Coordinator, output: &mut String) {
    while let Some(chunk) = state.output_mut().take_ready(u64::MAX) {
        let text = text_of(chunk.piece);
        let index = (chunk.sink.0 as usize).checked_sub(1);
        let file = index.map(|index| state.files()[index].as_str());
        for word in words_of(&text) {
            assert_eq!(file_of(word), file, "{word} came out elsewhere");
        }
        output.push_str(&text);
    }
}

/// A piece as text.
pub(crate) fn text_of(piece: Piece) -> String {
    let Piece::Bytes(bytes) = piece else {
        unreachable!("nothing is spilled here");
    };
    String::from_utf8(bytes).expect("scripts write text")
}

/// The words of a text: what is written at once, however a replay cuts it.
pub(crate) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(',')
}

/// The file that a word goes to; none for standard output.
pub(crate) fn file_of(word: &str) -> Option<&'static str> {
    let sum: usize = word.bytes().map(usize::from).sum();
    [None, Some("/first"), Some("/second")][sum % 3]
}

/// A graph as bytes, sorted: its tables have no order of their own.
fn normal(coordinator: &Coordinator) -> Vec<u8> {
    let mut bytes = postcard::to_stdvec(coordinator.graph()).expect("a graph can be encoded");
    bytes.sort_unstable();
    bytes
}

fn definition_of<'a>(scenario: &'a Scenario, what: &str) -> &'a Definition {
    let index: usize = what[1..].parse().expect("tasks are called by their index");
    &scenario.tasks[index]
}
