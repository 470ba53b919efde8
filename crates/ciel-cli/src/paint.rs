//! Colours of messages, where they are wanted.
//!
//! It does not know the texts.

use std::io::{self, IsTerminal};

use ciel_model::Label;
use clap::ValueEnum;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    Auto,
    Always,
    Never,
}

/// Colours for the tags of tasks: terminal codes that are legible on light and dark.
const TAG_CODES: [&str; 6] = ["36", "35", "34", "33", "32", "96"];

/// Puts colours on words, or not.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Whether there are colours.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// What went wrong.
    pub fn error(self, text: &str) -> String {
        self.with("31", text)
    }

    /// What may be odd.
    pub fn warning(self, text: &str) -> String {
        self.with("33", text)
    }

    /// What went well.
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// What to do.
    pub fn hint(self, text: &str) -> String {
        self.with("36", text)
    }

    /// What matters most.
    pub fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    /// What matters least.
    pub fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// `[sort@3f9c12ab]`; a task keeps its colour.
    pub fn tag(self, task: &Label) -> String {
        let code = TAG_CODES[(task.name.0 % TAG_CODES.len() as u128) as usize];
        self.with(code, &format!("[{task}]"))
    }

    fn with(self, code: &str, text: &str) -> String {
        match self.on {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_string(),
        }
    }
}

/// Colours for standard error.
pub fn paint_errors(colour: Colour) -> Paint {
    paint(colour, io::stderr().is_terminal())
}

/// Colours for standard output.
pub fn paint_output(colour: Colour) -> Paint {
    paint(colour, io::stdout().is_terminal())
}

fn paint(colour: Colour, terminal: bool) -> Paint {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    let on = match colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => terminal && !dumb && !is_set("NO_COLOR"),
    };
    Paint { on }
}
