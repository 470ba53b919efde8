//! Sentences of the pages about tasks, order, waiting, failures and recovery, each tried as by a
//! reader.
//!
//! Most sentences of those pages are tested where their subject is; these had no test. Those about
//! Python are in `sdk/python/tests/test_promises.py`. Read first: `support`.

#[path = "../support/mod.rs"]
mod support;

mod children;
mod failures;
mod order;
mod recovery;
mod waiting;
