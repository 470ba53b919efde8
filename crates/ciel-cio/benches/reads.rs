//! Random reads.
fn main() {}
