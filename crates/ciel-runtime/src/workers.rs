//! Worker processes of plug-in executors, and the conversation with each.

use std::rc::Rc;
use std::sync::Arc;

use ciel_graph::Assignment;
use ciel_model::TaskKey;
use ciel_node::{Run, WorkerKey};

use crate::core::Answers;
use crate::engine::Engine;
use crate::spawning::Spawning;

/// All workers of the run.
pub(crate) struct Workers {
    engine: Arc<Engine>,
    spawning: Rc<Spawning>,
}

impl Workers {
    pub(crate) fn new(engine: Arc<Engine>, spawning: Rc<Spawning>) -> Rc<Workers> {
        Rc::new(Workers { engine, spawning })
    }

    /// Starts a worker of `executor`.
    pub(crate) fn start(self: &Rc<Self>, _worker: WorkerKey, executor: Arc<str>) {
        let _ = (self.engine.registry.plugin(&executor), &self.spawning);
    }

    /// Ends a worker that has nothing to do.
    pub(crate) fn dismiss(&self, _worker: WorkerKey) {}

    /// Runs a task in a worker that is free.
    pub(crate) fn begin(&self, _worker: WorkerKey, _assignment: Box<Assignment>) {}

    /// Tells a running task what it asked for.
    pub(crate) fn answer(&self, _worker: WorkerKey, _run: Run, _answers: Answers) {}

    /// Ends a running task.
    pub(crate) fn stop(&self, _worker: WorkerKey, _run: Run) {}

    /// Forgets a parked strand.
    pub(crate) fn drop_parked(&self, _worker: WorkerKey, _task: TaskKey) {}

    /// Ends all workers and waits until they are gone.
    pub(crate) async fn dismiss_all(&self) {}
}
