//! One worker from its start to its end, as one straight-line future.
//!
//! Once the worker has said hello, it deals with words of the core and messages of the
//! worker as they come. Read next: `requests`, and `leaving` for the end.

use std::rc::Rc;
use std::time::Duration;

use ciel_engine::{Action, Attempt, Begun, Event, Reply};
use ciel_graph::{Ahead, Assignment, Entry};
use ciel_model::{Handle, Pool, TaskKey, limits};
use ciel_node::{AttemptKey, WorkerKey};
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{
    Cancel, Define, Drop as Forget, EngineMessage, Hello, PoolPolicy, Start, WorkerMessage,
    engine_message,
};
use ciel_protocol::{EncodeError, WireMessage, limits as protocol};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::ahead::Line;
use super::definitions::{Received, Sent};
use super::ending::{self, Over, Seat};
use super::features::{Features, OFFERED};
use super::greeting::{Greeted, greeted, refuse_tasks};
use super::held::Held;
use super::peer::{Heard, Peer};
use super::requests::{self, Said};
use super::{Word, Workers, attempt_of, start};

/// The life of one worker.
pub(super) async fn run(
    workers: &Rc<Workers>,
    worker: WorkerKey,
    pool: &Pool,
    mut words: UnboundedReceiver<Word>,
) {
    let given_up = workers.given_up(pool);
    let again = given_up.is_none();
    let started = match given_up {
        Some(why) => Err(Some(why)),
        None => greeted(workers, worker, pool, &mut words).await,
    };
    match started {
        Ok(greeted) => {
            let mut conversation = Conversation::new(workers, worker, pool, greeted);
            let ending = conversation.talk(&mut words).await;
            conversation.end(ending, words).await;
        }
        Err(None) => workers.forget(worker),
        Err(Some(why)) => {
            if again {
                workers.start_failed(pool, &why);
            }
            refuse_tasks(workers, worker, &why, again, words).await;
        }
    }
}

/// Why a conversation ends.
pub(super) enum WorkerExitReason {
    /// The engine has no more use for the worker.
    Dismissed,
    /// The worker said what is no message, or must not be said.
    Breach(String),
    /// The worker is gone.
    Died,
    /// The worker did not end a task in time.
    Overdue,
    /// The task took more memory than it declared.
    TooLarge(u64),
}

/// A worker that has been greeted.
pub(super) struct Conversation<'a> {
    pub(super) workers: &'a Rc<Workers>,
    pub(super) worker: WorkerKey,
    /// The pool that it is of.
    pub(super) serves: &'a Pool,
    /// It is the client of the session.
    pub(super) is_client: bool,
    pub(super) peer: Peer,
    pub(super) pool: PoolPolicy,
    pub(super) features: Features,
    /// What the worker has declared.
    pub(super) received: Received,
    /// What it knows of the tasks that start there.
    pub(super) sent: Sent,
    pub(super) running: Option<Held>,
    pub(super) parked: FxHashMap<TaskKey, Held>,
    /// What it was told ahead.
    pub(super) line: Line,
    /// When the worker is killed because its task has not ended.
    pub(super) cancelled_at: Option<Instant>,
    /// When memory is looked at again.
    pub(super) sample_at: Option<Instant>,
    /// It gets no new task, and ends after the last strand parked in it.
    pub(super) used_up: bool,
}

pub(super) type Talked = Result<(), WorkerExitReason>;

