//! Children that have begun in a worker before the engine hears of them.
//!
//! What they do before that concerns nobody, so here they do nothing; but the engine must give each
//! of them the slot of its spawner when that waits, or make an ordinary task of it. Which children
//! these are depends on seed and position only. It does not know how slots pass on. Read next:
//! `world`.

use ciel_graph::Step;
use ciel_model::Descriptor;
use ciel_node::Slot;

use crate::program::Scenario;
use crate::random::Random;
use crate::script::{Script, descriptor};

/// Whether a step of a task in its slot spawns a child that has begun: one that fits into the slot
/// and waits for nothing. A spawn that is repeated is none of a task that has begun.
pub(crate) fn spawns_begun(scenario: &Scenario, script: &Script, slot: Slot, step: &Step) -> bool {
    match (slot, step) {
        (
            Slot::Worker(_),
            Step::Spawn {
                action, descriptor, ..
            },
        ) => fits(scenario, script, descriptor) && is_chosen(scenario, script, *action),
        _ => false,
    }
}

fn fits(scenario: &Scenario, spawner: &Script, child: &Descriptor) -> bool {
    let own = descriptor(scenario, spawner.definition, Vec::new(), 1);
    let is_plain = child.inputs.is_empty() && !child.purity.is_pure();
    is_plain
        && !child.options.is_limited()
        && !child.options.lazy
        && child.class == own.class
        && child.options.resources == own.options.resources
}

fn is_chosen(scenario: &Scenario, spawner: &Script, action: u64) -> bool {
    if spawner.has_spawned(action) {
        return false;
    }
    let place = (spawner.name().0 >> 64) as u64 ^ action.rotate_left(40);
    Random::new(scenario.seed ^ place).one_in(2)
}
