//! The command line of the tools: `cargo run -p xtask -- help`.
//!
//! It knows the names of the tools and nothing of their work; read `lib.rs` next.

use anyhow::{Result, bail};
use xtask::{generate, vectors};

const HELP: &str = "\
generate          write the wire types of ciel-protocol from protocol/executor.proto
generate --check  fail if they are not fresh
vectors           add the bytes to those files of protocol/vectors that have none yet";

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["generate"] => generate::write(),
        ["generate", "--check"] => generate::check(),
        ["vectors"] => vectors::complete().map(|names| names.iter().for_each(|n| println!("{n}"))),
        [] | ["help" | "--help"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => bail!("unknown words {words:?}; these are known:\n{HELP}"),
    }
}
