//! The C interface of `ciel-files`: files that parallel programs write as their serial elision.
//!
//! Its contract is the header `include/ciel_ordered.h`; a test compares the two. Each function
//! returns as POSIX functions do, -1 or a null pointer with `errno` set, and no panic leaves it.
//! It knows no rule of order. Read next: [`calls`] (files), [`strands`], then [`failure`].

mod calls;
mod descriptors;
mod failure;
mod strands;
mod views;
