//! Streams of processes: pipes from tasks to tasks, with a file beside each.
//!
//! An open output of a running process is a pipe. Its bytes go directly to the one reader, who has
//! the other end of the same pipe, or else into a file that becomes the object, from which each
//! reader is served (ciel-programming-models, section 6). This module knows neither why a task
//! reads, nor what the graph makes of an end. Read next: `outlet` (the producer's side), `inlet`
//! (the reader's), `joined` (several of those, one behind the other), `onlooker` (who only looks),
//! `misread` (whose command reads what it is to write), `reopened` (whose command opens an input
//! again), `service` (which mode it is), `transfer` (over a connection), `sources` and `data_plane`
//! (what they share).

mod full_pipe;
mod inlet;
mod joined;
mod misread;
mod onlooker;
mod outlet;
mod pouring;
mod reopened;
mod service;
mod transfer;

pub(crate) use inlet::{Attached, Inlet, attach, attach_by_name};
pub(crate) use joined::{Joined, Part};
pub(crate) use onlooker::Onlooker;
pub(crate) use outlet::{Carried, Outlets, Place};
pub(crate) use reopened::{Misuse, Named, Reopening, misused, read_whole};
