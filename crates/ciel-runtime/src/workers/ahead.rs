//! What a worker is told before its time: starts of tasks that can follow the one that it runs.
//!
//! When a task ends with all that the next one waits for, the worker begins that by itself and says
//! so with its exit; so a chain of short tasks does not wait for the engine between any two of
//! them. To the graph it is as if the next one was begun now. If it is not to begin any more, it is
//! cancelled. Which tasks those are `ciel_graph::Ahead` says, and of the ready ones the node, which
//! lends them. A worker whose task takes long gives back what it was told. Read next:
//! `conversation`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ciel_graph::{Ahead, Entry};
use ciel_model::TaskKey;
use ciel_node::Run;
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{self, Awaited};

use super::conversation::{Conversation, Ending, Talked};
use super::held::Held;
use super::{run_of, start};

/// Starts that a worker is told ahead at most.
const STARTS_MAX: usize = 32;

/// Only after a task that took no longer than that the next ones are told ahead: for others it is
/// not worth it, and they are to begin in the order that the node chooses.
const QUICK_MAX: Duration = Duration::from_millis(1);

/// The starts that a worker was told ahead, and that it has not begun.
pub(super) struct Line {
    told: VecDeque<Told>,
    /// When the task that runs began.
    begun: Instant,
    /// The last task was quick.
    is_quick: bool,
}

/// One of them; each was told after the one before it.
struct Told {
    /// The epoch of the task before.
    before: u32,
    held: Held,
}

impl Line {
    pub(super) fn new() -> Line {
        Line {
            told: VecDeque::new(),
            begun: Instant::now(),
            is_quick: false,
        }
    }

    /// The start `epoch`, if it was told to follow `before`.
    fn take(&mut self, before: u32, epoch: u32) -> Option<Held> {
        let is_it = |told: &Told| told.before == before && told.held.tag.epoch == epoch;
        let place = self.told.iter().position(is_it)?;
        self.told.remove(place).map(|told| told.held)
    }

    /// Nothing follows the tasks of these epochs any more; gives those that were to, and those
    /// behind them.
    fn forget(&mut self, mut epochs: Vec<u32>) -> Vec<Run> {
        let mut gone = Vec::new();
        while let Some(before) = epochs.pop() {
            self.told.retain(|told| {
                if told.before == before {
                    epochs.push(told.held.tag.epoch);
                    gone.push(run_of(&told.held.assignment));
                }
                told.before != before
            });
        }
        gone
    }

    /// The starts of these epochs do not begin; gives them and those behind them.
    fn give_back(&mut self, epochs: Vec<u32>) -> Vec<Run> {
        let mut runs = Vec::new();
        self.told.retain(|told| {
            let is_gone = epochs.contains(&told.held.tag.epoch);
            if is_gone {
                runs.push(run_of(&told.held.assignment));
            }
            !is_gone
        });
        runs.extend(self.forget(epochs));
        runs
    }

    /// The task that runs and those behind it, in order, by their epochs.
    fn behind(&self, running: &Held) -> Vec<(TaskKey, u32)> {
        let mut last = running.tag.epoch;
        let mut line = vec![(running.assignment.task, last)];
        for told in &self.told {
            if told.before == last {
                last = told.held.tag.epoch;
                line.push((told.held.assignment.task, last));
            }
        }
        line
    }
}

