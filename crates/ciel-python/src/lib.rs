//! The native half of the Python package: module `ciel._native`.
//!
//! A codec and a socket: Python values to messages of the executor protocol and back, with a thread
//! that sends what has waited long enough, and one that gives back what must not wait. It knows no
//! scheduling, no strands and no rules of a conversation; those stand in `sdk/python/ciel`. Read
//! `connection` for the verbs, `said` and `heard` for the values, `outgoing` and `incoming` for the
//! bytes, `ahead` and `watch` for what was told before its time.
//!
//! Nothing here panics in the face of bad input: what is wrong with an argument is a `TypeError`,
//! `ValueError` or `OverflowError`, what is wrong with the system an `OSError`, and what is wrong
//! with the engine a `RuntimeError`.

mod ahead;
mod connection;
mod environment;
mod failure;
mod heard;
mod incoming;
mod names;
mod options;
mod outgoing;
mod record;
mod reference;
mod said;
mod socket;
mod tag;
mod watch;

use pyo3::prelude::*;

/// What `ciel` needs of native code: a connection to the engine, and names.
#[pymodule(name = "_native", gil_used = true)]
mod native {
    #[pymodule_export]
    use crate::connection::Connection;
    #[pymodule_export]
    use crate::environment::tell_seed;
    #[pymodule_export]
    use crate::failure::{Failure, Frame};
    #[pymodule_export]
    use crate::heard::{
        Answer, Cancel, Drop, Hello, Observation, Observed, Opened, Recording, Refusal, Resume,
        Shutdown, Start,
    };
    #[pymodule_export]
    use crate::names::{hash_of, label_of, position_of_root, position_of_spawn, seed_of};
    #[pymodule_export]
    use crate::options::TaskOptions;
    #[pymodule_export]
    use crate::reference::{Failed, File, Pending, Value};
    #[pymodule_export]
    use crate::tag::Tag;
}
