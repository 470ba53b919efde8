//! Optional parts of the protocol: those that the engine names, and what both sides agreed on.
//!
//! `protocol/PROTOCOL.md` says what each of them means. Read next: `conversation`.

const PARKED: &str = "parked";
const TIMEOUTS: &str = "timeouts";
const WATCHING: &str = "watching";
const NO_SCRATCH: &str = "no_scratch";
const INTERRUPT: &str = "interrupt";
const AHEAD: &str = "ahead";
const UNWIND: &str = "unwind";
const BEGUN: &str = "begun";
const LATER: &str = "later";
const FILES: &str = "files";
const STREAMS: &str = "streams";
const CACHES: &str = "caches";
const CHILDREN: &str = "children";
const OVERWRITES: &str = "overwrites";
const SHARED: &str = "shared";

/// What this engine can do beyond the plain protocol.
pub(crate) const OFFERED: [&str; 15] = [
    PARKED, TIMEOUTS, WATCHING, NO_SCRATCH, INTERRUPT, AHEAD, UNWIND, BEGUN, LATER, FILES, STREAMS,
    CACHES, CHILDREN, OVERWRITES, SHARED,
];

/// What a worker and this engine both can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features {
    /// Blocks may park.
    pub(crate) parked: bool,
    /// Blocks may have a limit in time.
    pub(crate) timeouts: bool,
    /// Requests may be answered when a reference is resolved.
    pub(crate) watching: bool,
    /// Tasks get no scratch folder.
    pub(crate) no_scratch: bool,
    /// A signal goes with the cancellation of a task.
    pub(crate) interrupt: bool,
    /// Starts may be sent before their time.
    pub(crate) ahead: bool,
    /// A parked strand whose task is cancelled receives `cancel`, to clean up.
    pub(crate) unwind: bool,
    /// A task that has begun inside the one that spawns it takes over its slot.
    pub(crate) begun: bool,
    /// Values of later handles come with answers.
    pub(crate) later: bool,
    /// Writes may name ordered files.
    pub(crate) files: bool,
    /// Outputs may be written, and inputs read, as streams.
    pub(crate) streams: bool,
    /// The worker may say of which objects it keeps something.
    pub(crate) caches: bool,
    /// A task may await that few of its children are unfinished.
    pub(crate) children: bool,
    /// The worker writes all bytes of a file whose length it has said, so other ones may be there.
    pub(crate) overwrites: bool,
    /// A task may share memory with the reader of its stream.
    pub(crate) shared: bool,
}

impl Features {
    /// What a worker that names `features` has in common with this engine.
    pub(crate) fn agreed(features: &[String]) -> Features {
        let names = |name: &str| features.iter().any(|feature| feature == name);
        Features {
            parked: names(PARKED),
            timeouts: names(TIMEOUTS),
            watching: names(WATCHING),
            no_scratch: names(NO_SCRATCH),
            interrupt: names(INTERRUPT),
            ahead: names(AHEAD),
            unwind: names(UNWIND),
            begun: names(BEGUN),
            later: names(LATER),
            files: names(FILES),
            streams: names(STREAMS),
            caches: names(CACHES),
            children: names(CHILDREN),
            overwrites: names(OVERWRITES),
            shared: names(SHARED),
        }
    }
}
