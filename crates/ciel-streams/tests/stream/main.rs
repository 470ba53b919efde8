//! The machine of one stream: the table of modes, single events, and any order of events; and the
//! regions of shared memory.

mod any_order;
mod course;
mod modes;
mod regions;
