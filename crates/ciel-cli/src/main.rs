//! The command line of Ciel.

fn main() {}
