//! When a process begins, and which one has begun where it ended.
//!
//! A process that was sent before its time waits in the spawner until another one has ended well;
//! the engine says whether it may run on. If not, it is ended, and only then is the slot free that
//! it has begun in. It does not know what a process is given. Read next: `spawning`.

use std::collections::VecDeque;
use std::ffi::CString;
use std::rc::Rc;
use std::time::Instant;

use ciel_engine::{Attempt, Caller, Event, Reply};
use ciel_graph::Assignment;
use ciel_model::Micros;
use ciel_node::AttemptKey;
use ciel_spawner::Report;
use tokio::sync::mpsc::UnboundedReceiver;

use super::Failed;
use crate::core::Core;
use crate::engine::Engine;
use crate::keeper;
use crate::spawning::{ProcessEvent, Spawning, Told};
use crate::workspace::{TaskWorkspace, c_string};

/// What happens to a process, that which came before it was told to run on first.
pub(crate) struct Events {
    early: VecDeque<ProcessEvent>,
    later: UnboundedReceiver<ProcessEvent>,
}

impl Events {
    pub(super) fn new(later: UnboundedReceiver<ProcessEvent>) -> Events {
        let early = VecDeque::new();
        Events { early, later }
    }

    /// The next one; none if there will be no more.
    pub(super) async fn recv(&mut self) -> Option<ProcessEvent> {
        match self.early.pop_front() {
            Some(event) => Some(event),
            None => self.later.recv().await,
        }
    }
}

/// The turn of a process in a slot.
pub(crate) struct Turn {
    /// What the engine says, if the process was sent before its time.
    told: Option<UnboundedReceiver<Told>>,
    has_begun: bool,
    /// It has a slot, and there is nothing of it.
    is_due: bool,
    /// The process that has begun where this one ended.
    follows: Option<AttemptKey>,
    /// The attempt whose slot is free when this process is gone.
    frees: Option<AttemptKey>,
}

impl Turn {
    /// That of a process which has its slot.
    pub(crate) fn now() -> Turn {
        Turn {
            told: None,
            has_begun: true,
            is_due: false,
            follows: None,
            frees: None,
        }
    }

    /// That of a process which waits until it is told to run on.
    pub(crate) fn after(told: UnboundedReceiver<Told>) -> Turn {
        Turn {
            told: Some(told),
            has_begun: false,
            ..Turn::now()
        }
    }

    /// Whether the process has its slot.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Another process has begun where this one has ended.
    pub(super) fn is_followed(&mut self, next: AttemptKey) {
        self.follows = Some(next);
    }

    /// Waits until the process has its slot; false if it has not, and is gone.
    pub(super) async fn begins(
        &mut self,
        spawning: &Rc<Spawning>,
        attempt: AttemptKey,
        events: &mut Events,
    ) -> bool {
        let mut course = Course::default();
        let mut early = VecDeque::new();
        while let Some(told) = self.told.as_mut().filter(|_| !course.is_settled()) {
            tokio::select! {
                biased;
                word = told.recv() => match word {
                    Some(word) => course.hear(word, spawning, attempt),
                    None => break,
                },
                event = events.recv(), if !course.is_over => {
                    course.note(event.as_ref());
                    early.extend(event);
                }
            }
        }
        self.has_begun = course.has_begun;
        self.is_due = course.is_due && !course.has_begun;
        (self.follows, self.frees) = (course.follows, course.frees);
        events.early = early;
        self.has_begun
    }

    /// Whether a process that could not begin before its time is to begin now.
    pub(super) fn is_due(&mut self) -> bool {
        let told = self.told.take();
        let begins = |mut told: UnboundedReceiver<Told>| {
            std::iter::from_fn(|| told.try_recv().ok()).any(|word| matches!(word, Told::Begin))
        };
        self.is_due || told.is_some_and(begins)
    }

    /// Says how an attempt has left its slot, and which has begun there.
    pub(super) fn leave(
        &self,
        core: &mut Core,
        now: Micros,
        spawning: &Spawning,
        (attempt, event): (AttemptKey, Event),
    ) {
        let Some(follows) = self.follows else {
            return core.tell(now, event);
        };
        let reply = core.ask(now, event, Caller::Process { follows });
        let stop = Told::Stop { before: attempt };
        if reply == Reply::FollowerStopped && !spawning.tell_waiting(follows, stop) {
            core.tell(now, left(attempt));
        }
    }

