//! The conversation with one worker, from its accepted hello to its end.
//!
//! A worker runs as many tasks at once as it has slots; all messages about a task carry the tag of
//! its start. Tasks that wait may stay parked in it. What breaks the protocol ends the
//! conversation, and what a task must not do fails that task. Read next: `turn`, and `closing` for
//! the end.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use ciel_engine::{Action, Attempt, Begun, Event, Notice, Reply};
use ciel_graph::{Ahead, Assignment, Entry};
use ciel_model::{Micros, Pool, TaskKey, limits};
use ciel_node::{AttemptKey, WorkerKey};
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{
    Caches, Cancel, Define, Drop as Forget, EndedInPlace, EngineMessage, Hello, PoolPolicy, Start,
    WorkerMessage,
};
use ciel_protocol::{WireMessage, limits as protocol};
use rustc_hash::FxHashMap;

use crate::definitions::{Received, Sent};
use crate::features::{Features, OFFERED};
use crate::host::{Failed, Host};
use crate::io::{Effect, Input, Overdrawn, Rules, WorkerExitReason};
use crate::requests;
use crate::start;
use crate::step::{Io, Step, attempt_of};
use crate::task::WorkerTask;
use crate::turn::{self, Outcome, Turn, TurnEnd};

/// As what functions are counted that have no label.
const UNNAMED: &str = "(unnamed)";

/// A worker that has said hello.
pub struct Conversation {
    pub(crate) worker: WorkerKey,
    /// The worker is the client of the session.
    pub(crate) is_client: bool,
    rules: Rules,
    pub(crate) pool: PoolPolicy,
    /// How many tasks the worker runs at once.
    pub(crate) slots: u32,
    pub(crate) features: Features,
    /// What the worker has declared.
    received: Received,
    /// What it knows of the tasks that start there.
    sent: Sent,
    /// What it runs, by tag. Tasks are boxed because each message takes one out and puts it back.
    pub(crate) running: BTreeMap<u32, Box<WorkerTask>>,
    pub(crate) parked: FxHashMap<TaskKey, Box<WorkerTask>>,
    /// The starts that it has received and not begun: each follows the one before it, the first
    /// the task that runs.
    pub(crate) line: VecDeque<Box<WorkerTask>>,
    /// When memory is looked at again.
    pub(crate) sample_at: Option<Micros>,
    /// It gets no new task, and ends after the last strand parked in it.
    used_up: bool,
    /// Nothing of it has come after the message that is at hand.
    is_last: bool,
}

impl Conversation {
    /// A worker of `pool` with that hello; it is to receive the effects of `begin`
    /// first.
    pub fn new(worker: WorkerKey, hello: Hello, is_client: bool, rules: Rules) -> Conversation {
        let features = Features::agreed(&hello.features);
        let pool = hello.pool.unwrap_or_default();
        Conversation {
            worker,
            is_client,
            rules,
            slots: pool.slots.clamp(1, protocol::SLOTS_MAX),
            pool,
            features,
            received: Received::default(),
            sent: Sent::default(),
            running: BTreeMap::new(),
            parked: FxHashMap::default(),
            line: VecDeque::new(),
            sample_at: None,
            used_up: false,
            is_last: true,
        }
    }

    /// Answers the hello of a worker of that pool, and tells the engine that it is ready.
    pub fn greet(&self, pool: &Pool, host: &mut dyn Host, effects: &mut Vec<Effect>) {
        let hello = Hello {
            protocol: protocol::PROTOCOL,
            build: self.rules.build.clone(),
            executor: pool.executor.to_string(),
            features: OFFERED.map(str::to_string).to_vec(),
            folder: self.rules.folder.clone(),
            ..Hello::default()
        };
        effects.push(Effect::Send(Box::new(EngineMessage::connection(hello))));
        host.tell(vec![Event::WorkerReady {
            worker: self.worker,
            prefetches: self.prefetches(),
            slots: self.slots,
        }]);
    }

