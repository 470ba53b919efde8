//! What threads share, from the standard library.
//!
//! Tests of this crate put others in its place: the model check locks that try many orders, and the
//! test of plain joins ones that count.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
