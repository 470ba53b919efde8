//! How a world with a bound of waiting output, or of unfinished children, behaves: strands ask
//! whether they may go on, and the engine hears of the frontier.
//!
//! It does not know when a writer gets room. Read next: `driver`.

use ciel_engine::Event;
use ciel_graph::{self as graph, Continuation, Wait};
use ciel_node::{AttemptKey, Slot};

use crate::setup::BUDGET_BYTES;
use crate::world::{Happening, Mood, World};

impl World<'_> {
    /// A strand that has acted waits for nothing if the engine wants that; a process is paused.
    pub(crate) fn asks_for_room(&mut self, attempt: AttemptKey) -> bool {
        let process = &self.processes[&attempt];
        if process.slot == Slot::Process {
            return self.is_paused(attempt);
        }
        if !self.engine.should_ask(process.strand) {
            return false;
        }
        let continuation = self.choose_continuation(attempt);
        let process = self.processes.get_mut(&attempt).expect("it acts");
        process.mood = Mood::Asking;
        process.continuation = continuation.clone();
        process.script.asks_for_room = true;
        if let Continuation::Saved(_) = continuation {
            self.saved.push(process.script.clone());
        }
        let event = graph::Event::TaskBlocked {
            task: attempt.task,
            attempt: attempt.number,
            kept: None,
            on: Vec::new(),
            wait: Wait::ALL,
            continuation,
            checkpoint: None,
        };
        let caller = self.caller(attempt);
        let (reply, effects) = self.ask(event, caller);
        self.after_block(attempt, reply);
        self.perform_all(effects);
        true
    }

    /// The same for a strand that has spawned: nobody looks after a spawn unless children are
    /// bounded.
    pub(crate) fn pauses_with_children(&mut self, attempt: AttemptKey) -> bool {
        if self.scenario.children_max.is_none() {
            return false;
        }
        let process = self.processes.get(&attempt);
        process.is_some_and(|process| !process.stopped) && self.asks_for_room(attempt)
    }

    fn is_paused(&mut self, attempt: AttemptKey) -> bool {
        let pauses = self.engine.must_pause(attempt);
        if pauses {
            let process = self.processes.get_mut(&attempt).expect("it acts");
            process.mood = Mood::Paused;
            self.submit(Event::ProcessPaused { attempt });
        }
        pauses
    }

    /// A paused process continues; one that is being stopped does not act any more.
    pub(crate) fn read_on(&mut self, attempt: AttemptKey) {
        let process = self.processes.get_mut(&attempt).expect("it runs");
        if process.mood == Mood::Paused {
            process.mood = Mood::Acting;
            self.schedule_soon(Happening::Act(attempt));
        }
    }

    /// The disk has room or has none, in turns of so many events as the scenario says.
    pub(crate) fn change_room(&mut self) {
        let Some(events) = self.scenario.scarce else {
            return;
        };
        let turn = self.room.events.checked_div(events).unwrap_or(0);
        self.room.events += 1;
        let is_scarce = turn.is_multiple_of(2);
        self.engine
            .note_present(if is_scarce { BUDGET_BYTES } else { 0 });
    }

    /// While tasks are held, the engine hears of the frontier soon after each event.
    pub(crate) fn note_room(&mut self) {
        let waiting = self.engine.pressure().map_or(0, |now| now.waiting_bytes);
        self.room.waiting_bytes_max = self.room.waiting_bytes_max.max(waiting);
        if self.engine.has_held() && !self.room.is_scheduled {
            self.room.is_scheduled = true;
            self.schedule_soon(Happening::Frontier);
        }
    }

    pub(crate) fn look_at_frontier(&mut self) {
        self.room.is_scheduled = false;
        self.release_output();
        self.submit(Event::FrontierMoved { rests: true });
    }
}
