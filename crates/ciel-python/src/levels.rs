//! Spawns that were not sent yet, of the strands that run in place of one another.
//!
//! Each strand has a level, the outermost first; only the outermost is a task. Its children become
//! tasks when it sends them; the one that runs in place of it is then a task that has begun, and
//! its level the outermost. A level answers with messages and sends none. Read next: `promoter.rs`,
//! "Children that have begun" in protocol/PROTOCOL.md.

use std::collections::{BTreeMap, VecDeque};

use ciel_model::Name;
use ciel_protocol::wire::{
    BlockOn, Calls, Descriptor, EndedInPlace, Input, Parked, Spawn, Wait, WorkerMessage, block_on,
};

use crate::kept_payload::Payload;

/// Bytes of calls that are spawned by one message, at most, unless one call alone has more.
const RANGE_BYTES_MAX: usize = 64 << 10;

/// Children that a strand keeps, at most: with more of them, the oldest run, or all become tasks.
pub const KEPT_MAX: usize = 1024;

/// Beats until a worker claims a core again, after it has made a strand wait for one.
const RESTS: u32 = 2;

/// Beats that what runs in place has seen when it is not short any more.
const BEATS_OF_SHORT: u32 = 2;

/// Children of a strand that end in place between two beats, at least, if they are short: then a
/// task costs more than a child, and an idle core that takes some makes the others wait.
const SHORT_PER_BEAT: u32 = 12;

/// Levels among which the first one with children that have not begun is looked for.
const LOOKED_AT_MAX: usize = 16;

/// The levels of the strand that has its turn. Empty until that keeps a child.
#[derive(Default)]
pub struct Levels {
    levels: VecDeque<Level>,
    /// Children of all levels that are kept and have not begun.
    fresh: usize,
    /// Beats so far.
    beats: u32,
    /// Beats during which no core is claimed: a strand has just begun to wait for the last one.
    rests: u32,
    /// Children that ended in place and were not counted yet.
    ended: Ended,
}

/// Counts of children that ended in place, by definition.
#[derive(Default)]
struct Ended {
    counts: BTreeMap<u32, u64>,
    /// The definition of the last one, with a count that is not in `counts`: one function after the
    /// other is rare.
    last: Option<(u32, u64)>,
}

impl Ended {
    fn add(&mut self, definition: u32) {
        match &mut self.last {
            Some((last, count)) if *last == definition => *count += 1,
            last => {
                let before = last.replace((definition, 1));
                self.note(before);
            }
        }
    }

    fn note(&mut self, counted: Option<(u32, u64)>) {
        if let Some((definition, count)) = counted {
            *self.counts.entry(definition).or_default() += count;
        }
    }

    /// All of them; none are left.
    fn take(&mut self) -> BTreeMap<u32, u64> {
        let last = self.last.take();
        self.note(last);
        std::mem::take(&mut self.counts)
    }
}

/// A spawn that is kept: one task, with plain arguments, or futures of tasks beside them.
pub struct Child {
    /// Id of its definition.
    pub definition: u32,
    /// The call, with the handles of futures among its arguments.
    pub payload: Payload,
    /// Index of the spawn.
    pub action: u64,
    /// The handle of its result.
    pub handle: u32,
    /// The line of the spawn.
    pub line: u32,
    /// Beats of the levels until it was kept, which they note.
    pub beats: u32,
}

#[derive(Default)]
struct Level {
    /// Tag of the task; of one that has begun in place `None` until its start is known.
    tag: Option<u32>,
    /// Name of a strand that began in place; of others `None`.
    name: Option<Name>,
    /// Its spawns, oldest first.
    pending: VecDeque<Child>,
    inside: Option<Inside>,
    /// Children that ended in place since the last beat, and those between the two before it.
    ended: [u32; 2],
    ahead: Option<Box<Ahead>>,
}

/// Children that are called one after the other by their parent, before it asks for them. They have
/// no strands: what they do is seen in their results alone, so that one may run twice, and one that
/// runs may become a task that has not begun.
struct Ahead {
    /// Handles of their results, in the order in which they are called.
    handles: Vec<u32>,
    /// How many of the first were removed, as they have ended.
    removed: usize,
    /// Beats since the first one began.
    beats: u32,
    /// Handles of those that have ended here and are tasks.
    tasks: Vec<u32>,
}

/// What runs in place of a strand.
struct Inside {
    /// The handle of its result.
    handle: u32,
    /// Actions of the strand before it waits.
    after: u64,
    /// Beats since it is the outermost of those in place.
    beats: u32,
    /// Whether the strand, once this is a task, continues as soon as there is a slot for it; else
    /// it waits for the result.
    is_aside: bool,
}

