//! The state folder: runs that never share a folder, objects as whole files mapped read-only,
//! scratch files of task attempts, and spilled output.
//!
//! It does not know tasks, references or why anybody wants an object: names are plain numbers.
//! It never follows a symbolic link and never touches a file it did not make. `README.md` beside
//! this crate's code describes the layout on disk. Read next: [`folder`], [`run`], [`objects`].

mod budget;
mod content;
mod digests;
mod directory;
mod disk;
pub mod error;
pub mod folder;
pub mod limits;
pub mod network;
pub mod objects;
mod owner;
pub mod run;
pub mod scratch;
pub mod spill;

pub use budget::Budget;
pub use error::StoreError;
pub use folder::{Cleaned, Cleaning, RunEntry, RunState, StateFolder};
pub use objects::{LostObject, Mapped, Object, ObjectName, Objects};
pub use run::{HeldRun, RunFolder};
pub use scratch::Scratch;
pub use spill::{Extent, SpillFiles};