    /// Takes one input, and appends what has to be done about it. Nothing comes after
    /// [`Effect::End`].
    pub fn handle(
        &mut self,
        now: Micros,
        input: Input,
        host: &mut dyn Host,
        effects: &mut Vec<Effect>,
    ) {
        let mut io = Io { now, host, effects };
        let step = match input {
            Input::Message { message, is_last } => {
                self.is_last = is_last;
                self.on_message(&mut io, *message)
            }
            Input::Invalid(why) => Err(WorkerExitReason::Breach(why)),
            Input::Closed => Err(WorkerExitReason::Died),
            Input::Begin(begun) => self.begin_unless_stopped(&mut io, *begun),
            Input::Stop(attempt) => {
                self.stop(&mut io, attempt);
                Ok(())
            }
            Input::Notify(attempt, notice) => {
                self.notify_watcher(&mut io, attempt, notice);
                Ok(())
            }
            Input::DropParked { task, moves } => {
                self.drop_parked(&mut io, task, moves);
                self.rest()
            }
            Input::Overdrawn(overdrawn) => self.on_overdrawn(overdrawn),
            Input::Dismiss => Err(WorkerExitReason::Dismissed),
            Input::Ticked => self.on_time(&mut io),
        };
        if let Err(reason) = step {
            io.effects.push(Effect::End(reason));
        }
    }

    /// When [`Input::Ticked`] is wanted at the latest.
    pub fn next_deadline(&self) -> Option<Micros> {
        let killed_at = self.running.values().filter_map(|task| task.killed_at);
        killed_at.chain(self.sample_at).min()
    }

    /// The engine may have stopped an attempt before the worker receives it.
    fn begin_unless_stopped(&mut self, io: &mut Io<'_>, begun: Begun) -> Step {
        let attempt = attempt_of(&begun.assignment);
        if !io.host.is_stopping(attempt) {
            self.begin(io, begun);
            return self.rest();
        }
        io.tell(Attempt::new(&begun.assignment).left());
        self.drop_parked(io, attempt.task, false);
        self.rest()
    }

    fn begin(&mut self, io: &mut Io<'_>, begun: Begun) {
        let Begun { assignment, ahead } = begun;
        if assignment.memory_limit().is_some() {
            self.sample_at = Some(io.now);
        }
        if !matches!(assignment.entry, Entry::Resume(_)) {
            return self.start(io, assignment, ahead);
        }
        match self.parked.remove(&assignment.task) {
            Some(task) => self.resume(io, task, assignment),
            None => crate::lose(&assignment, io.host),
        }
    }

    fn start(&mut self, io: &mut Io<'_>, assignment: Box<Assignment>, ahead: Vec<Ahead>) {
        let mut attempt = Attempt::new(&assignment);
        match start::start(io.host, io.effects, assignment, self.features) {
            Ok((task, start)) => {
                let tag = task.tag;
                self.send_start(io, &task, start);
                self.running.insert(tag, task);
                self.send_ahead(io, tag, ahead);
            }
            Err(failure) => io.tell(attempt.act(Action::Fail(*failure)).event),
        }
    }

    /// Sends a start, and before it the definition that it names if the worker does not have it.
    pub(crate) fn send_start(&mut self, io: &mut Io<'_>, task: &WorkerTask, mut start: Start) {
        let (id, define) = self.sent.id_of(&task.assignment.descriptor);
        start.definition = id;
        if let Some(define) = define {
            io.send_plainly(define);
        }
        io.send(task.tag, start);
    }

