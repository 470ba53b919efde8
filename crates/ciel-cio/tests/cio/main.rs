//! Whole files: written by random programs, read, flattened, cut, changed, and read by others.

#![allow(missing_docs)]

mod damage;
mod files;
mod page;
mod python;
mod support;
mod vectors;
