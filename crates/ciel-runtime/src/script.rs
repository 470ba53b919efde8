//! A script between its turns: the machine, and what the engine knows of it.
//!
//! Plain state. Read next: `scripts`, which runs it.

use std::collections::VecDeque;
use std::sync::Arc;

use ciel_engine::Attempt;
use ciel_graph::{Assignment, Checkpoint, Entry};
use ciel_model::{AttemptNumber, FactAct, Handle, Keeping, WaitEnd};
use ciel_skywriting::host::Handle as ScriptHandle;
use ciel_skywriting::machine::Machine;
use rustc_hash::FxHashMap;

use crate::kept::{PRINTED_BYTES_MAX, Segment};
use crate::programs::Program;

/// A script between its turns.
pub(crate) struct Script {
    pub(crate) machine: Machine,
    /// None while it waits: it resumes with another one.
    pub(crate) assignment: Option<Box<Assignment>>,
    pub(crate) attempt: Attempt,
    pub(crate) program: Arc<Program>,
    /// What the payloads of functions that it spawns begin with.
    pub(crate) origin: Arc<[u8]>,
    /// What is known of its past; none if that is of no use.
    pub(crate) past: Option<Box<Past>>,
    /// Handles of the packages that were requested so far.
    pub(crate) packages: Option<Box<FxHashMap<String, ScriptHandle>>>,
    /// The last action of which the results of kept children became parts, and how many.
    pub(crate) constructed: (u64, u32),
    /// Instructions since something that its machine keeps was promoted.
    pub(crate) kept_for: u32,
    /// Mebibytes of objects that the run had made when unused references were last looked for.
    pub(crate) made_mib: u32,
}

/// Many scripts may wait at the same time. An allocator with classes of sizes gives 640 bytes for
/// one byte more.
const _: () = assert!(size_of::<Script>() <= 512);

/// What is known of the past of a script.
pub(crate) enum Past {
    /// All that it has written, as its result may be kept.
    Written(ScriptWritten),
    /// What an earlier run of the strand did, which it repeats.
    Earlier(Earlier),
}

/// What a script has written so far.
#[derive(Default)]
pub(crate) struct ScriptWritten {
    pub(crate) segments: Vec<Segment>,
    bytes: u64,
}

impl ScriptWritten {
    /// Nothing yet; none for a task whose result is not kept. One that repeats facts or begins at a
    /// checkpoint does not write all of it again.
    pub(crate) fn of(assignment: &Assignment) -> Option<ScriptWritten> {
        let is_first = assignment.attempt == AttemptNumber(0);
        let is_whole = is_first && matches!(assignment.entry, Entry::Start(_));
        let takes_part = assignment.descriptor.keeping != Keeping::Never;
        (is_whole && takes_part).then(ScriptWritten::default)
    }

    fn add(&mut self, segment: Segment) -> bool {
        self.bytes += segment.bytes.len() as u64;
        self.segments.push(segment);
        self.bytes <= PRINTED_BYTES_MAX
    }
}

/// Mebibytes of objects after which a script looks for references that it uses no more.
const PRESSING_MIB: u32 = 4;

/// To look for them costs as much as to write so many times the bytes of its heap.
const HEAP_SHARE: u32 = 4;

/// What a run that is repeated did, and has not been repeated yet.
pub(crate) struct Earlier {
    /// How its cancellations ended.
    pub(crate) ends: VecDeque<WaitEnd>,
    /// Actions in which it spawned tasks. All its other spawns stayed in the machine.
    pub(crate) spawned: VecDeque<u64>,
}

impl Script {
    /// The state of a script that waits. From now on it requests packages again, as it will when it
    /// resumes from here.
    pub(crate) fn checkpoint(&mut self) -> Checkpoint {
        self.packages = None;
        let saved = self.machine.save();
        let kept = handles(&saved.references);
        self.attempt.checkpoint(saved.bytes, kept)
    }
}

/// What an earlier run of the strand did, if that is what is known.
pub(crate) fn earlier_in(past: &mut Option<Box<Past>>) -> Option<&mut Earlier> {
    match past.as_deref_mut() {
        Some(Past::Earlier(earlier)) => Some(earlier),
        Some(Past::Written(_)) | None => None,
    }
}

