//! One page about one run: where its time went, what failed, and what would make it faster.
//!
//! A pure function of the records of a run: [`page`] gives one self-contained HTML document, which
//! needs no network and no script to be read. It does not know where records come from or where
//! the page goes. Read next: `course` (records as phases of time), then `functions`, `activity`,
//! `path` (the folds over them), `page` (their order on the page), `chart` (their drawings).

mod activity;
mod chart;
mod course;
mod families;
mod functions;
mod layers;
mod page;
mod path;
mod rows;
#[cfg(test)]
mod samples;
mod tables;
mod words;

pub use page::{BEGINNING, page};
pub use tables::Logs;