    fn resume(
        &mut self,
        io: &mut Io<'_>,
        mut task: Box<WorkerTask>,
        mut assignment: Box<Assignment>,
    ) {
        let entry = std::mem::replace(&mut assignment.entry, Entry::Start(Vec::new()));
        let Entry::Resume(answers) = entry else {
            unreachable!("the caller has looked");
        };
        let ended = assignment.ended.take();
        task.assignment = assignment;
        match task.resume(io.host, answers, ended) {
            Ok(resume) => {
                let tag = task.tag;
                io.send(tag, resume);
                let watches = task.watch_shown();
                if !watches.is_empty() {
                    io.host.tell(watches);
                }
                self.running.insert(tag, task);
            }
            Err(failure) => {
                requests::end(io.host, &mut task, Action::Fail(*failure));
                self.unwind(io, task);
            }
        }
    }

    /// A running task is told what it has asked for.
    fn notify_watcher(&mut self, io: &mut Io<'_>, attempt: AttemptKey, notice: Notice) {
        let Some(task) = self.find(attempt).filter(|task| !task.is_over) else {
            return;
        };
        let tag = task.tag;
        match requests::noticed(io.host, task, notice) {
            Ok(answers) => answers.into_iter().for_each(|answer| io.send(tag, answer)),
            Err(failure) => {
                task.is_over = true;
                let failed = task.attempt.failed(*failure);
                io.tell(failed.into());
                self.cancel(io, tag);
            }
        }
    }

    fn find(&mut self, attempt: AttemptKey) -> Option<&mut WorkerTask> {
        let mut running = self.running.values_mut();
        let found = running.find(|task| task.attempt.key() == attempt);
        found.map(Box::as_mut)
    }

    /// A parked strand is not wanted any more.
    fn drop_parked(&mut self, io: &mut Io<'_>, task: TaskKey, moves: bool) {
        match self.parked.remove(&task) {
            Some(task) if moves => forget(io, task),
            Some(task) => self.unwind(io, task),
            None => {}
        }
    }

    /// A strand that the worker keeps will not resume. It cleans up, if its worker can do that;
    /// nothing that it sends meanwhile is heard.
    fn unwind(&self, io: &mut Io<'_>, task: Box<WorkerTask>) {
        if !self.features.unwind {
            return forget(io, task);
        }
        let tag = task.tag;
        task.close(io.host, io.effects);
        let grace_ms = self.rules.kill_grace_ms;
        io.send(tag, Cancel { grace_ms });
    }

    fn stop(&mut self, io: &mut Io<'_>, attempt: AttemptKey) {
        if let Some(tag) = self.find(attempt).map(|task| task.tag) {
            self.cancel(io, tag);
        }
    }

    /// The task with that tag is to end; its worker is killed if it does not.
    pub(crate) fn cancel(&mut self, io: &mut Io<'_>, tag: u32) {
        let Some(task) = self.running.get_mut(&tag) else {
            return;
        };
        if task.killed_at.is_some() {
            return;
        }
        let grace_ms = self.rules.kill_grace_ms;
        task.killed_at = Some(io.now + u64::from(grace_ms) * 1000);
        io.send(tag, Cancel { grace_ms });
        self.interrupt(io);
    }

    /// What runs looks at the `cancel` that was sent, whatever it does.
    fn interrupt(&self, io: &mut Io<'_>) {
        if self.features.interrupt && self.slots == 1 {
            io.effects.push(Effect::Interrupt);
        }
    }

    /// A worker that is used up ends when it runs and keeps nothing more.
    fn rest(&self) -> Step {
        match self.used_up && self.running.is_empty() && self.parked.is_empty() {
            true => Err(WorkerExitReason::Dismissed),
            false => Ok(()),
        }
    }

    fn on_message(&mut self, io: &mut Io<'_>, message: WorkerMessage) -> Step {
        let name = message.kind_name().unwrap_or_default();
        let kind = match message.kind {
            Some(Kind::Pong(_)) => return Ok(()),
            Some(Kind::GiveBack(message)) => {
                self.give_back(io.host, &message.tags);
                return Ok(());
            }
            Some(Kind::Define(define)) => return self.on_define(io, &define),
            Some(Kind::EndedInPlace(message)) => return self.on_ended_in_place(io, &message),
            Some(Kind::Caches(message)) => return self.on_caches(io, &message),
            Some(Kind::Hello(_)) => return Err(breach("it sent hello twice")),
            Some(kind) => kind,
            None => return Err(breach("it sent a message without a kind")),
        };
        if message.tag == 0 {
            return Err(breach(&format!("`{name}` came without a tag")));
        }
        match self.running.remove(&message.tag) {
            Some(task) => self.on_request(io, task, kind),
            // Stale, or of a strand that is to send nothing.
            None => Ok(()),
        }
    }

