//! The native half of the Python package: module `ciel._native`.
//!
//! A codec and a socket: Python values to messages of the executor protocol and back, with a thread
//! that flushes messages after a while, one that returns starts that must not wait, and one that
//! sends kept spawns while a core is idle. It knows no
//! scheduling, no strands and no order of messages; those are in `sdk/python/ciel`. Read
//! `connection` for the requests, `worker_messages` and `engine_messages` for the values,
//! `outgoing` and `incoming` for the bytes, `definitions` for what is declared once, `prefetch` and
//! `long_turns` for prefetched starts, `promoter` and `levels` for spawns that are kept, `stack`
//! for those that run in place, `outside` and `tail` for what these are not to miss;
//! `ordered_file` and `ordered_strand` for files of programs without an engine.
//!
//! Nothing here panics in the face of bad input: what is wrong with an argument is a `TypeError`,
//! `ValueError` or `OverflowError`, what is wrong with the system an `OSError`, and what is wrong
//! with the engine a `RuntimeError`.

mod arguments;
mod assist;
mod attached;
mod caches;
mod connection;
mod counted;
mod definitions;
mod durations;
mod engine_messages;
mod environment;
mod failure;
mod files;
mod function;
mod future_state;
mod guard;
mod held_memory;
mod idle;
mod incoming;
mod inside;
mod kept_memory;
mod kept_payload;
mod levels;
mod long_turns;
mod meeting;
mod names;
mod options;
mod ordered_file;
mod ordered_strand;
mod outgoing;
mod outside;
mod place;
mod plain;
mod prefetch;
mod promoter;
mod record;
mod reference;
mod shared_memory;
mod shared_reader;
mod shared_writer;
mod socket;
mod stack;
mod stream_messages;
mod streaming_copy;
mod tail;
mod template;
mod unpacked;
mod worker_messages;

use pyo3::prelude::*;

/// What `ciel` needs of native code: a connection to the engine, and names.
#[pymodule(name = "_native", gil_used = true)]
mod native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::arguments::{packed_arguments, packed_atom, packed_with_places};
    #[pymodule_export]
    use crate::assist::{Assistant, Work};
    #[pymodule_export]
    use crate::caches::tell_caches;
    #[pymodule_export]
    use crate::connection::Connection;
    #[pymodule_export]
    use crate::counted::{Counted, ask_after_spawns};
    #[pymodule_export]
    use crate::definitions::Definition;
    #[pymodule_export]
    use crate::engine_messages::{
        Answer, Cancel, Drop, Hello, Observation, Observed, Opened, Recording, Refusal, Resume,
        Shutdown, Start,
    };
    #[pymodule_export]
    use crate::environment::{tell_seed, told_seed};
    #[pymodule_export]
    use crate::failure::{Failure, Frame};
    #[pymodule_export]
    use crate::files::digest_of_file;
    #[pymodule_export]
    use crate::function::Function;
    #[pymodule_export]
    use crate::future_state::{FutureState, plain_arguments};
    #[pymodule_export]
    use crate::names::{hash_of, label_of, position_of_root, position_of_spawn, seed_of};
    #[pymodule_export]
    use crate::options::TaskOptions;
    #[pymodule_export]
    use crate::ordered_file::OrderedFile;
    #[pymodule_export]
    use crate::ordered_strand::{OrderedGroup, OrderedStrand};
    #[pymodule_export]
    use crate::promoter::Promoter;
    #[pymodule_export]
    use crate::reference::{Failed, File, Incoming, Pending, Value};
    #[pymodule_export]
    use crate::shared_reader::{SharedReader, SharedValue};
    #[pymodule_export]
    use crate::shared_writer::SharedWriter;
    #[pymodule_export]
    use crate::stack::{Ahead, Values};
    #[pymodule_export]
    const DEPTH_MAX: u32 = crate::stack::DEPTH_MAX;
    #[pymodule_export]
    use crate::stack::{StackObject, list_kept, note_freezing, note_here, strand_here, unlist};
    #[pymodule_export]
    use crate::stream_messages::{open_shared, tell_shared};
    #[pymodule_export]
    use crate::tail::Tail;
    #[pymodule_export]
    use crate::template::{await_end, end_with, overwrite_entry, receive_request};
    #[pymodule_export]
    use crate::unpacked::plain_call;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::place::add_to(module)
    }
}
