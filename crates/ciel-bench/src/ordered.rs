//! Many tiny commands side by side, with their output in serial order: `ciel ordered` beside GNU
//! parallel, and beside the same shell loop without order.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::Effort;
use crate::figure::{Figure, Goal};
use crate::job::Ciel;
use crate::process::{Launch, Spent};

/// Commands in a round.
const COMMANDS: u64 = 1000;

/// Starts a program for each number, all side by side.
const LOOP: &str = "i=0; while [ $i -lt $0 ]; do i=$((i + 1)); /bin/echo $i & done; wait";

/// Milliseconds a command, of each way, and how many times less ours takes.
///
/// # Errors
/// If a process fails, or output is not in order.
pub fn measure(ciel: &Ciel, effort: Effort) -> Result<Vec<Figure>> {
    let count = COMMANDS / effort.divisor;
    let number = count.to_string();
    let binary = ciel.binary().as_os_str();
    let bare_words = ["sh", "-c", LOOP, &number].map(Into::into);
    let mut our_words = vec![binary.to_owned(), "ordered".into(), "--".into()];
    our_words.extend(bare_words.clone());
    let peer_words = ["sh", "-c", "seq $0 | parallel -k -j2 /bin/echo", &number];
    let has_peer = Command::new("parallel").arg("--version").output().is_ok();
    let run = |words: &[std::ffi::OsString], is_ordered: bool| -> Result<f64> {
        let path = ciel.folder().join("ordered.out");
        let spent: Spent = Launch::new(words)?.stdout_to(&path)?.start()?.wait()?;
        let expected: String = (1..=count).map(|number| format!("{number}\n")).collect();
        let is_right = !is_ordered || std::fs::read_to_string(&path)? == expected;
        ensure!(is_right, "the output of {words:?} is not in order");
        Ok(spent.elapsed.as_secs_f64() * 1e3 / count as f64)
    };
    let (mut bare, mut ours, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        bare.push(run(&bare_words, false)?);
        ours.push(run(&our_words, true)?);
        if has_peer {
            peer.push(run(&peer_words.map(Into::into), true)?);
        }
    }
    let of_rounds = |name: &str, rounds| Figure::of_rounds(name, "ms each", Goal::None, rounds);
    let bare = of_rounds("`/bin/echo &` in sh, no order", bare);
    let ours = of_rounds("`/bin/echo &` in sh, ciel ordered", ours);
    let mut figures = vec![ours.ratio("ciel ordered to sh without order", Goal::None, &bare)];
    if has_peer {
        let peer = of_rounds("`/bin/echo`, parallel -k", peer);
        figures.push(peer.ratio("parallel -k to ciel ordered", Goal::AtLeast(10.0), &ours));
        figures.insert(0, peer);
    }
    figures.splice(0..0, [bare, ours]);
    Ok(figures)
}
