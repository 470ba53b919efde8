//! The state folder: runs that never share a folder, objects behind one door, scratch files of task
//! attempts, and spilled output.
//!
//! It does not know tasks, references or the purpose of an object: names are plain numbers. It
//! never follows a symbolic link and never touches a file that it did not create. `README.md`
//! beside this crate's code describes the layout on disk. Read next: [`store`], the door to
//! objects, [`folder`], [`run`].

mod archive;
mod budget;
mod closed_pipes;
mod content;
mod counts;
mod digests;
mod directory;
mod disk;
pub mod error;
pub mod folder;
mod idle_cores;
mod killed;
mod lease;
pub mod limits;
pub mod memory;
mod memory_folder;
mod memory_room;
mod memory_use;
pub mod network;
pub mod objects;
mod opened_pipes;
mod owner;
mod partial;
mod ranges;
mod recycled;
mod removals;
mod retained;
pub mod run;
pub mod scratch;
mod spares;
pub mod spill;
pub mod store;
mod stream_memory;
mod unfinished;
pub mod values;
mod watch_groups;
mod write_back;

pub use budget::Budget;
pub use closed_pipes::ClosedPipes;
pub use counts::{Counts, Kind, Traffic};
pub use digests::{Digests, Part};
pub use error::StoreError;
pub use folder::{Cleaned, Cleaning, RunEntry, RunState, StateFolder};
pub use idle_cores::SharedIdleCores;
pub use memory::MemoryObjects;
pub use memory_folder::{MemoryUse, forget as forget_memory};
pub use memory_room::{default_memory, group_memory};
pub use objects::FileObjects;
pub use opened_pipes::OpenedPipes;
pub use partial::PartialStreams;
pub use ranges::Ranges;
pub use removals::watch_removals;
pub use run::{HeldRun, RunFolder};
pub use scratch::Scratch;
pub use spill::SpillFiles;
pub use store::{Draft, ObjectStore};
pub use unfinished::Written;
pub use values::{Extent, Location, LostObject, Object, ObjectName, Place};
