//! Talking on standard error: lines, and the progress line that makes way for them.
//!
//! When standard output is the same terminal, data goes through here too, so that the two never mix
//! within a line. It does not know the texts.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The two streams of this process as far as they share a terminal.
pub struct Talk {
    /// Whether there may be a progress line.
    progress: bool,
    bar: Option<ProgressBar>,
    /// Standard output has left the cursor within a line of the terminal.
    within_line: bool,
}

impl Talk {
    /// With `progress` there is a progress line where standard error is a terminal.
    pub fn new(progress: bool) -> Talk {
        Talk {
            progress: progress && io::stderr().is_terminal(),
            bar: None,
            within_line: false,
        }
    }

    /// Whether there may be a progress line.
    pub fn shows_progress(&self) -> bool {
        self.progress
    }

    /// Writes data to standard output, which is a terminal.
    pub fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        let ends_line = bytes.last().is_none_or(|byte| *byte == b'\n');
        if !ends_line {
            self.clear();
        }
        self.within_line = !ends_line;
        self.aside(|| {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        })
    }

    /// Prints whole lines on standard error. Errors of the write are ignored.
    pub fn say(&mut self, bytes: &[u8]) {
        let breaks = self.within_line && io::stderr().is_terminal();
        self.within_line &= !breaks;
        self.aside(|| {
            let mut stderr = io::stderr().lock();
            let begun = if breaks {
                stderr.write_all(b"\n")
            } else {
                Ok(())
            };
            let _ = begun.and_then(|()| stderr.write_all(bytes));
        });
    }

    /// Shows the progress of the job, unless the cursor is needed elsewhere.
    pub fn progress(&mut self, line: &str) {
        if !self.progress || self.within_line {
            return;
        }
        let bar = self.bar.get_or_insert_with(new_bar);
        bar.set_message(line.to_string());
    }

    /// Takes the progress line away.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Does something while the progress line is hidden.
    fn aside<T>(&mut self, act: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(act),
            None => act(),
        }
    }
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{wide_msg}");
    bar.with_style(style.expect("the template is well formed"))
}
