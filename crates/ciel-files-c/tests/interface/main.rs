//! The C interface as its users meet it: header, hosts, programs, installation and page.
//!
//! All of it compiles programs with the compilers of the machine. Read first: `support`.

mod examples;
mod header;
mod hosts;
mod install;
mod page;
mod support;
