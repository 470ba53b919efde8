//! Spawns by tasks whose results are kept: the thread of kept results is told of them.
//!
//! It does not know what is kept. Read next: `keeper`, and there `subtrees`.

use ciel_engine::Event;
use ciel_graph::{self as graph, Step, TaskSummary};
use ciel_model::{Name, TaskKey};

use super::Core;
use super::followed::Spawn;
use crate::kept::Request;

impl Core {
    /// Looks whether an event is a spawn by a task that takes part in kept results.
    pub(super) fn follow(&mut self, event: &Event) {
        let (Event::Graph(event) | Event::SpawnedBegun(event)) = event else {
            return;
        };
        let graph::Event::TaskStepped { task, step, .. } = event else {
            return;
        };
        let Step::Spawn { action, .. } = step else {
            return;
        };
        let Some((parent, child)) = self.graph().kept_parent(*task, *action) else {
            return;
        };
        let spawn = self.followed.on_spawned(parent, child);
        match spawn {
            Spawn::First => self.tell_begun(*task),
            Spawn::Last => return self.kept.send(Request::Deep(parent)),
            Spawn::Below => return,
            Spawn::Next => {}
        }
        self.kept.send(Request::Spawned {
            parent,
            action: *action,
            child,
        });
    }

    /// Whether what a task does is part of what another one is kept with, or is kept itself with
    /// what it has spawned.
    pub(crate) fn follows(&self, task: Name) -> bool {
        self.followed.contains(task)
    }

    /// Whether a task has spawned and is not kept, since too many are above it.
    pub(crate) fn is_too_deep(&self, task: Name) -> bool {
        self.followed.has_spawned_below(task)
    }

    /// Says that a task which is too deep to be kept has ended well, when there are more of them.
    pub(crate) fn tell_ended_below(&mut self, key: TaskKey, task: Name) {
        if let Some(tasks) = self.followed.on_ended_below(key, task) {
            self.kept.send(Request::EndedBelow(tasks));
        }
    }

    /// Says what there is left to say before the thread is closed.
    pub(crate) fn tell_last(&mut self) {
        let tasks = self.followed.take_ended_below();
        if !tasks.is_empty() {
            self.kept.send(Request::EndedBelow(tasks));
        }
    }

    /// Says something to the thread of kept results.
    pub(crate) fn tell_kept(&self, request: Request) {
        self.kept.send(request);
    }

    /// Says what a task was given, if all of that is known by its content.
    pub(crate) fn tell_begun(&self, task: TaskKey) {
        if let Some(query) = self.engine.query_for(task) {
            self.kept.send(Request::Begun(query));
        }
    }

    /// A task has left the graph.
    pub(super) fn leave(&mut self, summary: &TaskSummary) {
        let task = summary.label.name;
        if self.followed.remove(task) {
            let has_failed = summary.failure.is_some();
            self.kept.send(Request::Over { task, has_failed });
        }
    }
}
