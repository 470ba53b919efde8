//! What can be seen of runs: types for the records of tasks, and the folds that read them.
//!
//! `ciel ps`, `why`, `logs`, `runs`, `journal` and `resume` read a state folder through this crate
//! and need no engine. It does not know who executes a run: a live one answers on its control
//! socket, an ended one has left its history. Read next: [`records`], then [`inspect`].

pub mod description;
mod error;
pub mod history;
pub mod inspect;
pub mod journal;
pub mod limits;
pub mod listing;
pub mod records;
pub mod socket;
pub mod trace;
pub mod words;

pub use description::{Durable, GivenOptions, RunDescription, RunEndRecord};
pub use error::ViewError;
