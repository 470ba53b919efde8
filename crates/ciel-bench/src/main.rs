//! Measures whole processes of Ciel beside bare ones, in one run and by turns.
//!
//! It knows the command `ciel` only as a program; nothing of the engine is linked in. Where to read
//! next: `figure` (what is reported), `process` (how programs are started and timed), `job` (a run
//! of `ciel`), then one module for each group of figures; `bench/README.md` explains what they
//! mean.

mod figure;
mod helper;
mod job;
mod machine;
mod memory;
mod ordered;
mod process;
mod rounds;
mod shells;
mod start;
mod tasks;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};

use crate::figure::Figure;
use crate::job::Ciel;
use crate::machine::Machine;

/// Measures whole processes of Ciel beside bare ones.
#[derive(Debug, Parser)]
#[command(name = "ciel-bench", max_term_width = 100)]
struct Options {
    /// Groups to measure; all if none is named
    groups: Vec<Group>,
    /// The command to measure; by default the one beside this program
    #[arg(long, value_name = "FILE")]
    ciel: Option<PathBuf>,
    /// How often each thing is measured
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    rounds: u32,
    /// A tenth of the work, to see that everything runs
    #[arg(long)]
    quick: bool,
    /// Write the figures as JSON to a file too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A group of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    Start,
    Tasks,
    Shells,
    Rounds,
    Memory,
    Ordered,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// How often.
    rounds: u32,
    /// What sizes are divided by.
    divisor: u64,
}

fn main() -> ExitCode {
    let outcome = match helper::asked(std::env::args_os()) {
        Some(helper) => helper.run(),
        None => measure(&Options::parse()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ciel-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<()> {
    let ciel = Ciel::new(binary(options)?)?;
    let effort = Effort {
        rounds: options.rounds,
        divisor: if options.quick { 10 } else { 1 },
    };
    let machine = Machine::look();
    println!("{machine}");
    println!("{}", figure::heading());
    let mut figures = Vec::new();
    for group in Group::value_variants() {
        if !options.groups.is_empty() && !options.groups.contains(group) {
            continue;
        }
        let measured = measure_group(*group, &ciel, effort)
            .with_context(|| format!("measuring {group:?}").to_lowercase())?;
        measured.iter().for_each(|figure| println!("{figure}"));
        figures.extend(measured);
    }
    println!("load at the end: {}", machine::load());
    if let Some(path) = &options.json {
        let told = figure::json(&machine, &figures);
        std::fs::write(path, format!("{told:#}\n"))
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn measure_group(group: Group, ciel: &Ciel, effort: Effort) -> Result<Vec<Figure>> {
    match group {
        Group::Start => start::measure(ciel, effort),
        Group::Tasks => tasks::measure(ciel, effort),
        Group::Shells => shells::measure(ciel, effort),
        Group::Rounds => rounds::measure(ciel, effort),
        Group::Memory => memory::measure(ciel, effort),
        Group::Ordered => ordered::measure(ciel, effort),
    }
}

fn binary(options: &Options) -> Result<PathBuf> {
    let path = match &options.ciel {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("ciel"),
    };
    std::fs::canonicalize(&path).with_context(|| {
        format!(
            "there is no {}; build it, or name it by --ciel",
            path.display()
        )
    })
}