impl Levels {
    /// The innermost strand keeps a child. `tag` is that of its task, 0 if it is none. Returns how
    /// many it keeps, and the handle of the oldest.
    pub fn keep(&mut self, tag: u32, mut child: Child) -> (usize, u32) {
        if tag != 0 && !self.is_task(tag) {
            self.forget();
            self.levels.push_back(Level {
                tag: Some(tag),
                ..Level::default()
            });
        }
        let Some(level) = self.levels.back_mut() else {
            return (0, 0);
        };
        child.beats = self.beats;
        level.pending.push_back(child);
        self.fresh += 1;
        (level.pending.len(), level.pending[0].handle)
    }

    /// Children that the innermost strand keeps, and the handle of the oldest; 0 if there is none.
    pub fn count(&self) -> (usize, u32) {
        let pending = self.levels.back().map(|level| &level.pending);
        let oldest = pending.and_then(|pending| pending.front());
        let oldest = oldest.map_or(0, |child| child.handle);
        (pending.map_or(0, |pending| pending.len()), oldest)
    }

    fn is_task(&self, tag: u32) -> bool {
        self.levels.len() == 1 && self.levels[0].tag == Some(tag)
    }

    /// The kept child with that handle begins in place of the innermost strand, which has done
    /// `after` actions. With its name comes whether that continues beside it if it becomes a task.
    /// False if it is a task already.
    pub fn enter(&mut self, tag: u32, handle: u32, after: u64, begun: (Name, bool)) -> bool {
        let (name, is_aside) = begun;
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
            is_aside,
        });
        self.fresh -= 1;
        self.levels.push_back(Level {
            name: Some(name),
            ..Level::default()
        });
        true
    }

    /// The innermost strand, of that name, ends in place. False if it is a task by now, or keeps
    /// children.
    pub fn leave(&mut self, name: Name) -> bool {
        let innermost = self.levels.len().wrapping_sub(1);
        if !self.is_inside(name, innermost) || !self.levels[innermost].pending.is_empty() {
            return false;
        }
        self.levels.pop_back();
        let level = self.levels.back_mut();
        let child = level.and_then(|level| {
            let inside = level.inside.take()?;
            level.remove(inside.handle)
        });
        if let Some(child) = &child {
            self.ended.add(child.definition);
        }
        child.is_some()
    }

    /// The task with that tag takes back its last spawn, with that handle: the only child that it
    /// keeps. False if that is a task by now, or another one is kept.
    pub fn withdraw(&mut self, tag: u32, handle: u32) -> bool {
        let is_outermost = self.is_task(tag);
        let Some(level) = self.levels.front_mut().filter(|_| is_outermost) else {
            return false;
        };
        let is_only = level.pending.len() == 1 && level.pending[0].handle == handle;
        if is_only && level.inside.is_none() && level.ahead.is_none() {
            level.pending.clear();
            self.fresh -= 1;
            return true;
        }
        false
    }

    /// Whether the innermost strand keeps the child with that handle.
    pub fn keeps(&self, handle: u32) -> bool {
        let level = self.levels.back();
        level.is_some_and(|level| level.place_of(handle).is_some())
    }

    /// The innermost strand calls its children with those handles, which ascend, one after the
    /// other; some may be tasks already. `tag` is as in `keep`.
    pub fn begin_ahead(&mut self, tag: u32, handles: Vec<u32>) {
        let is_known = tag == 0 || self.is_task(tag);
        if let Some(level) = self.levels.back_mut().filter(|_| is_known) {
            level.ahead = Some(Box::new(Ahead {
                handles,
                removed: 0,
                beats: 0,
                tasks: Vec::new(),
            }));
        }
    }

    /// The innermost strand calls no more of its children ahead: that many have ended. The handles
    /// of those that are tasks; `None` if the strand was cancelled.
    pub fn end_ahead(&mut self, count: usize) -> Option<Vec<u32>> {
        let level = self.levels.back_mut()?;
        let mut ahead = level.ahead.take()?;
        let ended = level.remove_called(&mut ahead, count);
        self.note_called(&ended);
        Some(ahead.tasks)
    }

    /// That many of the children that the outermost strand calls ahead have ended: these need not
    /// become tasks.
    pub fn forget_called(&mut self, count: usize) {
        let level = self.levels.front_mut();
        if let Some((mut ahead, level)) = level.and_then(|level| Some((level.ahead.take()?, level)))
        {
            let ended = level.remove_called(&mut ahead, count);
            level.ahead = Some(ahead);
            self.note_called(&ended);
        }
    }

    /// Children of those definitions have ended.
    fn note_called(&mut self, ended: &[u32]) {
        self.fresh -= ended.len();
        for definition in ended {
            self.ended.add(*definition);
        }
    }

    /// The message that counts the children that ended in place since the last one, if any did.
    pub fn take_ended(&mut self) -> Option<WorkerMessage> {
        let ended = self.ended.take();
        if ended.is_empty() {
            return None;
        }
        let calls = ended.into_iter();
        let calls = calls.map(|(definition, count)| Calls { definition, count });
        let calls = calls.collect();
        Some(WorkerMessage::connection(EndedInPlace { calls }))
    }

    /// The strand that has its turn was cancelled: nothing that it keeps is left.
    pub fn forget(&mut self) {
        self.levels.clear();
        self.fresh = 0;
    }

    /// Whether the strand of that name is at that level, in place of another one.
    fn is_inside(&self, name: Name, level: usize) -> bool {
        let is_it = |level: &Level| level.name == Some(name);
        level != 0 && self.levels.get(level).is_some_and(is_it)
    }

    /// The task of that name has this tag.
    pub fn set_tag(&mut self, name: Name, tag: u32) {
        if let Some(level) = self.levels.front_mut()
            && level.name == Some(name)
        {
            level.tag = Some(tag);
        }
    }

    /// The strand that runs is a task with that tag: all spawns that it keeps.
    pub fn settle(&mut self, tag: u32) -> Vec<WorkerMessage> {
        match self.is_task(tag) {
            true => self.take(tag, usize::MAX, None),
            false => Vec::new(),
        }
    }

    /// The strand of that name, which runs in place of the outermost one, becomes a task; it
    /// may be one already.
    pub fn give_slot(&mut self, name: Name) -> Vec<WorkerMessage> {
        match self.is_inside(name, 1) {
            true => self.promote(usize::MAX, |_| None),
            false => Vec::new(),
        }
    }

    /// Whether a child is kept, or runs in place.
    pub fn is_any(&self) -> bool {
        self.levels.iter().any(|level| !level.pending.is_empty())
    }

    /// Children that are kept and have not begun.
    pub fn pending(&self) -> usize {
        self.fresh
    }

    /// Strands that have to become tasks before one of the children that are kept can, as far as
    /// that is looked for. `None` if that child has not been kept for a whole beat: then it may be
    /// short, as what runs beside it may be, and a strand that waits costs more. Also `None` while
    /// short children of the outermost strand end one after the other, and at the beat after a
    /// strand began to wait with children for a core, which others have the next time.
    pub fn before_pending(&self) -> Option<usize> {
        let outermost = self.levels.front()?;
        if outermost.ended.into_iter().max() >= Some(SHORT_PER_BEAT) {
            return None;
        }
        let levels = self.levels.iter().take(LOOKED_AT_MAX).enumerate();
        let mut fresh = levels.filter_map(|(before, level)| Some((before, level.first_fresh()?)));
        let (before, is_old) = match fresh.next() {
            Some((before, first)) => (before, self.beats.wrapping_sub(first.beats) >= 2),
            None => (LOOKED_AT_MAX, self.fresh > 0),
        };
        (is_old && self.rests == 0).then_some(before)
    }

    /// Whether what runs in place of the outermost strand has begun since the last beat but one: it
    /// may be short, and its end is the time to promote its siblings. Before that it would have to
    /// become a task itself, as spawns are sent in their order, and its strand would wait for it.
    /// So may be what it calls ahead.
    pub fn is_inside_fresh(&self) -> bool {
        let outermost = self.levels.front();
        outermost.is_some_and(|level| {
            let inside = level.inside.as_ref().map(|inside| inside.beats);
            let ahead = level.ahead.as_ref().map(|ahead| ahead.beats);
            inside.or(ahead).is_some_and(|beats| beats < BEATS_OF_SHORT)
        })
    }

    /// Counts a beat. Whether what runs in place of the outermost strand has done so for more than
    /// `beats_max`, and has to become a task.
    pub fn beat(&mut self, beats_max: u32) -> bool {
        self.beats = self.beats.wrapping_add(1);
        self.rests = self.rests.saturating_sub(1);
        let Some(outermost) = self.levels.front_mut() else {
            return false;
        };
        outermost.ended = [0, outermost.ended[0]];
        if let Some(ahead) = &mut outermost.ahead {
            ahead.beats = ahead.beats.saturating_add(1);
        }
        outermost.inside.as_mut().is_some_and(|inside| {
            inside.beats = inside.beats.saturating_add(1);
            inside.beats > beats_max
        })
    }

    /// The messages by which children of the outermost strand become tasks, so many at most unless
    /// one runs in place of it: then it waits, and keeps none. `tag_of` knows the tag of a task
    /// that has begun, if its start has come.
    pub fn promote(
        &mut self,
        count_max: usize,
        tag_of: impl FnOnce(Name) -> Option<u32>,
    ) -> Vec<WorkerMessage> {
        let Some(level) = self.levels.front_mut() else {
            return Vec::new();
        };
        let Some(tag) = level.tag.or_else(|| level.name.and_then(tag_of)) else {
            return Vec::new();
        };
        level.tag = Some(tag);
        let Some(inside) = level.inside.take() else {
            return self.take(tag, count_max, None);
        };
        let pending = self.fresh;
        let mut messages = self.take(tag, usize::MAX, Some(inside.handle));
        if self.fresh < pending {
            self.rests = RESTS;
        }
        messages.push(WorkerMessage::about(tag, inside.block()));
        self.levels.pop_front();
        messages
    }

    /// The spawns of the oldest children that the outermost strand keeps, so many at most. The one
    /// with the handle `begun` has begun, none else.
    fn take(&mut self, tag: u32, count_max: usize, begun: Option<u32>) -> Vec<WorkerMessage> {
        let level = &mut self.levels[0];
        let count = level.pending.len().min(count_max);
        self.fresh -= count - usize::from(begun.is_some());
        level.take(tag, count, begun)
    }
}

