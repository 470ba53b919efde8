//! Machines as bytes: at every point where a program waits, resumed twice, also elsewhere.

mod machine_support;

use ciel_skywriting::code::Code;
use ciel_skywriting::host::{Answer, Handle, Host, References, SpawnRequest};
use ciel_skywriting::machine::{Machine, Returned, Role, ScriptEnvironment, Step};
use ciel_skywriting::wire::LoadError;
use machine_support::{compile, surroundings};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Each waits several times, for references whose answers are integers.
const PROGRAMS: [&str; 18] = [
    "return *spawn(f) + *spawn(f) * 2;",
    "total = 0; for (i in range(3)) { total += *spawn(f); } return total;",
    "l = [spawn(f), spawn(f)]; for (r in l) { for (c in \"ab\") { if (*r > 1) { print(c, *r); } \
        } } return l;",
    "function g(n) { if (n == 0) { return *spawn(f) + 0; } return g(n - 1) + *spawn(f); } return \
        g(3);",
    "try { x = *spawn(f); throw [x, *spawn(f)]; } catch (e) { return [e.value, *spawn(f)]; }",
    "d = {\"a\": *spawn(f), \"b\": {}}; d.b.c = *spawn(f); d.b.c += *spawn(f); return d;",
    "shared = [1]; g = lambda x: x + shared[0]; shared[0] = 5; return [g(*spawn(f)), shared, \
        shared];",
    "function even(n) { if (n == 0) { return *spawn(f) > 0; } return odd(n - 1); }
     function odd(n) { if (n == 0) { return false; } return even(n - 1); } return even(4);",
    "s = \"\"; for (i in range(4)) { s += str(*spawn(f)) + \
        \"--------------------------------------------\"; t = s; }
     return [s, t, s == t];",
    "n = 99999999999999999999; do { n = n * 10 + *spawn(f); } while (n < \
        99999999999999999999999); return n;",
    "x = []; x += x; y = *spawn(f); x += y; return [len(x), x[0][1], *spawn(f)];",
    "function make() { c = 0; return lambda: 7; } h = make(); a = *spawn(f); return sort([h(), \
        a, *spawn(f)]);",
    "function bad() { return 1 / 0; } for (i in range(2)) { try { x = *spawn(f) + 1; bad(); } \
        catch (e) { k = e.kind; } } return [k, i];",
    "r = spawn(f); x = *r; y = x; z = *r; return [is_error(r), x + y, min(z, 2.5), argv(0), \
        str(x)];",
    "d = {}; for (i in range(12)) { d[i] = *spawn(f); } remove(d, 3); \
        x = remove(d, *spawn(f) - 8); d[3] = x; for (k in d) { remove(d, k); \
        d[str(k)] = *spawn(f) + 0; } return d;",
    "l = range(9)[*spawn(f):-2]; s = \"grüße\"[1:*spawn(f)]; remove(l, 0); \
        return [l, s, find(l, *spawn(f)), find(s, \"ü\")];",
    "t = format(\"{:>4}|{x:.1}|{}\", {\"x\": *spawn(f)}, *spawn(f)); g = format; \
        return [g(\"{{{}}}\", t), upper(t + str(*spawn(f))), replace(t, \"|\", \"-\")];",
    "j = to_json({\"a\": [*spawn(f), null]}); g = from_json; x = glob(\"*.csv\"); \
        return [g(j).a[0] + *spawn(f), j, x + 1, trim(\" a \"), starts_with(j, \"{\")];",
];

/// Answers every reference with its own number plus one, and keeps what is printed.
#[derive(Default, Clone, PartialEq, Debug)]
struct Lines(Vec<String>);

impl Host for Lines {
    fn spawn(&mut self, _request: SpawnRequest) {}

    fn print(&mut self, _actions: u64, line: &str) {
        self.0.push(line.to_owned());
    }
}

/// A machine with the numbers that its references had at the start.
struct Running {
    machine: Machine,
    original: Vec<u32>,
    lines: Lines,
    waits: Vec<Handle>,
}

impl Running {
    fn start(code: &Arc<Code>) -> Running {
        let machine = Machine::for_script(Arc::clone(code), Arc::new(surroundings()));
        Running {
            machine,
            original: vec![],
            lines: Lines::default(),
            waits: vec![],
        }
    }

    /// Runs to the next wait; returns the result at the end.
    fn step(&mut self) -> Option<Result<serde_json::Value, String>> {
        for handle in std::mem::take(&mut self.waits) {
            let text = (self.original[handle.0 as usize] + 1).to_string();
            let bytes = text.into();
            self.machine.answer(
                handle,
                Answer::Json {
                    bytes,
                    references: References::NONE,
                },
            );
        }
        let step = self.machine.run(&mut self.lines, 100_000);
        let mut next = self.original.iter().max().map_or(0, |most| most + 1);
        while self.original.len() < self.machine.references() {
            self.original.push(next);
            next += 1;
        }
        match step {
            Step::Blocked { on } => {
                self.waits = on;
                None
            }
            Step::Finished(ended) => match ended.value {
                Returned::Json(value) => Some(Ok(value)),
                other => panic!("a root gives JSON, not {other:?}"),
            },
            Step::Failed { thrown, .. } => Some(Err(thrown.message)),
            Step::Cancels { .. } => panic!("the program cancels nothing"),
            Step::Preempted | Step::NeedsHost => panic!("the program is short"),
        }
    }

