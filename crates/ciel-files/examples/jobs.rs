//! Many tiny jobs, each of which starts a command and appends what it prints, in their order.
//!
//! `jobs --output FILE [--threads N] [--count C] [--serial]` prints the seconds it took. It is what
//! `parallel -k` does. Read next: bench/ordered.

mod common;

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use ciel_files::{AppendTo, File, Mode};
use common::Arguments;
use rayon::prelude::*;

fn job(number: u32, mut to: &File) -> io::Result<()> {
    let mut command = Command::new("/bin/echo");
    command.arg(number.to_string()).stderr(Stdio::inherit());
    to.write_all(&command.output()?.stdout)
}

fn run(arguments: &Arguments) -> io::Result<()> {
    let count: u32 = arguments.number("count", 500);
    let file = File::create(arguments.path("output"), Mode::SerialAppend)?;
    match arguments.is_serial() {
        true => (0..count).try_for_each(|number| job(number, &file))?,
        false => (0..count)
            .into_par_iter()
            .with_max_len(1)
            .append_to(&file, job)?,
    }
    file.close()
}

fn main() {
    let arguments = Arguments::of_command("jobs");
    let pool = arguments.pool();
    let begin = Instant::now();
    if let Err(error) = pool.install(|| run(&arguments)) {
        arguments.refuse(&error.to_string());
    }
    println!("{:.6}", begin.elapsed().as_secs_f64());
}