/// The assignment of a script that has a turn.
pub(crate) fn assigned(assignment: &Option<Box<Assignment>>) -> &Assignment {
    assignment
        .as_ref()
        .expect("only while it waits there is none")
}

impl Script {
    /// It has written that; none if it is not known where. Once that is more than is kept, or
    /// unknown, nothing is noted any more.
    pub(crate) fn note_written(&mut self, segment: Option<Segment>) {
        if let Some(Past::Written(written)) = self.past.as_deref_mut()
            && !segment.is_some_and(|segment| written.add(segment))
        {
            self.past = None;
        }
    }

    /// Its assignment, in a turn.
    pub(crate) fn assignment(&self) -> &Assignment {
        assigned(&self.assignment)
    }

    /// How the attempt begins or resumes, once.
    pub(crate) fn take_entry(&mut self) -> Entry {
        let assignment = self.assignment.as_mut();
        let entry = assignment.map(|it| std::mem::replace(&mut it.entry, Entry::Start(Vec::new())));
        entry.expect("only while it waits there is none")
    }

    /// Whether so many of the bytes of objects that the run has made came since this was last so
    /// that those that the script uses no more may take much room.
    pub(crate) fn is_pressed(&mut self, made_bytes: u64) -> bool {
        let made_mib = (made_bytes >> 20) as u32;
        let heap_mib = (self.machine.heap_bytes() >> 20) as u32;
        let due = PRESSING_MIB.max(heap_mib.saturating_mul(HEAP_SHARE));
        let is_pressed = made_mib.wrapping_sub(self.made_mib) >= due;
        if is_pressed {
            self.made_mib = made_mib;
        }
        is_pressed
    }

    /// Drops what it needs only in a turn.
    pub(crate) fn suspend(&mut self) {
        self.assignment = None;
        self.machine.shrink();
    }

    /// Takes the recorded ends of waits out of what an attempt begins with.
    pub(crate) fn rewind(&mut self, entry: &Entry) {
        let facts = match entry {
            Entry::Replay { facts, .. } | Entry::Restore { facts, .. } => facts,
            Entry::Start(_) | Entry::Resume(_) => return,
        };
        let ends = facts.iter().filter_map(|fact| match &fact.act {
            FactAct::Waited(ended) => Some(ended.clone()),
            FactAct::Spawned { .. } | FactAct::Constructed { .. } | FactAct::Input { .. } => None,
        });
        let ends = ends.collect();
        let spawns = facts.iter().filter_map(|fact| match &fact.act {
            FactAct::Spawned { .. } => Some(fact.at.action),
            FactAct::Waited(_) | FactAct::Constructed { .. } | FactAct::Input { .. } => None,
        });
        let spawned = spawns.collect();
        self.past = Some(Box::new(Past::Earlier(Earlier { ends, spawned })));
    }

    fn earlier(&mut self) -> Option<&mut Earlier> {
        earlier_in(&mut self.past)
    }

    /// How the next cancellation ended in the run that it repeats, if it repeats one.
    pub(crate) fn recorded_end(&mut self) -> Option<WaitEnd> {
        self.earlier()?.ends.pop_front()
    }

    /// A cancellation of one reference has ended so.
    pub(crate) fn cancelled(&mut self, ended: &WaitEnd) {
        let reached = self.attempt.reach(self.machine.actions());
        reached.expect("a machine counts its actions upwards, and bounds them");
        self.attempt.pass_wait();
        self.machine.cancelled(!ended.places.is_empty());
    }
}

const _: () = assert!(ScriptHandle::DELIVERED_MIN == Handle::DELIVERED_MIN);

/// What a script calls a reference, as the graph calls it: both number alike.
pub(crate) fn handle(handle: ScriptHandle) -> Handle {
    Handle(handle.0)
}

/// What a script calls references, as the graph calls them.
pub(crate) fn handles(handles: &[ScriptHandle]) -> Vec<Handle> {
    handles.iter().map(|one| handle(*one)).collect()
}
