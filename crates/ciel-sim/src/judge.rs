//! Runs a scenario and compares what it shows with the serial program.
//!
//! It states what is promised: equal result and failure; equal output, or after a failure a prefix
//! that holds everything before the failed task. It does not know how either side came to its
//! answer. Read next: `oracle`, `world`.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ciel_engine::{Pausing, Pressure};
use ciel_graph::{Counts, JobOutcome};
use ciel_model::Failure;

use crate::oracle::{Failing, Outcome, interpret, name_of};
use crate::program::{Expectation, Scenario};
use crate::script::number_in;
use crate::sites::{SitesMet, SitesWorld};
use crate::told::{CUT_BEGINS, CUT_ENDS, Told};
use crate::world::World;

/// What a run showed that it should not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement(pub String);

/// What a run showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The job's result.
    pub result: Result<u64, Failure>,
    /// What came out in order.
    pub output: String,
    /// What it recorded of its environment.
    pub told: Told,
    /// How often the engine was lost.
    pub crashes: u64,
    /// How often the store was asked for memory, and how often it could not give back enough.
    pub memory: [u64; 2],
    /// How often a strand resumed from a checkpoint.
    pub restored: u64,
    /// How often a worker began a prefetched start.
    pub followed: u64,
    /// How often a process began where another one had ended.
    pub passed_on: u64,
    /// Values that tasks read as streams, and those of them that were not stored.
    pub streams: [u64; 2],
    /// How often a task began in a worker that ran another one.
    pub together: u64,
    /// How often a task that had begun took over the slot of its spawner.
    pub taken_over: u64,
    /// How many tasks handed over to a successor.
    pub handed_over: u64,
    /// The resolutions that replayed tasks received at their start.
    pub recalled: u64,
    /// How often a strand resumed with its live copy in a worker.
    pub resumed: u64,
    /// How often a strand of a pure task was replayed although its process lived.
    pub moved: u64,
    /// How often what a strand did was undone.
    pub rolled_back: u64,
    /// Retries that spawned tasks again which had failed.
    pub repeated: u64,
    /// Times that a task released handles.
    pub released: u64,
    /// Children that ran in place.
    pub called: u64,
    /// How it stood with a bound of waiting output at the end.
    pub pressure: Option<Pressure>,
    /// How it stood with a bound of unfinished children at the end.
    pub pausing: Option<Pausing>,
    /// Most bytes that waited behind the frontier, if they were bounded.
    pub waiting_bytes_max: u64,
    /// The graph's counters at the end.
    pub counts: Counts,
    /// The fingerprint of its trace.
    pub fingerprint: u64,
}

/// Runs a scenario at several sites; a broken promise or invariant is the error.
pub fn run_at_sites(scenario: &Scenario) -> Result<(Shown, SitesMet), Disagreement> {
    let show = AssertUnwindSafe(|| show_at_sites(scenario));
    let (shown, met) = catch_unwind(show)
        .map_err(|panic| Disagreement(format!("a machine stopped: {}", words(&*panic))))?;
    compare(scenario, &interpret(scenario, &shown.told), &shown)?;
    Ok((shown, met))
}

fn show_at_sites(scenario: &Scenario) -> (Shown, SitesMet) {
    let mut world = SitesWorld::new(scenario, false);
    world.run();
    let met = world.met();
    let shown = Shown {
        result: result_of(world.ending.as_ref()).map_err(Arc::unwrap_or_clone),
        output: world.output.clone(),
        told: world.told(),
        crashes: met.killed + met.fenced,
        memory: [0, 0],
        restored: met.restored,
        followed: met.followed,
        passed_on: met.passed_on,
        streams: [0, 0],
        together: 0,
        taken_over: 0,
        handed_over: 0,
        recalled: 0,
        resumed: 0,
        moved: 0,
        rolled_back: 0,
        repeated: 0,
        released: 0,
        called: 0,
        pressure: None,
        pausing: None,
        waiting_bytes_max: 0,
        counts: world.counts(),
        fingerprint: world.trace().fingerprint(),
    };
    (shown, met)
}

/// Runs a scenario; a broken promise or invariant is the error.
pub fn run(scenario: &Scenario) -> Result<Shown, Disagreement> {
    let shown = catch_unwind(AssertUnwindSafe(|| show(scenario)))
        .map_err(|panic| Disagreement(format!("a machine stopped: {}", words(&*panic))))?;
    compare(scenario, &interpret(scenario, &shown.told), &shown)?;
    meet_expectations(scenario, &shown)?;
    Ok(shown)
}

fn show(scenario: &Scenario) -> Shown {
    let mut world = World::new(scenario, false);
    world.run();
    Shown {
        result: result_of(world.ending.as_ref()).map_err(Arc::unwrap_or_clone),
        output: world.output.clone(),
        told: world.told(),
        crashes: world.crashes,
        memory: [world.store.requests, world.store.refusals],
        restored: world.restored,
        handed_over: world.handed_over(),
        followed: world.followed,
        passed_on: world.passed_on,
        streams: world.streams_read(),
        together: world.together,
        taken_over: world.taken_over,
        recalled: world.recalled,
        resumed: world.resumed,
        moved: world.moved(),
        rolled_back: world.rolled_back,
        repeated: world.repeated,
        released: world.released,
        called: world.called,
        pressure: world.engine.pressure(),
        pausing: world.engine.pausing(),
        waiting_bytes_max: world.room.waiting_bytes_max,
        counts: world.counts(),
        fingerprint: world.trace().fingerprint(),
    }
}