    /// The worker declares tasks that it will spawn.
    fn on_define(&mut self, io: &mut Io<'_>, define: &Define) -> Step {
        let callee = io.host.callee(&define.executor);
        let added = self.received.add(define, callee, &self.rules.options);
        added.map_err(WorkerExitReason::Breach)
    }

    /// The worker counts children that it has run as calls.
    fn on_ended_in_place(&self, io: &mut Io<'_>, message: &EndedInPlace) -> Step {
        if !self.features.begun {
            return Err(breach(
                "it counted children that ended in place without the feature \"begun\"",
            ));
        }
        for calls in &message.calls {
            let found = self.received.find(calls.definition);
            let definition = found.map_err(|refused| breach(&refused.message))?;
            let what = definition.label.as_deref().unwrap_or(UNNAMED);
            io.host.count_in_place(what, calls.count);
        }
        Ok(())
    }

    /// The worker keeps something of objects beside its tasks, and of others no more. Paths that
    /// are none of objects are ignored.
    fn on_caches(&self, io: &mut Io<'_>, message: &Caches) -> Step {
        if !self.features.caches {
            return Err(breach("it sent `caches` without the feature \"caches\""));
        }
        let mut find = |path: &String| io.host.object_at(Path::new(path));
        let held = message.held.iter().filter_map(&mut find).collect();
        let dropped = message.dropped.iter().filter_map(&mut find);
        let dropped = dropped.map(|(name, _)| name).collect();
        io.host.tell(vec![Event::WorkerCaches {
            worker: self.worker,
            held,
            dropped,
        }]);
        Ok(())
    }

    fn on_request(&mut self, io: &mut Io<'_>, mut task: Box<WorkerTask>, kind: Kind) -> Step {
        let follower = match self.follower(&kind) {
            Ok(follower) => follower,
            Err(reason) => {
                self.running.insert(task.tag, task);
                return Err(reason);
            }
        };
        let next = follower.as_ref().map(|next| next.attempt.key());
        let (outcome, used_up) = self.perform(io, &mut task, kind, next);
        self.used_up = used_up;
        match (outcome, follower) {
            (Ok(Outcome::Over(_, reply)), Some(next)) => self.follow(io, task, next, reply),
            (Ok(outcome), _) => self.after(io, task, outcome),
            (Err(()), _) => {
                let tag = task.tag;
                self.running.insert(tag, task);
                self.cancel(io, tag);
                Ok(())
            }
        }
    }

    /// Performs a request in the turn of its task; the outcome, and whether the worker gets no new
    /// task. `Err`: the task has failed, and its last message is still to come.
    fn perform(
        &self,
        io: &mut Io<'_>,
        task: &mut WorkerTask,
        kind: Kind,
        next: Option<AttemptKey>,
    ) -> (Result<Outcome, ()>, bool) {
        let mut turn = Turn {
            host: io.host,
            effects: io.effects,
            worker: self.worker,
            rules: &self.rules,
            pool: &self.pool,
            features: self.features,
            definitions: &self.received,
            parked: self.parked.len(),
            used_up: self.used_up,
            next,
            is_last: self.is_last,
        };
        turn.note_use(&kind);
        let (is_last, parks) = (turn::ends_turn(&kind), turn::parks(&kind));
        let end = if parks {
            TurnEnd::Unwanted
        } else {
            TurnEnd::Gone
        };
        let outcome: Failed<Outcome> = match task.is_ignored(turn.host) {
            true => {
                task.begun |= matches!(&kind, Kind::Spawn(spawn) if spawn.begun);
                Ok(Outcome::Nothing)
            }
            false => requests::perform(&mut turn, task, kind),
        };
        let outcome = match outcome {
            Ok(Outcome::Nothing) if is_last => Ok(Outcome::Over(end, turn.leave(task))),
            Ok(outcome) => Ok(outcome),
            Err(failure) => {
                turn.fail(task, *failure);
                task.is_over = true;
                match is_last {
                    true => Ok(Outcome::Over(end, turn.leave(task))),
                    false => Err(()),
                }
            }
        };
        (outcome, turn.used_up)
    }