    fn finish(mut self) -> (Result<serde_json::Value, String>, Lines) {
        loop {
            if let Some(result) = self.step() {
                return (result, self.lines);
            }
        }
    }

    /// Bytes for another process: the references' numbers, what it waits for, and the machine.
    fn packed(&mut self) -> Vec<u8> {
        let saved = self.machine.save();
        let original: Vec<u32> = saved
            .references
            .iter()
            .map(|handle| self.original[handle.0 as usize])
            .collect();
        let waits: Vec<u32> = self
            .waits
            .iter()
            .map(|wait| saved.references.iter().position(|h| h == wait).unwrap() as u32)
            .collect();
        postcard::to_stdvec(&(original, waits, &self.lines.0, saved.bytes)).unwrap()
    }

    fn unpacked(code: &Arc<Code>, packed: &[u8]) -> Running {
        let (original, waits, lines, bytes): (Vec<u32>, Vec<u32>, Vec<String>, Vec<u8>) =
            postcard::from_bytes(packed).unwrap();
        let machine =
            Machine::load(Arc::clone(code), &bytes, Arc::new(surroundings())).expect("it loads");
        let waits = waits.into_iter().map(Handle).collect();
        Running {
            machine,
            original,
            lines: Lines(lines),
            waits,
        }
    }
}

fn source(program: &str) -> String {
    format!("f = lambda: 1; {program}")
}

#[test]
fn every_wait_of_every_program_is_resumed_twice_from_the_same_bytes() {
    for program in PROGRAMS {
        let code = compile(&source(program));
        let expected = Running::start(&code).finish();
        let mut running = Running::start(&code);
        let mut waits = 0;
        while running.step().is_none() {
            waits += 1;
            let packed = running.packed();
            for _ in 0..2 {
                let resumed = Running::unpacked(&code, &packed).finish();
                assert_eq!(resumed, expected, "wait {waits} of {program}");
            }
            // The saved machine continues as well, and saves the same bytes.
            assert_eq!(running.packed(), packed, "{program}");
        }
        assert!(waits > 0, "{program} never waits");
        assert!(expected.0.is_ok(), "{program}: {expected:?}");
    }
}

/// The name under which the child process runs [`child_resumes_what_comes_in_on_its_input`].
const CHILD: &str = "CIEL_SKYWRITING_TEST_CHILD";

/// How often each saved machine is resumed there.
const TIMES: usize = 2;

/// The machine as bytes at each of its waits.
fn saved_at_every_wait(code: &Arc<Code>) -> Vec<Vec<u8>> {
    let mut running = Running::start(code);
    let mut saved = Vec::new();
    while running.step().is_none() {
        saved.push(running.packed());
    }
    saved
}

