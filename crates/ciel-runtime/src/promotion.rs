//! When what a script keeps in its machine is promoted to tasks.
//!
//! It does not know how a machine promotes. Read next: `scripts`, and `ciel_skywriting::machine`.

use ciel_model::{Failure, FailureKind, limits};
use ciel_skywriting::machine::{Machine, Parallel, Promoted, Step};

use crate::engine::Engine;
use crate::script::Script;
use crate::script_host::ScriptHost;

/// Instructions between two looks whether another thread waits for what a script keeps.
const SLICE_FUEL: u32 = 5_000;

/// Instructions after children were promoted before they began, until they are known to others:
/// most strands wait for them at once, which is told with them.
const OFFERED_FUEL: u64 = 100;

/// Instructions after which something that a machine keeps is promoted in any case.
const KEPT_FUEL_MAX: u32 = 20 * limits::SCRIPT_FUEL as u32;

/// The same where each child needs one before it: all that are spawned later are tasks, too, then.
const ROW_FUEL_MAX: u32 = 20 * KEPT_FUEL_MAX;

/// Children that are promoted at once, at most.
const PROMOTED_MAX: usize = 16;

/// Runs for a turn, or until something that the machine keeps is to be promoted: another thread
/// waits for it, and the machine has done more since the last promotion than the next one costs.
/// Children that are better promoted before they begin are promoted on the way.
pub(crate) fn run_for_others(
    engine: &Engine,
    machine: &mut Machine,
    kept_for: &mut u32,
    host: &mut ScriptHost<'_>,
) -> Step {
    for _ in 0..limits::SCRIPT_FUEL / u64::from(SLICE_FUEL) {
        let step = machine.run(host, SLICE_FUEL.into());
        *kept_for = kept_for.saturating_add(SLICE_FUEL);
        if machine.is_offering() {
            *kept_for = 0;
            machine.promote_offered(host, PROMOTED_MAX);
            return machine.run(host, OFFERED_FUEL);
        }
        let is_due = is_due(engine, machine, *kept_for);
        let is_much = host.has_written_much() || host.has_spawned_many();
        if step != Step::Preempted || is_due || is_much {
            return step;
        }
    }
    Step::Preempted
}

/// Whether something is to be promoted so long after the last promotion.
fn is_due(engine: &Engine, machine: &Machine, kept_for: u32) -> bool {
    let is_asked = || engine.is_thread_idle() || kept_for >= KEPT_FUEL_MAX;
    let costs_less = u64::from(kept_for) >= machine.promotion_fuel();
    if !(machine.has_kept() && costs_less && is_asked()) {
        return false;
    }
    let least = match machine.parallel(kept_for.is_multiple_of(KEPT_FUEL_MAX)) {
        Parallel::Children | Parallel::Strand => 0,
        Parallel::Nothing => KEPT_FUEL_MAX,
        Parallel::Row => ROW_FUEL_MAX,
    };
    kept_for >= least
}

/// Promotes what another thread can run, and what only a task can continue. Now and then something
/// is promoted although nobody waits for it: a resumed run has its result, and need not rerun it.
pub(crate) fn promote(
    engine: &Engine,
    machine: &mut Machine,
    kept_for: &mut u32,
    host: &mut ScriptHost<'_>,
    step: &Step,
) -> Result<Option<Promoted>, String> {
    match step {
        Step::NeedsHost => {}
        Step::Preempted if is_due(engine, machine, *kept_for) => {}
        _ => return Ok(None),
    }
    *kept_for = 0;
    let promoted = machine.promote_running(host)?;
    if promoted.is_none() && *step == Step::NeedsHost {
        return Err("it did what it had not done in the run that it repeats".to_string());
    }
    machine.promote_oldest(host, PROMOTED_MAX);
    Ok(promoted)
}

/// A child that ran in place cannot become a task.
pub(crate) fn not_promoted(script: &Script, why: String) -> Failure {
    let label = script.assignment().label.clone();
    Failure::new(
        FailureKind::TaskError,
        label,
        format!("a function that it spawned: {why}"),
    )
}
