//! Results that are kept across runs, in one folder that many processes use at once.
//!
//! An entry says what a task gave, under a key of all that determines it; bytes that are too many
//! for the index lie beside it as objects, files named by their digests. An archive carries entries
//! and objects elsewhere. It does not know tasks, runs or executors: whoever keeps a result says
//! what its key is made of. Read next: [`entry`], then [`store`].

pub mod archive;
pub mod carry;
pub mod entry;
mod error;
mod eviction;
mod files;
mod holdings;
pub mod identities;
mod in_row;
pub mod limits;
mod objects;
mod pending;
mod schema;
pub mod selection;
pub mod shared;
mod staging;
pub mod store;
mod writing;

pub use carry::{Destination, Packed, Unpacked};
pub use entry::{Entry, Input, KeptContent, KeptOutput, Parts, Printed};
pub use error::KeptError;
pub use eviction::{Evicted, Removed};
pub use identities::{Identities, IdentityNote, IdentityWriter, TaskIdentity};
pub use pending::Notes;
pub use selection::{Chosen, Selection};
pub use shared::{SharedFound, SharedResults};
pub use store::{Ended, Found, KeptResults, Usage};