impl Conversation<'_> {
    /// A task has begun in the worker; tells it what may follow.
    pub(super) fn begun(&mut self) -> Talked {
        self.line.begun = Instant::now();
        let Some(running) = self.running.as_ref().filter(|_| self.may_tell_ahead()) else {
            return Ok(());
        };
        let mut line = self.line.behind(running);
        let found = match running.assignment.memory_limit() {
            None => self.look_ahead(&line, run_of(&running.assignment)),
            Some(_) => Vec::new(),
        };
        let mut found = found.into_iter();
        while let Some(ahead) = found.next() {
            if !self.tell_ahead(ahead, &mut line)? {
                self.take_back(found.map(|ahead| run_of(&ahead.assignment)).collect());
                break;
            }
        }
        Ok(())
    }

    fn may_tell_ahead(&self) -> bool {
        let features = self.features;
        let agreed = features.ahead && features.no_scratch;
        agreed && self.line.is_quick && self.pool.reuse && !self.used_up
    }

    /// What can follow the last of `line`, of which `run` is the first: one after the other.
    fn look_ahead(&self, line: &[(TaskKey, u32)], run: Run) -> Vec<Ahead> {
        let mut keys: Vec<TaskKey> = line.iter().map(|(task, _)| *task).collect();
        let mut found = Vec::new();
        self.workers.engine.with(|core, now| {
            let mut share = core.node.share();
            while keys.len() <= STARTS_MAX {
                let mut ahead = core.look_ahead(&keys);
                if ahead.is_none() && share > 0 {
                    share -= 1;
                    ahead = core.lend(now, run);
                }
                let Some(ahead) = ahead else { break };
                keys.push(ahead.assignment.task);
                found.push(ahead);
            }
        });
        found
    }

    /// The task of that epoch has ended otherwise, or has waited: nothing follows it.
    pub(super) fn forget_line(&mut self, epoch: u32) {
        if self.line.told.is_empty() {
            return;
        }
        let gone = self.line.forget(vec![epoch]);
        self.take_back(gone);
    }

    /// The worker gives starts back.
    pub(super) fn give_back(&mut self, epochs: Vec<u32>) {
        let gone = self.line.give_back(epochs);
        self.take_back(gone);
    }

    fn take_back(&self, gone: Vec<Run>) {
        if !gone.is_empty() {
            self.workers
                .engine
                .with(|core, now| core.take_back(now, gone));
        }
    }

    /// Tells a start that is to follow the last of `line`; false if there is none.
    fn tell_ahead(&mut self, ahead: Ahead, line: &mut Vec<(TaskKey, u32)>) -> Result<bool, Ending> {
        let (_, before) = *line.last().expect("the task that runs is the first of it");
        let epoch = |task| line.iter().find(|(other, _)| *other == task);
        let awaited = ahead.awaited.iter().map(|awaited| Awaited {
            input: awaited.input.0,
            epoch: epoch(awaited.producer)
                .expect("its producer comes before it")
                .1,
            output: awaited.output,
        });
        let told = wire::Ahead {
            before,
            awaited: awaited.collect(),
        };
        let run = run_of(&ahead.assignment);
        let Ok((held, mut start)) = start::start(self.workers, ahead.assignment, self.features)
        else {
            // It fails the same way when it begins, and then it counts.
            self.take_back(vec![run]);
            return Ok(false);
        };
        start.ahead = Some(told);
        line.push((held.assignment.task, held.tag.epoch));
        let tag = held.tag.clone();
        self.line.told.push_back(Told { before, held });
        self.say(&tag, start).map(|()| true)
    }

    /// The start with which the worker goes on after `kind`, if it does.
    ///
    /// # Errors
    /// It was not told that start.
    pub(super) fn follower(&mut self, held: &Held, kind: &Kind) -> Result<Option<Held>, Ending> {
        let Kind::Exit(word) = kind else {
            return Ok(None);
        };
        self.line.is_quick = self.line.begun.elapsed() <= QUICK_MAX;
        let Some(epoch) = word.next else {
            return Ok(None);
        };
        let next = self.line.take(held.tag.epoch, epoch);
        let untold = || Ending::Breach("it continued with a start that it never received".into());
        next.map(Some).ok_or_else(untold)
    }

    /// The worker has ended `before` and begun `next`, which has its place if it is `placed`.
    pub(super) fn follow(&mut self, before: Held, mut next: Held, placed: bool) -> Talked {
        (self.cancelled_at, self.sample_at) = (None, None);
        if !placed {
            next.over = true;
            next.place_of = Some(before.seat());
            before.close(self.workers);
            self.running = Some(next);
            return self.cancel();
        }
        before.close(self.workers);
        let engine = &self.workers.engine;
        let pid = self.peer.pid;
        let stopping = engine.with(|core, _| {
            let begun = core.take_next();
            next.assignment = begun.expect("who has its place has begun");
            let run = run_of(&next.assignment);
            core.pids.extend(pid.map(|pid| (run.task, pid)));
            core.is_stopping(run)
        });
        next.assignment.entry = Entry::Start(Vec::new());
        let inputs = next.assignment.descriptor.inputs.len() as u32;
        next.told.extend(0..inputs);
        self.running = Some(next);
        match stopping {
            true => self.cancel(),
            false => self.begun(),
        }
    }
}
