//! The work stealing beneath joins and scopes: rayon's.
//!
//! A test of this crate puts another one in its place, in which a seed decides who runs what when.
//! It does not know strands. Read next: `join`.

pub(crate) use rayon::{Scope, current_thread_index, join, join_context, scope, spawn};
