//! Sentences of the pages about waiting, failures and recovery, each tried as its reader would.
//!
//! Most sentences of those pages are tested where their subject is; these had no test. Those about
//! Python are in `sdk/python/tests/test_promises.py`. Read first: `support`.

#[path = "../support/mod.rs"]
mod support;

mod failures;
mod recovery;
mod waiting;