impl Level {
    /// The oldest child that has not begun.
    fn first_fresh(&self) -> Option<&Child> {
        let begun = self.inside.as_ref().map(|inside| inside.handle);
        self.pending
            .iter()
            .find(|child| Some(child.handle) != begun)
    }

    /// Removes a child, which has ended in place; `None` if it is a task.
    fn remove(&mut self, handle: u32) -> Option<Child> {
        let child = match self.place_of(handle)? {
            0 => self.pending.pop_front()?,
            place => self.pending.remove(place)?,
        };
        self.ended[0] = self.ended[0].saturating_add(1);
        Some(child)
    }

    /// Removes those of the first `count` children called ahead that are no tasks: they have ended.
    /// Their definitions.
    fn remove_called(&mut self, ahead: &mut Ahead, count: usize) -> Vec<u32> {
        let mut ended = Vec::new();
        for handle in ahead.handles.iter().take(count).skip(ahead.removed) {
            match self.remove(*handle) {
                Some(child) => ended.push(child.definition),
                None => ahead.tasks.push(*handle),
            }
        }
        ahead.removed = ahead.removed.max(count);
        ended
    }

    /// Handles ascend; mostly the first child is asked for, or the last one.
    fn place_of(&self, handle: u32) -> Option<usize> {
        let is_it = |child: &Child| child.handle == handle;
        if self.pending.front().is_some_and(is_it) {
            return Some(0);
        }
        if self.pending.back().is_some_and(is_it) {
            return Some(self.pending.len() - 1);
        }
        let found = self
            .pending
            .binary_search_by_key(&handle, |child| child.handle);
        found.ok()
    }

