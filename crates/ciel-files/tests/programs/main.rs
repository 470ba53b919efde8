//! Random fork–join programs write what their serial elision writes, on any number of threads, and
//! in every order in which their strands can take turns; whoever looks meanwhile sees a prefix.

#![allow(dead_code, reason = "the programs serve another test, too")]

mod elision;
mod forced;
mod program;
mod rayon_pools;
