//! The journal of a run: a format of checked frames (pure), and a log that is appended to while
//! others work, with snapshots that replace the records before them.
//!
//! It does not know what a payload means, who may open a folder, or why a caller waits. One folder
//! belongs to one journal at a time: the lock of the run must ensure that; this crate does not.
//! `README.md` beside this crate's code describes the format byte by byte. Read next: [`frame`],
//! [`reader`], [`journal`].

pub mod disk;
pub mod error;
mod folder;
pub mod frame;
mod gathering;
mod give_up;
pub mod journal;
pub mod limits;
pub mod memory;
mod open;
pub mod reader;
pub mod recorded;
mod shared;
mod snapshot;
mod threads;
mod writing;

pub use disk::{Disk, DiskFile, RealDisk};
pub use error::JournalError;
pub use frame::Sequence;
pub use journal::{Durability, Growth, Journal, Options, Upkeep};
pub use memory::MemoryDisk;
pub use recorded::{Cut, Recorded, Records};
pub use snapshot::Snapshot;