    /// Says that a process which was sent before its time has not run, and is gone. If one has
    /// begun behind it, that goes first.
    pub(super) fn return_unbegun(&self, engine: &Engine, spawning: &Spawning, attempt: AttemptKey) {
        spawning.wait_no_more(attempt);
        engine.with(|core, now| {
            core.tell(now, Event::ProcessReturned { attempt });
            let Some(before) = self.frees else {
                return;
            };
            let stop = Told::Stop { before };
            let follows = self.follows;
            if !follows.is_some_and(|next| spawning.tell_waiting(next, stop)) {
                core.tell(now, left(before));
            }
        });
    }
}

/// What has been told of a process that was sent before its time.
#[derive(Default)]
struct Course {
    /// It has begun where another one has ended, of which the engine hears.
    runs: bool,
    /// There is nothing of it, or nothing any more.
    is_over: bool,
    /// It has a slot.
    is_due: bool,
    /// It was withdrawn, so it may not begin.
    is_withdrawn: bool,
    /// It has its slot, and is on its way or runs.
    has_begun: bool,
    follows: Option<AttemptKey>,
    frees: Option<AttemptKey>,
}

impl Course {
    /// Whether it is known what becomes of the process. One that has begun in a slot that it does
    /// not have yet is heard of by the engine, which says something.
    fn is_settled(&self) -> bool {
        let is_gone = self.is_over && (self.frees.is_some() || !self.runs);
        self.has_begun || is_gone
    }

    fn hear(&mut self, word: Told, spawning: &Rc<Spawning>, attempt: AttemptKey) {
        match word {
            Told::Begin if self.is_withdrawn && !self.runs => self.is_due = true,
            Told::Begin => {
                self.has_begun = true;
                spawning.begin_waiting(attempt);
            }
            Told::RunOn => self.has_begun = true,
            Told::Withdraw => {
                self.is_withdrawn = true;
                spawning.withdraw(attempt);
            }
            Told::Stop { before } => {
                self.frees = Some(before);
                spawning.kill(attempt);
            }
        }
    }

    fn note(&mut self, event: Option<&ProcessEvent>) {
        match event {
            Some(ProcessEvent::Began) => {
                self.runs = true;
                self.has_begun |= self.is_due;
            }
            Some(ProcessEvent::Followed(next)) => self.follows = Some(*next),
            Some(ProcessEvent::Report(
                Report::Refused { .. } | Report::Withdrawn { .. } | Report::Exited { .. },
            ))
            | Some(ProcessEvent::Lost)
            | None => self.is_over = true,
            Some(ProcessEvent::Report(Report::Started { .. } | Report::Passed { .. }))
            | Some(ProcessEvent::Stop | ProcessEvent::ReadOn | ProcessEvent::NoRoom(_)) => {}
        }
    }
}

/// Waits until a process that was sent before its time has its slot; false if it has not.
pub(super) async fn await_turn(
    engine: &Engine,
    spawning: &Rc<Spawning>,
    assignment: &Assignment,
    (turn, begun): (&mut Turn, &mut Instant),
    events: &mut Events,
) -> bool {
    if turn.has_begun() {
        return true;
    }
    let attempt = Attempt::new(assignment).key();
    if !turn.begins(spawning, attempt, events).await {
        return false;
    }
    *begun = Instant::now();
    spawning.wait_no_more(attempt);
    if engine.lock().is_stopping(attempt) {
        spawning.ask_to_stop(attempt);
    }
    keeper::tell_begun(engine, assignment);
    true
}

/// The files that a process has to leave so that another one may begin where it has exited with 0:
/// nothing begins behind a failure. None if nothing may begin there.
pub(super) fn passes_on(
    assignment: &Assignment,
    desk: &TaskWorkspace<'_>,
) -> Failed<Option<Vec<CString>>> {
    if !ciel_engine::passes_on(assignment) {
        return Ok(None);
    }
    let outputs = 0..assignment.descriptor.outputs;
    let file = |index| {
        desk.output_path(index)
            .map(|path| c_string(path.as_os_str()))
    };
    outputs.map(file).collect::<Failed<_>>().map(Some)
}

/// Nothing of an attempt is in its slot.
fn left(attempt: AttemptKey) -> Event {
    let end = None;
    Event::TurnEnded { attempt, end }
}
