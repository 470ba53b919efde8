//! `session`: the root of a session, which its client runs; it is connected from the start.
//!
//! No program can call it. Read next: `workers`.

use std::sync::Arc;

use ciel_model::{Class, Descriptor, Options, Pool};

use super::names::SESSION;

/// The task of a session: it needs no core, and ends when the client ends it.
pub(crate) fn root_descriptor(what: &str) -> Descriptor {
    let class = Class::Pooled(Pool::new(SESSION, 1));
    let mut descriptor = Descriptor::plain(SESSION, class, what, Vec::new());
    let mut options = Options {
        live: true,
        ..Options::default()
    };
    options.resources.millicores = 0;
    descriptor.options = Arc::new(options);
    descriptor
}

/// Whether the worker of that pool is the client of the session.
pub(super) fn is_session(pool: &Pool) -> bool {
    &*pool.executor == SESSION
}