    fn after(&mut self, io: &mut Io<'_>, task: Box<WorkerTask>, outcome: Outcome) -> Step {
        let tag = task.tag;
        match outcome {
            Outcome::Over(end, reply) => return self.end_turn(io, task, end, reply),
            Outcome::Nothing => {}
            Outcome::Answer(answer) => io.send(tag, *answer),
            Outcome::Resumed(resume) => {
                self.drop_line(io.host);
                io.send(tag, resume);
            }
        }
        self.running.insert(tag, task);
        Ok(())
    }

    /// Puts the task away, and begins at once what the worker got when its turn ended, so that it
    /// leaves with this write.
    fn end_turn(
        &mut self,
        io: &mut Io<'_>,
        mut task: Box<WorkerTask>,
        end: TurnEnd,
        reply: Reply,
    ) -> Step {
        let is_told = task.killed_at.take().is_some();
        self.line.clear();
        match end {
            TurnEnd::Parked => drop(self.parked.insert(task.assignment.task, task)),
            TurnEnd::Gone => task.close(io.host, io.effects),
            TurnEnd::Unwanted => {
                let runs_on = task.begun && !is_told;
                self.unwind(io, task);
                if runs_on {
                    self.interrupt(io);
                }
            }
        }
        if let Reply::Begin(next) = reply {
            self.begin(io, *next);
        }
        self.rest()
    }

    /// A deadline has passed, or it is time to look at the memory of the process.
    fn on_time(&mut self, io: &mut Io<'_>) -> Step {
        let mut killed_at = self.running.values().filter_map(|task| task.killed_at);
        if killed_at.any(|at| at <= io.now) {
            return Err(WorkerExitReason::Overdue);
        }
        if self.sample_at.is_none_or(|at| at > io.now) {
            return Ok(());
        }
        let Some(most) = self.memory_limit() else {
            self.sample_at = None;
            return Ok(());
        };
        self.sample_at = Some(io.now + limits::MEMORY_SAMPLE_MS * 1000);
        let bytes = io.host.resident_bytes();
        match bytes > most {
            true => Err(WorkerExitReason::TooLarge(bytes)),
            false => Ok(()),
        }
    }

    /// A process that does not end its task by itself is ended; not that of a session's client.
    fn on_overdrawn(&self, overdrawn: Box<Overdrawn>) -> Step {
        let is_here = self.running.values().any(|task| task.is(&overdrawn));
        match is_here && !self.is_client {
            true => Err(WorkerExitReason::Overdrawn(overdrawn)),
            false => Ok(()),
        }
    }

    /// The bytes that the process may use: those of all running tasks, if all have a limit.
    fn memory_limit(&self) -> Option<u64> {
        let mut limits = self
            .running
            .values()
            .map(|task| task.assignment.memory_limit());
        let first = limits.next()??;
        limits.try_fold(first, |sum, limit| Some(sum.saturating_add(limit?)))
    }
}

/// A strand that the worker keeps is discarded.
fn forget(io: &mut Io<'_>, task: Box<WorkerTask>) {
    let tag = task.tag;
    task.close(io.host, io.effects);
    io.send(tag, Forget {});
}

fn breach(what: &str) -> WorkerExitReason {
    WorkerExitReason::Breach(what.to_string())
}
