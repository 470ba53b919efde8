//! Between the heap and bytes: everything that some roots reach, with sharing and cycles.
//!
//! Both ways walk with explicit queues, so depth costs no stack. It does not know what the roots
//! are for. Read next: `encode`, `decode`, and `crate::wire` for the form.

mod check;
mod copy;
mod decode;
mod encode;

pub(crate) use copy::{copy, is_constant};
pub(crate) use decode::{Refusal, decode};
pub(crate) use encode::{Form, encode};
