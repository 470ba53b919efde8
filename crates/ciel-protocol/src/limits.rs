//! Every number of the protocol, with its unit.
//!
//! It does not know who keeps to them. `protocol/PROTOCOL.md` has the same numbers in its section
//! on limits.

/// The protocol number that both sides say in hello.
pub const PROTOCOL: u32 = 2;

/// Longest message in bytes, without its length or line end. The first byte of such a length is
/// never that of `{`, so the first byte of a connection decides its framing.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Bytes of references, in Protocol Buffers, after which a `resume` or `start` brings no more of
/// them. In JSON, too, they are less than a message then.
pub const ANSWERS_BYTES_MAX: usize = 32 << 20;

/// Objects below this many bytes are sent to workers as values, others as paths of files.
pub const VALUE_BYTES_BELOW: usize = 1 << 10;

/// Handles from this number on are chosen by the engine, those below by the task itself.
pub const DELIVERED_HANDLE_MIN: u32 = 1 << 31;

/// Definitions of one direction that a connection has at once; their ids are below.
pub const DEFINITIONS_MAX: u32 = 1 << 12;

/// Tasks that one worker process runs at once.
pub const SLOTS_MAX: u32 = 1 << 10;

/// Objects of one worker of which it is heeded that it keeps something made of them.
pub const CACHES_MAX: usize = 256;

/// Unfinished children of a strand that is not paused.
pub const CHILDREN_MAX: u32 = 10_000;

/// Bytes of an exception that a failure carries; a longer one is left out.
pub const EXCEPTION_BYTES_MAX: usize = 256 << 10;

/// Calls of a traceback that a failure carries; of a longer one, the innermost.
pub const TRACEBACK_CALLS_MAX: usize = 256;

/// Bytes of a message that an error shows.
pub const SHOWN_BYTES_MAX: usize = 64;
