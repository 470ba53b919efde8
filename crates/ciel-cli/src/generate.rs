//! What is generated from the table of options: completions and the manual page.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell as Generator;

use crate::cli_error::CliError;
use crate::display;
use crate::options::{Options, Shell};

/// Prints the completions for a shell.
pub fn completions(shell: Shell) -> Result<ExitCode, CliError> {
    let generator = match shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(generator, &mut Options::command(), "ciel", &mut text);
    display::print(&text)
}

/// Prints the manual page: the command itself, then each of its commands.
pub fn man_page() -> Result<ExitCode, CliError> {
    let mut text = Vec::new();
    let mut command = Options::command();
    command.build();
    let visible = command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set());
    let pages = std::iter::once(command.clone()).chain(visible.cloned());
    for page in pages {
        let rendered = clap_mangen::Man::new(page).render(&mut text);
        rendered
            .and_then(|()| writeln!(text))
            .expect("memory takes every write");
    }
    display::print(&text)
}
