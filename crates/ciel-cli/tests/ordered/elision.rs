//! Random shell scripts, compared with the same scripts without `&`.
//!
//! The processes of a group end in an order that the seed chooses: each waits at a pipe for the one
//! before it in that order. The script for comparison has neither `&` nor pipes to wait at.

use std::fs;

use super::support::Place;
use super::support::random::{Random, number};
use super::{fifos, may_intercept, ordered, plain};

/// Scripts in the usual run of the tests.
const SCRIPTS: u64 = 40;

/// Most statements of a body, and most levels of groups.
const STATEMENTS_MAX: u64 = 4;
const DEPTH_MAX: u32 = 3;

/// A script being written, in both forms.
struct Writer {
    random: Random,
    parallel: String,
    serial: String,
    gates: u64,
    words: u64,
}

impl Writer {
    fn both(&mut self, text: &str) {
        self.parallel.push_str(text);
        self.serial.push_str(text);
    }

    fn word(&mut self) -> u64 {
        self.words += 1;
        self.words
    }

    fn body(&mut self, depth: u32) {
        for _ in 0..=self.random.below(STATEMENTS_MAX) {
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u32) {
        let word = self.word();
        match self.random.below(if depth == DEPTH_MAX { 9 } else { 12 }) {
            0 => self.both(&format!("echo out{word}\n")),
            1 => self.both(&format!("echo err{word} >&2\n")),
            2 => self.both(&format!("/usr/bin/printf 'program%d\\n' {word}\n")),
            3 => self.both(&format!("echo log{word} >> log\n")),
            4 => self.both(&format!("echo piped{word} | tr a-z A-Z | cat\n")),
            5 => self.both(&format!("sh -c 'echo inner{word}; echo more{word} >&2'\n")),
            6 => self.both(&format!("exec 3>&1; echo third{word} >&3; exec 3>&-\n")),
            7 => self.both(&format!(
                "f() {{ echo function{word}; }}; f; echo $(f) >> log\n"
            )),
            8 => self.both(&format!(
                "{{ echo a{word}; echo b{word} >&2; }} 2>&1 | cat >&2\n"
            )),
            9 => {
                self.both("(\n");
                self.body(depth + 1);
                self.both(")\n");
            }
            _ => self.group(depth),
        }
        if depth == 0 && self.random.below(4) == 0 {
            self.both("cat log 2> /dev/null\n");
        }
    }

    /// Processes side by side, which end in an order of their own.
    fn group(&mut self, depth: u32) {
        let count = 1 + self.random.below(4);
        let mut turns: Vec<u64> = (0..count).collect();
        for at in (1..turns.len()).rev() {
            turns.swap(at, self.random.below(at as u64 + 1) as usize);
        }
        let first_gate = self.gates;
        self.gates += count;
        for member in 0..count {
            let turn = turns.iter().position(|turn| *turn == member).unwrap() as u64;
            self.both("(\n");
            if turn > 0 {
                let gate = first_gate + turn;
                self.parallel.push_str(&format!("read x < gate{gate}\n"));
            }
            self.body(depth + 1);
            if turn + 1 < count {
                let gate = first_gate + turn + 1;
                self.parallel.push_str(&format!("echo > gate{gate}\n"));
            }
            self.parallel.push_str(") &\n");
            self.serial.push_str(")\n");
            if self.random.below(3) == 0 {
                let word = self.word();
                self.both(&format!("echo between{word}\n"));
            }
        }
        // A group that is not waited for keeps running beside what follows.
        if self.random.below(2) == 0 {
            self.parallel.push_str("wait\n");
        }
    }
}

fn script(seed: u64) -> Writer {
    let mut writer = Writer {
        random: Random::new(seed),
        parallel: String::new(),
        serial: String::new(),
        gates: 0,
        words: 0,
    };
    writer.body(0);
    writer.group(0);
    writer
}

fn expect_elision(seed: u64, shell: &str) {
    let script = script(seed);
    let (here, there) = (Place::new(), Place::new());
    let gates: Vec<String> = (0..script.gates)
        .map(|gate| format!("gate{gate}"))
        .collect();
    fifos(&here, &gates);
    here.file("script", &script.parallel);
    there.file("script", &script.serial);
    let found = ordered(&here, &["--file", "log", "--", shell, "script"]);
    let expected = plain(&there, &[shell, "script"]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let about = format!("seed {seed} in {shell}:\n{}", script.parallel);
    assert_eq!(text(&found.stdout), text(&expected.stdout), "{about}");
    assert_eq!(text(&found.stderr), text(&expected.stderr), "{about}");
    let log = |place: &Place| fs::read_to_string(place.path("log")).ok();
    assert_eq!(log(&here), log(&there), "{about}");
}

#[test]
fn random_scripts_print_what_they_would_without_ampersands() {
    if !may_intercept("random_scripts_print_what_they_would_without_ampersands") {
        return;
    }
    let first = number("CIEL_SCRIPT_SEED").unwrap_or(1);
    let count = number("CIEL_SCRIPTS").unwrap_or(SCRIPTS);
    for seed in first..first + count {
        expect_elision(seed, if seed % 2 == 0 { "sh" } else { "bash" });
    }
}
