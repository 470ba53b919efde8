//! Prefetched starts: the worker need not hear the engine between a task and the next.
//!
//! A start waits here until the task before it ends. If that sent all outputs that the start waits
//! for, the start is completed and becomes a message like any other. Unused starts are dropped: the
//! engine learns from each exit which start followed. After some time without the engine none
//! follows, so that the engine decides again. It knows neither Python nor the socket. Read next:
//! `incoming.rs`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ciel_protocol::wire::engine_message::Kind;
use ciel_protocol::wire::{Ahead, Data, EngineMessage, Output, Start, reference};

/// Starts that wait here at most.
const STARTS_MAX: usize = 256;

/// Ended tasks whose outputs are kept for those behind them.
const ENDED_MAX: usize = 64;

/// Prefetched starts, and outputs that they may wait for.
pub struct Line {
    starts: VecDeque<EngineMessage>,
    /// Tags of the last tasks that were followed at once, with their outputs.
    ended: VecDeque<(u32, Vec<Output>)>,
    /// When the engine last began a task itself.
    heard: Instant,
    /// For how long a worker continues without the engine.
    alone_max: Duration,
}

impl Line {
    /// Nothing is prefetched yet. After `alone_max` without the engine no start follows.
    pub fn new(alone_max: Duration) -> Line {
        Line {
            starts: VecDeque::new(),
            ended: VecDeque::new(),
            heard: Instant::now(),
            alone_max,
        }
    }

    /// The engine starts or resumes a task: earlier prefetched starts cannot follow that, nor any
    /// other.
    pub fn hear(&mut self) {
        self.heard = Instant::now();
        self.starts.clear();
        self.ended.clear();
    }

    /// A prefetched start.
    pub fn push(&mut self, start: EngineMessage) {
        if self.starts.len() == STARTS_MAX {
            self.starts.pop_front();
        }
        self.starts.push_back(start);
    }

    /// Number of starts that wait.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Nothing that waits begins here; gives the tags of all that does.
    pub fn give_back(&mut self) -> Vec<u32> {
        self.starts.drain(..).map(|start| start.tag).collect()
    }

    /// Whether a prefetched start follows that task.
    pub fn is_told(&self, ended: u32) -> bool {
        self.starts.iter().any(|start| follows(start, ended))
    }

    /// The start that follows a task that has ended with these outputs, complete; none if there is
    /// none, or if they lack what it waits for.
    pub fn follow(&mut self, ended: u32, outputs: &[Output]) -> Option<EngineMessage> {
        if self.heard.elapsed() >= self.alone_max {
            return None;
        }
        let place = self.starts.iter().position(|start| follows(start, ended));
        let next = self.starts.remove(place?)?;
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back((ended, outputs.to_vec()));
        self.complete(next)
    }

    fn complete(&self, mut message: EngineMessage) -> Option<EngineMessage> {
        let Some(Kind::Start(start)) = &mut message.kind else {
            return None;
        };
        let ahead = start.ahead.take()?;
        self.fill(start, &ahead).then_some(message)
    }

    fn fill(&self, start: &mut Start, ahead: &Ahead) -> bool {
        ahead.awaited.iter().all(|awaited| {
            let value = self.output(awaited.tag, awaited.output);
            let input = start.inputs.get_mut(awaited.input as usize);
            let (Some(value), Some(input)) = (value, input) else {
                return false;
            };
            input.state = Some(reference::State::Value(value.clone()));
            true
        })
    }

    /// A value without references, whose meaning is the same in another task.
    fn output(&self, tag: u32, index: u32) -> Option<&Data> {
        let (_, outputs) = self.ended.iter().find(|(ended, _)| *ended == tag)?;
        let output = outputs.iter().find(|output| output.output == index)?;
        output
            .value
            .as_ref()
            .filter(|value| value.references.is_empty())
    }
}

fn follows(start: &EngineMessage, tag: u32) -> bool {
    let ahead = match &start.kind {
        Some(Kind::Start(start)) => start.ahead.as_ref(),
        _ => None,
    };
    ahead.is_some_and(|ahead| ahead.before == tag)
}
