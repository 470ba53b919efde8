//! Tests of the front end, through its door only.

mod arbitrary;
mod grammar;
mod include;
mod limits;
mod messages;
mod names;
mod support;
