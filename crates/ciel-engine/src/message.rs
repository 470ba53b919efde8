//! What home and site say to each other: all that either half knows of the other one.
//!
//! Both directions are in order and without gaps; [`crate::link`] sees to that where they are not
//! in one process. Every message can be encoded. Nothing is decided here. Read next: `home`,
//! `site`.

use bytes::Bytes;
use ciel_graph::{self as graph, Ahead, Assignment};
use ciel_model::{
    Class, Handle, Micros, Name, Near, OrderLabel, Pairing, Resolution, Resources, TaskKey, WaitEnd,
};
use ciel_node::{AttemptKey, Capacity, Slot, WorkerKey};
use serde::{Deserialize, Serialize};

/// Starts that a worker has received and not begun, at most.
pub const STARTS_MAX: usize = 32;

/// The resolutions of the references that a task requested, in order.
pub type Answers = Vec<(Handle, Resolution)>;

/// The resolutions of the references that the earlier run had requested.
pub type Known = Vec<(Handle, Resolution)>;

/// A site; never reused within a run, though the process of a site may be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct SiteKey(pub u32);

/// What a site has to know, or to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToSite {
    /// The task may run at this site as soon as there is a slot.
    Offer(Box<Offer>),
    /// The place of an offered task in the serial order has another label now.
    Relabel {
        /// The attempt.
        attempt: AttemptKey,
        /// Its label.
        label: OrderLabel,
    },
    /// The reader of what a task will write directly waits for that only.
    ReaderWaits {
        /// The attempt of the producer.
        attempt: AttemptKey,
    },
    /// An offered task is not to run at this site any more.
    Withdraw {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// The attempt begins in the slot that the site has reported.
    Begin(Box<Assignment>),
    /// The attempt does not begin in that slot: it was given up, or runs elsewhere.
    Refuse {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// What may follow an attempt in its worker.
    Prefetch {
        /// The attempt.
        behind: AttemptKey,
        /// Each follows the one before it.
        starts: Vec<Ahead>,
    },
    /// All that an attempt waits for is ready: it continues in its slot.
    Continue {
        /// The attempt.
        attempt: AttemptKey,
        /// What became of what it waits for.
        answers: Answers,
        /// How the wait ended, if that depends on time.
        ended: Option<WaitEnd>,
    },
    /// The resolutions of all that the earlier run had requested.
    Recalled {
        /// The attempt.
        attempt: AttemptKey,
        /// Each with what became of it.
        known: Known,
    },
    /// What an attempt that runs has asked to be told.
    Notify {
        /// The attempt.
        attempt: AttemptKey,
        /// What is the case now.
        notice: Notice,
    },
    /// What a paused process writes is to be read again.
    ReadOn {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// An attempt waits; its slot is free.
    Suspend {
        /// The attempt.
        attempt: AttemptKey,
        /// It is to resume with its live copy, at this site.
        parked: bool,
    },
    /// The graph has ended an attempt that runs or waits.
    Stop {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// The job is over.
    JobEnded,
}

/// What is told to an attempt that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// What it watches is ready, or failed.
    Settled(Handle),
    /// It may spawn: few of its children have not ended, or nothing else would happen.
    FewChildren,
}

/// A task that is ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// The attempt.
    pub attempt: AttemptKey,
    /// Its place in the serial order.
    pub label: OrderLabel,
    /// How it is run.
    pub class: Class,
    /// What it needs.
    pub resources: Resources,
    /// It ran before: microseconds that its replay would take; `Micros::MAX` if it is not to be
    /// replayed while its live copy is there.
    pub replay_us: Option<Micros>,
    /// It is the root of the job.
    pub is_root: bool,
    /// It has a limit of time or memory, for which its worker may be killed.
    pub is_limited: bool,
    /// The attempt that spawned it, if it has begun inside that one.
    pub begun_in: Option<AttemptKey>,
    /// Files that it takes as references, of which a worker may keep something.
    pub near: Box<[Near]>,
    /// Which direct streams it reads or writes.
    pub pairing: Pairing,
}

/// What the home has to know of a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToHome {
    /// The site has joined, and nothing runs at it. It is the first message of a site.
    Joined {
        /// What it has to give.
        capacity: Capacity,
    },
    /// An attempt has a slot; it does not begin before the home confirms it.
    Placed {
        /// The attempt.
        attempt: AttemptKey,
        /// Its slot.
        slot: Slot,
    },
    /// An attempt of this site has done something, waits, or has come to its end.
    Acted(graph::Event),
    /// An attempt of this site has spawned a task that has begun inside it.
    SpawnedBegun(graph::Event),
    /// An attempt of this site has written to its ordered output.
    Wrote {
        /// The attempt.
        attempt: AttemptKey,
        /// Actions of its strand by then.
        after: u64,
        /// What it has written.
        bytes: Bytes,
    },
    /// The site is too small for a task that was offered.
    TooSmall {
        /// The attempt.
        attempt: AttemptKey,
        /// What is lacking, in words.
        lacking: String,
    },
    /// The live copy of a task is gone.
    ContinuationLost {
        /// The task.
        task: TaskKey,
    },
    /// A worker keeps something of some files, and nothing of others any more.
    WorkerCaches {
        /// The worker.
        worker: WorkerKey,
        /// Files of which it keeps something from now on.
        held: Vec<Name>,
        /// Files of which it keeps nothing any more.
        dropped: Vec<Name>,
    },
    /// A worker that kept something is gone.
    CachesLost {
        /// The worker.
        worker: WorkerKey,
    },
    /// The site asks what may follow an attempt in its worker. The answer is a `Prefetch`.
    MayPrefetch {
        /// The attempt.
        behind: AttemptKey,
        /// What the worker has received to follow it.
        line: Vec<TaskKey>,
        /// Ready tasks that the site would let follow them; if there are none, the home chooses
        /// among those that wait for what the line produces.
        lent: Vec<AttemptKey>,
        /// The worker keeps strands, so nothing may follow for which it may be killed.
        keeps_strands: bool,
    },
}