impl<'a> Conversation<'a> {
    fn new(
        workers: &'a Rc<Workers>,
        worker: WorkerKey,
        serves: &'a Pool,
        greeted: Greeted,
    ) -> Conversation<'a> {
        let hello = greeted.hello;
        Conversation {
            workers,
            worker,
            serves,
            is_client: greeted.is_client,
            peer: greeted.peer,
            pool: hello.pool.unwrap_or_default(),
            features: Features::agreed(&hello.features),
            received: Received::default(),
            sent: Sent::default(),
            running: None,
            parked: FxHashMap::default(),
            line: Line::new(),
            cancelled_at: None,
            sample_at: None,
            used_up: false,
        }
    }

    async fn talk(&mut self, words: &mut UnboundedReceiver<Word>) -> WorkerExitReason {
        if let Err(ending) = self.welcome() {
            return ending;
        }
        loop {
            let deadline = self.cancelled_at.into_iter().chain(self.sample_at).min();
            let talked = match self.peer.hear(words, deadline).await {
                Heard::Word(word) => self.on_word(word),
                Heard::Message(message) => self.on_message(*message),
                Heard::Garbage(error) => Err(WorkerExitReason::Breach(error.to_string())),
                Heard::Closed => Err(WorkerExitReason::Died),
                Heard::Expired => self.on_time(),
            };
            if let Err(ending) = talked {
                return ending;
            }
        }
    }

    fn welcome(&mut self) -> Talked {
        self.say_plainly(Hello {
            protocol: protocol::PROTOCOL,
            build: format!("ciel {}", env!("CARGO_PKG_VERSION")),
            executor: self.serves.executor.to_string(),
            features: OFFERED.map(str::to_string).to_vec(),
            folder: self.workers.folder.clone(),
            ..Hello::default()
        })?;
        let (worker, pid) = (self.worker, self.peer.pid);
        let prefetches = self.prefetches();
        self.workers.engine.with(|core, now| {
            core.worker_pids.extend(pid.map(|pid| (worker, pid)));
            core.tell(now, Event::WorkerReady { worker, prefetches });
        });
        Ok(())
    }

    pub(super) fn say_plainly(&mut self, kind: impl Into<engine_message::Kind>) -> Talked {
        let said = self.peer.say(&EngineMessage::connection(kind));
        said.map_err(|error| unsayable(&error))
    }

    pub(super) fn say(&mut self, tag: u32, kind: impl Into<engine_message::Kind>) -> Talked {
        let said = self.peer.say(&EngineMessage::about(tag, kind));
        said.map_err(|error| unsayable(&error))
    }

    fn on_word(&mut self, word: Word) -> Talked {
        match word {
            Word::Begin(begun) => self.begin_unless_stopped(*begun),
            Word::Stop(attempt) => self.stop(attempt),
            Word::Told(attempt, handle) => self.tell_watcher(attempt, handle),
            Word::Drop(task) => match self.parked.remove(&task) {
                Some(held) => self.forget(held).and_then(|()| self.rest()),
                None => Ok(()),
            },
            Word::Dismiss => Err(WorkerExitReason::Dismissed),
        }
    }

    /// A task comes by way of the orders: it may have been stopped on that way.
    fn begin_unless_stopped(&mut self, begun: Begun) -> Talked {
        let attempt = attempt_of(&begun.assignment);
        let stopping = self.workers.engine.with(|core, now| {
            let stopping = core.is_stopping(attempt);
            if stopping {
                core.tell(now, Attempt::new(&begun.assignment).left());
            }
            stopping
        });
        if !stopping {
            return self.begin(begun);
        }
        let forgotten = match self.parked.remove(&attempt.task) {
            Some(held) => self.forget(held),
            None => Ok(()),
        };
        forgotten.and_then(|()| self.rest())
    }

    fn begin(&mut self, begun: Begun) -> Talked {
        let Begun { assignment, ahead } = begun;
        self.sample_at = assignment.memory_limit().map(|_| Instant::now());
        if !matches!(assignment.entry, Entry::Resume(_)) {
            return self.start(assignment, ahead);
        }
        match self.parked.remove(&assignment.task) {
            Some(held) => self.resume(held, assignment),
            None => {
                self.workers.lost(&assignment);
                Ok(())
            }
        }
    }

    fn start(&mut self, assignment: Box<Assignment>, ahead: Vec<Ahead>) -> Talked {
        let mut attempt = Attempt::new(&assignment);
        match start::start(self.workers, assignment, self.features) {
            Ok((held, mut start)) => {
                let define = self.define(&held, &mut start);
                let tag = held.tag;
                self.running = Some(held);
                self.say_definition(define)?;
                self.say(tag, start)?;
                self.send_ahead(ahead)
            }
            Err(failure) => {
                let fail = Action::Fail(*failure);
                self.workers.engine.act(&mut attempt, fail);
                Ok(())
            }
        }
    }

    /// Names the definition of a task in its start; gives it if the worker does not have it.
    pub(super) fn define(&mut self, held: &Held, start: &mut Start) -> Option<Define> {
        let (id, define) = self.sent.id_of(&held.assignment.descriptor);
        start.definition = id;
        define
    }

    pub(super) fn say_definition(&mut self, define: Option<Define>) -> Talked {
        match define {
            Some(define) => self.say_plainly(define),
            None => Ok(()),
        }
    }

    fn resume(&mut self, mut held: Held, mut assignment: Box<Assignment>) -> Talked {
        let entry = std::mem::replace(&mut assignment.entry, Entry::Start(Vec::new()));
        let Entry::Resume(answers) = entry else {
            unreachable!("the caller has looked");
        };
        let ended = assignment.ended.take();
        held.assignment = assignment;
        match held.resume(&self.workers.engine, answers, ended) {
            Ok(resume) => {
                let tag = held.tag;
                self.running = Some(held);
                self.say(tag, resume)
            }
            Err(failure) => {
                let fail = Action::Fail(*failure);
                self.workers.engine.act(&mut held.attempt, fail);
                self.forget(held).and_then(|()| self.rest())
            }
        }
    }

    /// Something that the running task watches is there.
    fn tell_watcher(&mut self, attempt: AttemptKey, handle: Handle) -> Talked {
        let Some(held) = &mut self.running else {
            return Ok(());
        };
        if held.attempt.key() != attempt || held.over {
            return Ok(());
        }
        let tag = held.tag;
        match requests::watched(&self.workers.engine, held, handle) {
            Ok(answers) => {
                for answer in answers {
                    self.say(tag, answer)?;
                }
                Ok(())
            }
            Err(failure) => {
                ending::fail(self.workers, held, *failure);
                held.over = true;
                self.cancel()
            }
        }
    }

    /// A parked strand is not wanted any more.
    fn forget(&mut self, held: Held) -> Talked {
        let tag = held.tag;
        held.close(self.workers);
        self.say(tag, Forget {})
    }

    fn stop(&mut self, attempt: AttemptKey) -> Talked {
        match &self.running {
            Some(held) if held.attempt.key() == attempt => self.cancel(),
            _ => Ok(()),
        }
    }

    /// The running task is to end; its worker is killed if it does not.
    pub(super) fn cancel(&mut self) -> Talked {
        let Some(held) = self
            .running
            .as_ref()
            .filter(|_| self.cancelled_at.is_none())
        else {
            return Ok(());
        };
        let tag = held.tag;
        let grace = Duration::from_millis(limits::KILL_GRACE_MS);
        self.cancelled_at = Some(Instant::now() + grace);
        let grace_ms = limits::KILL_GRACE_MS as u32;
        self.say(tag, Cancel { grace_ms })?;
        if self.features.interrupt {
            self.peer.interrupt();
        }
        Ok(())
    }

    /// A worker that is used up ends when it runs and keeps nothing more.
    fn rest(&self) -> Talked {
        match self.used_up && self.running.is_none() && self.parked.is_empty() {
            true => Err(WorkerExitReason::Dismissed),
            false => Ok(()),
        }
    }

    fn on_message(&mut self, message: WorkerMessage) -> Talked {
        let name = message.kind_name().unwrap_or_default();
        let kind = match message.kind {
            Some(Kind::Pong(_)) => return Ok(()),
            Some(Kind::GiveBack(word)) => {
                self.give_back(&word.tags);
                return Ok(());
            }
            Some(Kind::Define(word)) => return self.on_defined(&word),
            Some(Kind::Hello(_)) => {
                return Err(WorkerExitReason::Breach("it sent hello twice".into()));
            }
            Some(kind) => kind,
            None => unreachable!("every message that was decoded has a kind"),
        };
        if message.tag == 0 {
            return Err(WorkerExitReason::Breach(format!(
                "`{name}` came without a tag"
            )));
        }
        match self.running.take_if(|held| held.tag == message.tag) {
            Some(held) => self.on_said(held, kind),
            // Stale, or of a strand that is to say nothing.
            None => Ok(()),
        }
    }

    /// The worker declares tasks that it will spawn.
    fn on_defined(&mut self, define: &Define) -> Talked {
        let engine = &self.workers.engine;
        let added = self
            .received
            .add(define, &engine.registry, &engine.settings);
        added.map_err(WorkerExitReason::Breach)
    }

    fn on_said(&mut self, mut held: Held, kind: Kind) -> Talked {
        let follower = match self.follower(&kind) {
            Ok(follower) => follower,
            Err(ending) => {
                self.running = Some(held);
                return Err(ending);
            }
        };
        let mut seat = Seat {
            workers: self.workers,
            worker: self.worker,
            serves: self.serves,
            pool: &self.pool,
            features: self.features,
            definitions: &self.received,
            parked: self.parked.len(),
            used_up: self.used_up,
            next: follower.as_ref().map(|next| attempt_of(&next.assignment)),
        };
        ending::used_up_by(&mut seat, &kind);
        let (last, parks) = (ending::is_last(&kind), ending::parks(&kind));
        let over = if parks { Over::Unwanted } else { Over::Gone };
        let said = match held.is_idle(&self.workers.engine) {
            true => Ok(Said::Nothing),
            false => requests::hear(&seat, &mut held, kind),
        };
        let said = match said {
            Ok(Said::Nothing) if last => Said::Over(over, seat.leave(&held)),
            Ok(said) => said,
            Err(failure) => {
                ending::fail(self.workers, &held, *failure);
                held.over = true;
                if !last {
                    self.running = Some(held);
                    return self.cancel();
                }
                Said::Over(over, seat.leave(&held))
            }
        };
        self.used_up |= seat.used_up;
        match (said, follower) {
            (Said::Over(_, reply), Some(next)) => self.follow(held, next, reply),
            (said, _) => self.after(held, said),
        }
    }

    fn after(&mut self, held: Held, said: Said) -> Talked {
        let tag = held.tag;
        match said {
            Said::Over(over, reply) => return self.turn_over(held, over, reply),
            Said::Nothing => self.running = Some(held),
            Said::Answer(answer) => {
                self.running = Some(held);
                self.say(tag, *answer)?;
            }
            Said::Resumed(resume) => {
                self.drop_line();
                self.running = Some(held);
                self.say(tag, resume)?;
            }
        }
        Ok(())
    }

    /// Puts the task away, and begins at once what the worker got when its turn ended, so that it
    /// leaves with this write.
    fn turn_over(&mut self, held: Held, over: Over, reply: Reply) -> Talked {
        let task = held.assignment.task;
        (self.cancelled_at, self.sample_at) = (None, None);
        self.line.clear();
        let put_away = match over {
            Over::Parked => {
                self.parked.insert(task, held);
                Ok(())
            }
            Over::Gone => {
                held.close(self.workers);
                Ok(())
            }
            Over::Unwanted => self.forget(held),
        };
        let Reply::Begin(next) = reply else {
            return put_away.and_then(|()| self.rest());
        };
        match put_away {
            Ok(()) => self.begin(*next),
            Err(ending) => {
                // It is lost with the other words that nobody listens to any more.
                self.workers.begin(self.worker, next);
                Err(ending)
            }
        }
    }

    /// A deadline has passed, or it is time to look at the task's memory.
    fn on_time(&mut self) -> Talked {
        let now = Instant::now();
        if self.cancelled_at.is_some_and(|at| at <= now) {
            return Err(WorkerExitReason::Overdue);
        }
        let Some(held) = &self.running else {
            self.sample_at = None;
            return Ok(());
        };
        self.sample_at = Some(now + Duration::from_millis(limits::MEMORY_SAMPLE_MS));
        let most = held.assignment.memory_limit().unwrap_or(u64::MAX);
        let pids: Vec<u32> = self.peer.pid.into_iter().collect();
        let bytes = ciel_spawner::resident_anonymous(&pids).into_iter().sum();
        match bytes > most {
            true => Err(WorkerExitReason::TooLarge(bytes)),
            false => Ok(()),
        }
    }
}

fn unsayable(error: &EncodeError) -> WorkerExitReason {
    WorkerExitReason::Breach(format!(
        "the message to send to it cannot be encoded: {error}"
    ))
}
