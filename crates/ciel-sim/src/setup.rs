//! What a scenario says about machine, policy and workers, in the engine's words.
//!
//! It does not know what happens. Read next: `world`.

use ciel_coordinator::Coordinator;
use ciel_engine::{Engine, Event};
use ciel_graph::Policy;
use ciel_model::Resources;
use ciel_node::{Capacity, Node, WorkerKey};

use crate::memory::MEMORY_BYTES;
use crate::program::Scenario;

/// Microseconds for which a task runs at least before it may be a straggler.
const STRAGGLER_US: u64 = 200;

/// A budget that is used up, or not used.
pub(crate) const BUDGET_BYTES: u64 = 100;

/// The engine of a scenario with that state, in which nothing runs.
pub(crate) fn engine_of(scenario: &Scenario, coordinator: Coordinator) -> Engine {
    let node = Node::new(capacity_of(scenario));
    let node = node.share_with_store(scenario.memory.unwrap_or_default());
    let mut engine = Engine::new(coordinator, node);
    if let Some(bound_bytes) = scenario.held_bytes {
        engine.bound_output(bound_bytes);
    }
    if let Some(children_max) = scenario.children_max {
        engine.bound_children(children_max);
    }
    if scenario.scarce.is_some() {
        engine.bound_room(BUDGET_BYTES);
    }
    engine
}

/// A worker says hello. Those that do not begin prefetched starts run two tasks at once in every
/// other scenario.
pub(crate) fn ready(scenario: &Scenario, worker: WorkerKey) -> Event {
    let prefetches = scenario.ahead;
    let slots = match prefetches {
        true => 1,
        false => 1 + (scenario.seed % 2) as u32,
    };
    Event::WorkerReady {
        worker,
        prefetches,
        slots,
    }
}

/// The machine of a scenario.
pub(crate) fn capacity_of(scenario: &Scenario) -> Capacity {
    let resources = Resources {
        millicores: scenario.slots * 1000,
        memory_bytes: scenario.memory.map(|_| MEMORY_BYTES),
        ..Resources::default()
    };
    Capacity {
        resources,
        threads: scenario.slots,
        serial: scenario.serial,
    }
}

/// What a failure does in a scenario.
pub(crate) fn policy_of(scenario: &Scenario) -> Policy {
    Policy {
        keep_going: scenario.keep_going,
        fail_fast: scenario.fail_fast,
        check: scenario.check,
        straggler_us: scenario.stragglers.then_some(STRAGGLER_US),
        duplicates_assumed: scenario.seed & 4 == 0,
    }
}
