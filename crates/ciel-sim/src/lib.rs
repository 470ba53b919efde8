//! The world for tests: the production machines in virtual time, under seeds and faults.
//!
//! A [`Scenario`] is a program (tasks that print, spawn, ask, fail), a machine, a policy and
//! faults at times. [`World`] runs it: the engine is the real one, driven as the runtime drives it;
//! processes, workers and the clock are simulated. The [`oracle`] runs the
//! same program by plain recursion, which is the serial program, and [`judge`] compares the two.
//! [`SitesWorld`] runs it at three sites, over a network that loses, repeats and reorders frames.
//!
//! It does not know sockets, threads or real time, and nothing in production depends on it. Read
//! next: [`program`], then [`world`].

mod ahead;
mod begun;
mod copies;
mod crash;
pub mod driver;
mod entry;
mod faults;
pub mod generate;
mod giving_back;
pub mod growth;
mod in_place;
pub mod judge;
mod kept;
mod line;
mod locals;
pub mod memory;
pub mod notation;
mod open_streams;
pub mod oracle;
pub mod program;
pub mod random;
mod results;
mod room;
mod row;
pub mod script;
mod setup;
pub mod shrink;
pub mod sites;
mod streams;
mod summaries;
mod taken;
pub mod told;
pub mod trace;
pub mod world;

pub use judge::{Disagreement, run, run_at_sites};
pub use program::Scenario;
pub use sites::{SitesMet, SitesWorld};
pub use world::World;
