//! The machine of one stream: the table of modes, single events, and any order of events.

mod any_order;
mod course;
mod modes;
