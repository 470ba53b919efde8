//! What it takes to start: a job of one line, beside a program that does nothing.

use anyhow::Result;

use crate::Effort;
use crate::figure::{Figure, Goal};
use crate::job::Ciel;
use crate::process::Launch;

/// How many starts make a round.
const STARTS: u32 = 10;

const HELLO: &str = "return \"hello\";\n";

/// Milliseconds of a whole process, and how many times those of `/bin/true` they are.
///
/// # Errors
/// If a process fails.
pub fn measure(ciel: &Ciel, effort: Effort) -> Result<Vec<Figure>> {
    let nothing = Launch::new(["/bin/true"])?;
    let hello = ciel.job("hello", HELLO, &[], &[])?;
    hello.run("\"hello\"")?;
    let (mut bare_ms, mut ciel_ms) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds * STARTS {
        bare_ms.push(nothing.run()?.elapsed.as_secs_f64() * 1e3);
        ciel_ms.push(hello.run("\"hello\"")?.elapsed.as_secs_f64() * 1e3);
    }
    let bare = Figure::of_rounds("start of /bin/true", "ms", Goal::None, bare_ms);
    let hello = Figure::of_rounds("ciel run hello.sw", "ms", Goal::AtMost(20.0), ciel_ms);
    let ratio = hello.ratio("ciel run hello.sw to /bin/true", Goal::None, &bare);
    Ok(vec![bare, hello, ratio])
}
