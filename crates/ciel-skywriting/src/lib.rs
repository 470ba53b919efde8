//! The Skywriting language: lexer, parser, checker, compiler and virtual machine.
//!
//! A script is data until a caller runs it: [`front::check`] turns sources into a checked
//! [`hir::Program`] or into diagnostics; [`Code::compile`](code::Code::compile) turns that into
//! instructions; a [`Machine`](machine::Machine) runs them and is itself a value that can be saved
//! as bytes at every point where it waits. The crate does not know the engine: it asks a
//! [`host::Host`] for spawns like any other language kit would.

pub mod amounts;
pub mod builtins;
pub mod code;
pub mod diagnostic;
pub mod front;
pub mod hir;
pub mod host;
pub mod identity;
pub mod limits;
pub mod machine;
pub mod wire;

mod compiler;
mod lexer;
mod parser;
mod resolve;
mod stdlib;
mod syntax;
mod value;
