//! Spawns that were not sent yet, of the strands that run in place of one another.
//!
//! Each strand has a level, the outermost first; only the outermost is a task. Its children become
//! tasks when it sends them; the one that runs in place of it is then a task that has begun, and
//! its level the outermost. A level answers with messages and sends none. Read next: `promoter.rs`,
//! "Children that have begun" in protocol/PROTOCOL.md.

use std::collections::{BTreeMap, VecDeque};

use ciel_protocol::wire::{
    BlockOn, Calls, EndedInPlace, Parked, Spawn, Wait, WorkerMessage, block_on,
};

/// Children that become tasks at once, at most, while their spawner runs.
const PROMOTED_MAX: usize = 16;

/// Beats that a child of the outermost strand may run in place: then it becomes a task, so that its
/// result is recorded, and a lost worker loses little.
const BEATS_MAX: u32 = 10;

/// The levels of the strand that has its turn. Empty until that keeps a child.
#[derive(Default)]
pub struct Levels {
    levels: VecDeque<Level>,
    /// Children that ended in place and were not counted yet, by definition.
    ended: BTreeMap<u32, u64>,
}

#[derive(Default)]
struct Level {
    /// Tag of the task; of one that has begun in place `None` until its start is known.
    tag: Option<u32>,
    /// Position of a strand that began in place; of others empty.
    position: Vec<u8>,
    /// Its spawns, oldest first.
    pending: VecDeque<Spawn>,
    inside: Option<Inside>,
}

/// What runs in place of a strand.
struct Inside {
    /// The handle of its result.
    handle: u32,
    /// Actions of the strand before it waits.
    after: u64,
    /// Beats since it is the outermost of those in place.
    beats: u32,
}

impl Levels {
    /// The innermost strand keeps a child. `tag` is that of its task, 0 if it is none.
    pub fn keep(&mut self, tag: u32, spawn: Spawn) {
        if tag != 0 && !self.is_task(tag) {
            self.levels.clear();
            self.levels.push_back(Level {
                tag: Some(tag),
                ..Level::default()
            });
        }
        if let Some(level) = self.levels.back_mut() {
            level.pending.push_back(spawn);
        }
    }

    fn is_task(&self, tag: u32) -> bool {
        self.levels.len() == 1 && self.levels[0].tag == Some(tag)
    }

    /// The kept child with that handle begins in place of the innermost strand, which has done
    /// `after` actions. False if it is a task already.
    pub fn enter(&mut self, tag: u32, handle: u32, after: u64, position: Vec<u8>) -> bool {
        if tag != 0 && !self.is_task(tag) {
            return false;
        }
        let Some(level) = self.levels.back_mut() else {
            return false;
        };
        if level.place_of(handle).is_none() {
            return false;
        }
        level.inside = Some(Inside {
            handle,
            after,
            beats: 0,
        });
        self.levels.push_back(Level {
            position,
            ..Level::default()
        });
        true
    }

    /// The innermost strand, at that position, ends in place. False if it is a task by now.
    pub fn leave(&mut self, position: &[u8]) -> bool {
        if !self.is_inside(position, self.levels.len().wrapping_sub(1)) {
            return false;
        }
        self.levels.pop_back();
        if let Some(level) = self.levels.back_mut()
            && let Some(inside) = level.inside.take()
            && let Some(place) = level.place_of(inside.handle)
            && let Some(spawn) = level.pending.remove(place)
        {
            for task in &spawn.tasks {
                *self.ended.entry(task.definition).or_default() += 1;
            }
        }
        true
    }

    /// The message that counts the children that ended in place since the last one, if any did.
    pub fn take_ended(&mut self) -> Option<WorkerMessage> {
        if self.ended.is_empty() {
            return None;
        }
        let ended = std::mem::take(&mut self.ended).into_iter();
        let calls = ended.map(|(definition, count)| Calls { definition, count });
        let calls = calls.collect();
        Some(WorkerMessage::connection(EndedInPlace { calls }))
    }

    /// The strand that has its turn was cancelled: nothing that it keeps is left.
    pub fn forget(&mut self) {
        self.levels.clear();
    }

    /// Whether the strand at that position is at that level, in place of another one.
    fn is_inside(&self, position: &[u8], level: usize) -> bool {
        level != 0
            && self
                .levels
                .get(level)
                .is_some_and(|level| level.position == position)
    }

    /// The task at that position has this tag.
    pub fn name(&mut self, position: &[u8], tag: u32) {
        if let Some(level) = self.levels.front_mut()
            && level.position == position
        {
            level.tag = Some(tag);
        }
    }

    /// The strand that runs is a task with that tag: all spawns that it keeps.
    pub fn settle(&mut self, tag: u32) -> Vec<WorkerMessage> {
        match self.is_task(tag) {
            true => self.levels[0].take(tag, usize::MAX),
            false => Vec::new(),
        }
    }

    /// The strand at that position, which runs in place of the outermost one, becomes a task; it
    /// may be one already.
    pub fn give_slot(&mut self, position: &[u8]) -> Vec<WorkerMessage> {
        match self.is_inside(position, 1) {
            true => self.promote(|_| None),
            false => Vec::new(),
        }
    }

    /// Whether a child is kept, or runs in place.
    pub fn is_any(&self) -> bool {
        self.levels.iter().any(|level| !level.pending.is_empty())
    }

    /// Whether a child is kept that has not begun.
    pub fn has_pending(&self) -> bool {
        let has_pending = |level: &Level| level.pending.len() > usize::from(level.inside.is_some());
        self.levels.iter().any(has_pending)
    }

    /// Counts a beat. Whether what runs in place of the outermost strand has to become a task.
    pub fn beat(&mut self) -> bool {
        let inside = self
            .levels
            .front_mut()
            .and_then(|level| level.inside.as_mut());
        inside.is_some_and(|inside| {
            inside.beats = inside.beats.saturating_add(1);
            inside.beats > BEATS_MAX
        })
    }

    /// The messages by which children of the outermost strand become tasks. `tag_of` knows the tag
    /// of a task that has begun, if its start has come.
    pub fn promote(&mut self, tag_of: impl FnOnce(&[u8]) -> Option<u32>) -> Vec<WorkerMessage> {
        let Some(level) = self.levels.front_mut() else {
            return Vec::new();
        };
        let Some(tag) = level.tag.or_else(|| tag_of(&level.position)) else {
            return Vec::new();
        };
        level.tag = Some(tag);
        let Some(inside) = level.inside.take() else {
            return level.take(tag, PROMOTED_MAX);
        };
        if let Some(place) = level.place_of(inside.handle) {
            level.pending[place].begun = true;
        }
        let mut messages = level.take(tag, usize::MAX);
        messages.push(WorkerMessage::about(tag, inside.block()));
        self.levels.pop_front();
        messages
    }
}

impl Level {
    /// Handles ascend.
    fn place_of(&self, handle: u32) -> Option<usize> {
        let found = self
            .pending
            .binary_search_by_key(&handle, |spawn| spawn.handle);
        found.ok()
    }

    fn take(&mut self, tag: u32, count_max: usize) -> Vec<WorkerMessage> {
        let count = self.pending.len().min(count_max);
        let spawns = self.pending.drain(..count);
        spawns
            .map(|spawn| WorkerMessage::about(tag, spawn))
            .collect()
    }
}

impl Inside {
    fn block(self) -> BlockOn {
        BlockOn {
            references: vec![self.handle],
            wait: Wait::All.into(),
            timeout_ms: None,
            after: self.after,
            part: None,
            released: Vec::new(),
            continuation: Some(block_on::Continuation::Parked(Parked {})),
        }
    }
}