/// What another process prints when it resumes `saved` machines of that program.
fn resumed_elsewhere(number: usize, saved: &[Vec<u8>]) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "child_resumes_what_comes_in_on_its_input",
            "--exact",
            "--nocapture",
        ])
        .env(CHILD, number.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let packed = postcard::to_stdvec(saved).unwrap();
    child.stdin.take().unwrap().write_all(&packed).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn resumed_line(wait: usize, time: usize, result: &impl std::fmt::Debug) -> String {
    format!("wait {wait} time {time} resumed: {result:?}")
}

#[test]
fn every_wait_of_every_program_is_resumed_twice_in_another_process() {
    for (number, program) in PROGRAMS.iter().enumerate() {
        let code = compile(&source(program));
        let expected = Running::start(&code).finish();
        let saved = saved_at_every_wait(&code);
        assert!(!saved.is_empty(), "{program} never waits");
        let text = resumed_elsewhere(number, &saved);
        for wait in 0..saved.len() {
            for time in 0..TIMES {
                let wanted = resumed_line(wait, time, &expected);
                assert!(
                    text.lines().any(|line| line.ends_with(&wanted)),
                    "{program}\nwanted {wanted}\nin {text}"
                );
            }
        }
    }
}

#[test]
fn child_resumes_what_comes_in_on_its_input() {
    let Ok(number) = std::env::var(CHILD) else {
        return;
    };
    let code = compile(&source(PROGRAMS[number.parse::<usize>().unwrap()]));
    let mut packed = Vec::new();
    std::io::stdin().read_to_end(&mut packed).unwrap();
    let saved: Vec<Vec<u8>> = postcard::from_bytes(&packed).unwrap();
    for (wait, saved) in saved.iter().enumerate() {
        for time in 0..TIMES {
            let resumed = Running::unpacked(&code, saved).finish();
            println!("{}", resumed_line(wait, time, &resumed));
        }
    }
}

#[test]
fn bytes_of_another_program_are_refused() {
    let code = compile(&source(PROGRAMS[0]));
    let mut running = Running::start(&code);
    running.step();
    let saved = running.machine.save();
    let other = compile(&source(PROGRAMS[1]));
    let refused = Machine::load(Arc::clone(&other), &saved.bytes, Arc::default());
    let expected = LoadError::OtherProgram {
        expected: other.hash(),
        found: code.hash(),
    };
    assert_eq!(refused.err(), Some(expected));
    let mut newer = saved.bytes.clone();
    newer[0] = 9;
    let refused = Machine::load(code, &newer, Arc::default()).err();
    assert_eq!(refused, Some(LoadError::OtherVersion { found: 9 }));
}

#[test]
fn comments_and_layout_do_not_change_the_identity_of_a_program() {
    let code = compile("x = 1; return x;");
    assert_eq!(
        compile("// A comment.\nx = 1;\n  return x;").hash(),
        code.hash()
    );
    assert_ne!(compile("x = 2; return x;").hash(), code.hash());
}

#[test]
fn a_waiting_machine_is_small() {
    let code = compile("function g(n) { return *spawn(f) + n; } f = lambda: 1; return g(1) + 2;");
    let mut running = Running::start(&code);
    assert!(running.step().is_none());
    let bytes = running.machine.save().bytes.len();
    assert!(bytes < 160, "{bytes} bytes");
}

#[test]
fn a_driver_that_loops_and_forgets_stays_small() {
    let code =
        compile("f = lambda x: x; x = 0; while (x < 2000) { x = *spawn(f, [x]) + 1; } return x;");
    let surroundings = ScriptEnvironment {
        role: Role::Job,
        ..ScriptEnvironment::default()
    };
    let mut machine = Machine::for_script(code, Arc::new(surroundings));
    let (mut most, mut round) = (0, 0);
    let result = loop {
        match machine.run(&mut Lines::default(), 10_000) {
            Step::Blocked { on } => {
                let [mut wait] = on[..] else {
                    panic!("one wait at a time: {on:?}")
                };
                if let Some(compacted) = machine.compact(false) {
                    wait = Handle(compacted.kept.iter().position(|h| *h == wait).unwrap() as u32);
                }
                most = most.max(machine.references());
                let bytes = round.to_string().into();
                machine.answer(
                    wait,
                    Answer::Json {
                        bytes,
                        references: References::NONE,
                    },
                );
                round += 1;
            }
            Step::Finished(ended) => break ended.value,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(result, Returned::Json(2000.into()));
    assert!(most <= 70, "{most} references");
}

fn sample_bytes() -> (Arc<Code>, Vec<u8>, Vec<u8>) {
    let code = compile(&source(PROGRAMS[6]));
    let mut running = Running::start(&code);
    running.step();
    let saved = running.machine.save().bytes;
    let spawns =
        compile("f = lambda x, y: x; b = [1, {\"k\": [2.5, \"text\"]}]; spawn(f, [b, [b]]);");
    let mut host = Keep::default();
    Machine::for_script(Arc::clone(&spawns), Arc::default()).run(&mut host, 1000);
    (code, saved, host.0.unwrap())
}

/// Keeps the bytes of the last call.
#[derive(Default)]
struct Keep(Option<Vec<u8>>);

impl Host for Keep {
    fn spawn(&mut self, request: SpawnRequest) {
        if let ciel_skywriting::host::Work::Call(bytes) = request.work {
            self.0 = Some(bytes);
        }
    }

    fn print(&mut self, _actions: u64, _line: &str) {}
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_bytes_are_refused_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let code = compile("return 1;");
        prop_assert!(Machine::load(Arc::clone(&code), &bytes, Arc::default()).is_err());
        let _ = Machine::for_call(code, &bytes, 3, Arc::default());
        let _ = ciel_skywriting::wire::to_json(&bytes);
        let _ = ciel_skywriting::wire::from_json(&bytes);
    }

    #[test]
    fn changed_bytes_are_refused_or_harmless(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let (code, saved, call) = sample_bytes();
        let mut damaged = saved.clone();
        for (at, byte) in &changes {
            *at.get_mut(&mut damaged) = *byte;
        }
        if damaged != saved {
            prop_assert!(Machine::load(Arc::clone(&code), &damaged, Arc::default()).is_err());
        }
        let short = &saved[..cut.index(saved.len())];
        prop_assert!(Machine::load(code, short, Arc::default()).is_err());
        let spawns = compile("f = lambda x, y: x; b = [1, {\"k\": [2.5, \"text\"]}]; spawn(f, \
            [b, [b]]);");
        let mut damaged = call.clone();
        for (at, byte) in &changes {
            *at.get_mut(&mut damaged) = *byte;
        }
        if let Ok(mut machine) = Machine::for_call(spawns, &damaged, 1, Arc::default()) {
            machine.run(&mut Lines::default(), 1000);
        }
        let _ = ciel_skywriting::wire::to_json(&damaged);
    }
}
