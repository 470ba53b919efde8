//! The locks of strands. The model check, a test of this crate, puts others in their place, which
//! try many orders.

pub(crate) use std::sync::{Mutex, MutexGuard};