    /// The spawns of the oldest children. Those that follow one another in the program are a range,
    /// which one message spawns.
    fn take(&mut self, tag: u32, count: usize, begun: Option<u32>) -> Vec<WorkerMessage> {
        let mut spawns = Vec::new();
        let mut bytes = 0;
        for child in self.pending.drain(..count) {
            let length = child.payload.len();
            bytes += length;
            let spawn = child.spawn(begun);
            match spawns.last_mut() {
                Some(last) if bytes <= RANGE_BYTES_MAX && is_next(last, &spawn) => {
                    last.tasks.extend(spawn.tasks);
                }
                _ => {
                    bytes = length;
                    spawns.push(spawn);
                }
            }
        }
        let spawns = spawns.into_iter();
        spawns
            .map(|spawn| WorkerMessage::about(tag, spawn))
            .collect()
    }
}

/// Whether a spawn continues a range: its action and its handle are the next ones.
fn is_next(range: &Spawn, spawn: &Spawn) -> bool {
    let count = range.tasks.len() as u32;
    let is_next =
        spawn.action == range.action + u64::from(count) && spawn.handle == range.handle + count;
    is_next && !range.begun && !spawn.begun
}

/// The value behind a handle, as an input.
fn by_value(handle: &u32) -> Input {
    Input {
        handle: *handle,
        ..Input::default()
    }
}

impl Child {
    fn spawn(self, begun: Option<u32>) -> Spawn {
        let task = Descriptor {
            definition: self.definition,
            payload: self.payload.to_bytes(),
            inputs: self.payload.inputs().iter().map(by_value).collect(),
            line: self.line,
        };
        Spawn {
            tasks: vec![task],
            action: self.action,
            handle: self.handle,
            released: Vec::new(),
            begun: begun == Some(self.handle),
        }
    }
}

impl Inside {
    fn block(self) -> BlockOn {
        let references = if self.is_aside {
            Vec::new()
        } else {
            vec![self.handle]
        };
        BlockOn {
            references,
            wait: Wait::All.into(),
            timeout_ms: None,
            after: self.after,
            part: None,
            released: Vec::new(),
            continuation: Some(block_on::Continuation::Parked(Parked {})),
        }
    }
}
