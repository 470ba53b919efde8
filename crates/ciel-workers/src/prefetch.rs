//! Starts that a worker has received before their time, as the conversation knows them.
//!
//! The engine decides which tasks those are. When a task ends with all that the next one waits for,
//! the worker begins that by itself and names it in its exit; if it is not to begin any more, it is
//! cancelled. A worker whose task takes long gives back what it received. Only a worker that runs
//! one task at a time prefetches. Read next: `conversation`.

use ciel_engine::{Event, Reply};
use ciel_graph::{Ahead, Entry};
use ciel_model::{Handle, TaskKey};
use ciel_node::AttemptKey;
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{self, Awaited};

use crate::conversation::Conversation;
use crate::host::Host;
use crate::io::WorkerExitReason;
use crate::start;
use crate::step::{Io, Step, attempt_of};
use crate::task::WorkerTask;

impl Conversation {
    /// Whether this worker may receive starts before their time.
    pub(crate) fn prefetches(&self) -> bool {
        let agreed = self.features.ahead && self.features.no_scratch;
        agreed && self.pool.reuse && self.slots == 1
    }

    /// Sends what may follow the task with that tag, which has begun.
    pub(crate) fn send_ahead(&mut self, io: &mut Io<'_>, behind: u32, starts: Vec<Ahead>) {
        for ahead in starts {
            if !self.send_one_ahead(io, behind, ahead) {
                break;
            }
        }
    }

    /// Sends a start that is to follow the last one; false if nothing more can be sent.
    fn send_one_ahead(&mut self, io: &mut Io<'_>, behind: u32, ahead: Ahead) -> bool {
        let before = self.line.back().map_or(behind, |last| last.tag);
        let awaited = ahead.awaited.iter().map(|awaited| Awaited {
            input: awaited.input.0,
            tag: self.tag_of(awaited.producer),
            output: awaited.output,
        });
        let awaited = awaited.collect();
        let attempt = attempt_of(&ahead.assignment);
        let started = start::start(io.host, io.effects, ahead.assignment, self.features);
        let Ok((task, mut start)) = started else {
            // It fails the same way when it begins, and then it counts.
            self.return_starts(io.host, vec![attempt]);
            return false;
        };
        start.ahead = Some(wire::Ahead { before, awaited });
        self.send_start(io, &task, start);
        self.line.push_back(task);
        true
    }

    /// The tag of a task that runs or is in the line.
    fn tag_of(&self, task: TaskKey) -> u32 {
        let mut known = self.running.values().chain(&self.line);
        let producer = known.find(|known| known.assignment.task == task);
        producer
            .expect("the producer of what a start awaits comes before it")
            .tag
    }

    /// The running task has waited for no time: the worker has dropped what was to follow it.
    pub(crate) fn drop_line(&mut self, host: &mut dyn Host) {
        let gone = self.line.drain(..).map(|task| task.attempt.key()).collect();
        self.return_starts(host, gone);
    }

    /// The worker gives starts back; those behind them go with them.
    pub(crate) fn give_back(&mut self, host: &mut dyn Host, tags: &[u32]) {
        let mut tasks = self.line.iter();
        if let Some(first) = tasks.position(|task| tags.contains(&task.tag)) {
            let gone = self.line.drain(first..);
            let gone = gone.map(|task| task.attempt.key()).collect();
            self.return_starts(host, gone);
        }
    }

    fn return_starts(&self, host: &mut dyn Host, attempts: Vec<AttemptKey>) {
        if !attempts.is_empty() {
            let worker = self.worker;
            host.tell(vec![Event::PrefetchReturned { worker, attempts }]);
        }
    }

    /// The start with which the worker continues after `kind`, if it does.
    ///
    /// # Errors
    /// It has not received that start, or another one comes first.
    pub(crate) fn follower(
        &mut self,
        kind: &Kind,
    ) -> Result<Option<Box<WorkerTask>>, WorkerExitReason> {
        let Kind::Exit(exit) = kind else {
            return Ok(None);
        };
        if exit.next == 0 {
            return Ok(None);
        }
        let next = self.line.pop_front_if(|first| first.tag == exit.next);
        let breach = || "it continued with a start that it never received".to_string();
        next.map(Some)
            .ok_or_else(|| WorkerExitReason::Breach(breach()))
    }

    /// The worker has ended `before` and begun `next`, which the engine has begun or does not want.
    pub(crate) fn follow(
        &mut self,
        io: &mut Io<'_>,
        before: Box<WorkerTask>,
        mut next: Box<WorkerTask>,
        reply: Reply,
    ) -> Step {
        self.sample_at = None;
        let tag = next.tag;
        let Reply::Begin(begun) = reply else {
            next.is_over = true;
            next.follows = Some(before.slot_owner());
            before.close(io.host, io.effects);
            self.running.insert(tag, next);
            self.cancel(io, tag);
            return Ok(());
        };
        before.close(io.host, io.effects);
        next.assignment = begun.assignment;
        next.assignment.entry = Entry::Start(Vec::new());
        let inputs = next.assignment.descriptor.inputs.len() as u32;
        next.resolved.extend((0..inputs).map(Handle));
        self.running.insert(tag, next);
        self.send_ahead(io, tag, begun.ahead);
        Ok(())
    }
}
