//! Random programs whose tasks append to several files and print, compared with the serial program:
//! undisturbed, and with the engine killed and resumed while somebody follows the files.

use std::time::{Duration, Instant};

use crate::support::random::{Random, first_seed};
use crate::support::{Ended, Place};

/// Programs that run undisturbed in each way.
const PROGRAMS: u64 = 6;

/// Programs that are killed until they have ended.
const KILLED: u64 = 8;

/// Kills of one program.
const KILLS_MAX: u32 = 4;

const NAMES: [&str; 3] = ["one", "two", "three"];
const MODES: [&[&str]; 4] = [&["--serial"], &["-j1"], &["-j2"], &["-j4"]];

/// A script, and what the serial program writes.
#[derive(Default)]
struct Program {
    functions: String,
    nodes: u64,
    shown: String,
    files: [String; 3],
}

impl Program {
    fn new(seed: u64) -> Program {
        let mut program = Program::default();
        program.node(&mut Random::new(seed), 4);
        program
    }

    fn script(&self) -> String {
        format!("{}\nreturn *spawn(node0, []);", self.functions)
    }

    /// Adds a function with what it calls; gives its number.
    fn node(&mut self, random: &mut Random, depth: u64) -> u64 {
        let node = self.nodes;
        self.nodes += 1;
        let mut body = String::new();
        let mut waited = String::new();
        for event in 0..1 + random.below(5) {
            let text = format!("{node}.{event};");
            let file = random.below(3) as usize;
            match random.below(6) {
                0 => {
                    body += &format!("print(\"{text}\"); ");
                    self.shown += &format!("{text}\n");
                }
                1 | 2 => {
                    body += &format!("append(\"{}\", \"{text}\"); ", NAMES[file]);
                    self.files[file] += &text;
                }
                3 => {
                    body += &self.command(random, file, &text);
                    waited += &format!("len(text({})); ", variable(&text));
                }
                _ if depth > 0 => {
                    let child = self.node(random, depth - 1);
                    body += &format!("n{child} = spawn(node{child}, []); ");
                    waited += &format!("total = total + *n{child}; ");
                }
                _ => {}
            }
        }
        let function =
            format!("function node{node}() {{ total = 1; {body} {waited} return total; }}\n");
        self.functions = function + &self.functions;
        node
    }

    /// A command that prints and appends, after a moment.
    fn command(&mut self, random: &mut Random, file: usize, text: &str) -> String {
        let other = (file + 1) % NAMES.len();
        let pause = random.below(20);
        self.files[file] += &format!("{text}\n");
        self.files[other] += "-";
        let variable = variable(text);
        let command = format!("sleep 0.0{pause:02}; printf - >&{{b}}; echo '{text}' >&{{a}}");
        let appends = format!(
            "{{\"a\": \"{}\", \"b\": \"{}\"}}",
            NAMES[file], NAMES[other]
        );
        format!(
            "{variable} = spawn_exec(\"shell\", {{\"command\": \"{command}\", \
             \"appends\": {appends}}}, 1, {{\"pure\": false}})[0]; "
        )
    }

    fn expect(&self, place: &Place, ended: &Ended, about: &str) {
        let about = format!("{about}\n{}\n{}", ended.stderr, self.script());
        assert_eq!(ended.code, Some(0), "{about}");
        let shown = format!("{}{}\n", self.shown, self.nodes);
        assert_eq!(ended.stdout, shown, "{about}");
        self.expect_files(place, &about, |found, whole| found == whole);
    }

    /// Looks at the files again and again for that time: each has a prefix.
    fn follow(&self, place: &Place, time: Duration, about: &str) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.expect_files(place, about, |found, whole| whole.starts_with(found));
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }

    fn expect_files(&self, place: &Place, about: &str, holds: impl Fn(&str, &str) -> bool) {
        for (name, whole) in NAMES.iter().zip(&self.files) {
            let found = place.read(name);
            assert!(holds(&found, whole), "{name}: {found}\n{about}");
        }
    }
}

/// The variable for the result of the command that writes a text.
fn variable(text: &str) -> String {
    format!("c{}", text.replace(['.', ';'], "_"))
}

#[test]
fn random_programs_append_what_the_serial_program_does() {
    for seed in first_seed()..first_seed() + PROGRAMS {
        let program = Program::new(seed);
        for mode in MODES {
            let place = Place::new();
            let ended = place.script(&[&["-q"], mode].concat(), &program.script());
            program.expect(&place, &ended, &format!("seed {seed} {mode:?}"));
        }
    }
}

#[test]
fn random_programs_that_are_killed_and_resumed_append_each_byte_once() {
    let mut kills = 0;
    for seed in first_seed()..first_seed() + KILLED {
        // Half of them take snapshots often, which leave out what was written to the files.
        let log_bytes_min = if seed % 2 == 0 { "2000" } else { "67108864" };
        let place = Place::new().with_variable("CIEL_LOG_BYTES_MIN", log_bytes_min);
        let program = Program::new(seed);
        let mut random = Random::new(seed);
        for round in 0.. {
            let live = place.start_script(&["-q", "-j2"], &program.script());
            if round < KILLS_MAX {
                let lives = Duration::from_millis(2 + random.below(120));
                program.follow(&place, lives, &format!("seed {seed}, start {round}"));
                live.signal("KILL");
            }
            let ended = live.end();
            let about = format!("seed {seed}, start {round}");
            program.expect_files(&place, &about, |found, whole| whole.starts_with(found));
            if ended.signal.is_none() {
                program.expect(&place, &ended, &about);
                break;
            }
            kills += 1;
            place.await_nobody();
        }
    }
    assert!(kills > 0, "no run was killed before it had ended");
}
