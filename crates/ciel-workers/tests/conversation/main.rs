//! The conversation with a worker: what each message leads to, in every state of its task.

#![allow(missing_docs)]

mod course;
mod fuzz;
mod limits;
mod messages;
mod prefetch;
mod slots;
mod table;
mod words;
mod world;
