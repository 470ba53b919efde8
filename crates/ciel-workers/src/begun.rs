//! Spawns of tasks that have begun inside the ones that spawn them.
//!
//! The child runs in the worker already, and takes over the slot when its parent parks. So it must
//! be a task that would begin there at once. It does not know how the slot passes on. Read next:
//! `requests`.

use std::sync::Arc;

use ciel_engine::Event;
use ciel_model::{ActionKey, Descriptor, Handle, Keeping, Refused};
use ciel_protocol::wire;

use crate::host::Failed;
use crate::task::WorkerTask;
use crate::turn::Turn;

const LIKE_ITS_PARENT: &str = "such a task is as its parent: of the same worker pool, with the \
                               same resources, without limits, neither lazy nor pure";

/// Whether the task may spawn something that has begun inside it.
///
/// # Errors
/// Why not, as the task's failure.
pub(crate) fn check_spawn(
    turn: &Turn<'_>,
    task: &mut WorkerTask,
    message: &wire::Spawn,
) -> Failed<()> {
    let refused = if !(turn.features.begun && turn.features.parked) {
        Refused::new(
            "it spawned a task that has begun, but its worker and this engine did not \
                      agree to",
        )
        .hint("a worker that does so names the features \"begun\" and \"parked\" in its hello")
    } else if message.tasks.len() != 1 {
        Refused::new("it spawned several tasks, or none, in a message for one that has begun")
    } else if task.begun {
        Refused::new("it spawned a second task that has begun before it parked for the first")
    } else if task.attempt.repeats(ActionKey::action(message.action)) {
        Refused::new("it spawned a task again as one that has begun")
            .hint("`start.replay.spawned` has the indices of all spawns of the earlier run")
    } else {
        task.begun = true;
        return Ok(());
    };
    Err(task.refuse(refused))
}

/// Whether a task can begin inside the one that spawns it.
///
/// # Errors
/// Why not, as the failure of the spawning task.
pub(crate) fn check_child(
    turn: &mut Turn<'_>,
    task: &WorkerTask,
    child: &Descriptor,
) -> Failed<()> {
    let parent = &task.assignment.descriptor;
    let is_alike = child.class == parent.class
        && child.options.resources == parent.options.resources
        && !child.options.is_limited()
        && !child.options.lazy
        && !child.purity.is_pure();
    if !is_alike {
        let refused = Refused::new("it spawned a task that has begun, but is not like itself");
        return Err(task.refuse(refused.hint(LIKE_ITS_PARENT)));
    }
    let key = task.attempt.key();
    let is_ready = |input: &ciel_model::Input| turn.host.is_ready(key, input.handle);
    if !child.inputs.iter().all(is_ready) {
        let refused = Refused::new("it spawned a task that has begun, with an input that has not");
        return Err(task.refuse(refused.hint("all inputs of such a task are resolved")));
    }
    Ok(())
}

/// Whether the task may end its turn otherwise than by parking, or ask the engine to end a wait.
///
/// # Errors
/// What it spawned has begun inside it and has not taken over its slot.
pub(crate) fn check_end(task: &WorkerTask) -> Failed<()> {
    let refused = Refused::new("it did not park after it had spawned a task that has begun");
    match task.begun {
        true => Err(task.refuse(refused.hint("such a task takes over when its parent parks"))),
        false => Ok(()),
    }
}

/// A task that has begun takes no kept result.
pub(crate) fn take_nothing(child: &mut Arc<Descriptor>) {
    if child.keeping == Keeping::Takes {
        Arc::make_mut(child).keeping = Keeping::Keeps;
    }
}

/// The event of the spawn, for the engine.
pub(crate) fn marked(event: Event) -> Event {
    match event {
        Event::Graph(spawn) => Event::SpawnedBegun(spawn),
        event => event,
    }
}

/// The handles of a message, which are used no more.
pub(crate) fn released(handles: &[u32]) -> Vec<Handle> {
    handles.iter().copied().map(Handle).collect()
}