fn result_of(ending: Option<&JobOutcome>) -> Result<u64, Arc<Failure>> {
    let ending = ending.expect("a run ends with its job");
    match &ending.result {
        Ok((_, value)) => Ok(number_in(&value.content)),
        Err(failure) => Err(failure.clone()),
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
    text.unwrap_or_else(|| "without words".to_string())
}

fn compare(scenario: &Scenario, serial: &Outcome, shown: &Shown) -> Result<(), Disagreement> {
    let interrupted = matches!(&shown.result, Err(failure) if failure.message == "interrupted");
    if serial.unanswered {
        // What follows it is unknown; a job that succeeded has reported every task.
        let well = shown.result.is_ok();
        let told = || Disagreement("a task that raced was not told how that ended".to_string());
        return (!well).then_some(()).ok_or_else(told);
    }
    if interrupted {
        return expect_prefix(serial, shown, 0);
    }
    if scenario.fail_fast && !serial.failures.is_empty() {
        expect_one_of(&serial.failures, shown)?;
        return expect_prefix(serial, shown, 0);
    }
    expect_same_result(serial, shown)?;
    match &serial.result {
        Err(failing) if !scenario.keep_going => expect_prefix(serial, shown, failing.output_before),
        _ if is_output(&serial.output, &shown.output, true) => Ok(()),
        _ => Err(differing_output("output differs", serial, shown)),
    }
}

fn expect_same_result(serial: &Outcome, shown: &Shown) -> Result<(), Disagreement> {
    let same = match (&serial.result, &shown.result) {
        (Ok(number), Ok(other)) => number == other,
        (Err(failing), Err(failure)) => is_same(failing, failure),
        _ => false,
    };
    same.then_some(()).ok_or_else(|| {
        let (serial, shown) = (&serial.result, &shown.result);
        Disagreement(format!(
            "result differs\n serial {serial:?}\n shown {shown:?}"
        ))
    })
}

fn expect_one_of(failures: &[Failing], shown: &Shown) -> Result<(), Disagreement> {
    let known = match &shown.result {
        Err(failure) => failures.iter().any(|failing| is_same(failing, failure)),
        Ok(_) => false,
    };
    let told = || Disagreement(format!("not a failure of the program: {:?}", shown.result));
    known.then_some(()).ok_or_else(told)
}

fn is_same(failing: &Failing, failure: &Failure) -> bool {
    let origin = name_of(&failing.origin);
    let own_words = matches!(failing.kind, "Timeout" | "Refused" | "Cancelled");
    failing.kind == failure.kind.code()
        && origin == failure.origin.name
        && (own_words || failing.message == failure.message)
}

fn expect_prefix(serial: &Outcome, shown: &Shown, least: usize) -> Result<(), Disagreement> {
    if !is_output(&serial.output, &shown.output, false) {
        return Err(differing_output("output is not a prefix", serial, shown));
    }
    let is_cut = serial.output.contains(CUT_BEGINS);
    if shown.output.len() < least && !is_cut {
        let what = format!("output lacks what comes before the failure ({least} bytes)");
        return Err(differing_output(&what, serial, shown));
    }
    Ok(())
}

/// Whether `shown` is the serial output, or a prefix of it unless it is the `whole`, where of each
/// cancelled strand any prefix is seen.
fn is_output(serial: &str, shown: &str, whole: bool) -> bool {
    if !serial.contains(CUT_BEGINS) {
        return serial.starts_with(shown) && (!whole || serial == shown);
    }
    let shown = shown.as_bytes();
    // The lengths of what may have been seen, and those at which a cut strand may have stopped.
    let mut seen = BTreeSet::from([0]);
    let mut cuts: Vec<BTreeSet<usize>> = Vec::new();
    for character in serial.chars() {
        match character {
            CUT_BEGINS => cuts.push(seen.clone()),
            CUT_ENDS => seen.extend(cuts.pop().expect("a cut begins before it ends")),
            character => {
                let is_next = |at: &usize| shown.get(*at) == Some(&(character as u8));
                seen = seen.into_iter().filter(is_next).map(|at| at + 1).collect();
                if !whole && seen.contains(&shown.len()) {
                    return true;
                }
            }
        }
        if let Some(cut) = cuts.last_mut() {
            cut.extend(&seen);
        }
    }
    seen.contains(&shown.len()) || shown.is_empty() && !whole
}

fn differing_output(what: &str, serial: &Outcome, shown: &Shown) -> Disagreement {
    let (serial, shown) = (&serial.output, &shown.output);
    Disagreement(format!("{what}\n serial {serial:?}\n shown  {shown:?}"))
}

fn meet_expectations(scenario: &Scenario, shown: &Shown) -> Result<(), Disagreement> {
    for expectation in &scenario.expectations {
        let met = match expectation {
            Expectation::Result(number) => shown.result.as_ref().ok() == Some(number),
            Expectation::Failure(text) => {
                let told = |failure: &Failure| format!("{} {}", failure.kind, failure.message);
                shown.result.as_ref().err().map(told).as_ref() == Some(text)
            }
            Expectation::Output(text) => shown.output == *text,
            Expectation::Count(name, number) => count(&shown.counts, name) == Some(*number),
        };
        if !met {
            return Err(Disagreement(format!(
                "expected {expectation:?}\n shown {shown:?}"
            )));
        }
    }
    Ok(())
}

fn count(counts: &Counts, name: &str) -> Option<u64> {
    Some(match name {
        "spawned" => counts.spawned,
        "finished" => counts.finished,
        "shared" => counts.shared,
        "failed" => counts.failed,
        "cancelled" => counts.cancelled,
        "retried" => counts.retried,
        "lost" => counts.lost,
        _ => return None,
    })
}
