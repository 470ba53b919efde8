//! The data plane: every mode in every awkward case, within one store and between two; and the
//! parts by themselves.

mod bytes;
mod jitter;
mod killed;
mod matrix;
mod parts;
mod pipes;
mod processes;
mod proxy;
mod tcp;
mod wiring;
