//! Scripts: the front end, and programs that it accepts, run to their end.

use std::sync::Arc;

use ciel_skywriting::code::Code;
use ciel_skywriting::front::{Loader, Problems, check};
use ciel_skywriting::hir::Program;
use ciel_skywriting::host::{Answer, Host, References, SpawnRequest};
use ciel_skywriting::machine::{Machine, Role, ScriptEnvironment, Step};

use super::{files_below, in_repository};
use crate::Target;

/// Whatever the text is, it is checked or answered with messages that can be shown.
pub(super) const CHECKED: Target = Target {
    name: "front end",
    corpus,
    read: |input| match checked(input) {
        Ok(program) => format!("{} functions", program.functions.len()),
        Err(problems) => messages(&problems),
    },
    answers_min: 100,
};

/// Whatever a program does, it ends, waits, fails, or uses up its fuel, twice in the same way.
pub(super) const RUN: Target = Target {
    name: "machine",
    corpus: accepted,
    read: |input| match checked(input) {
        Ok(program) => {
            let code = Arc::new(Code::compile(&program));
            let ended = run(&code);
            assert_eq!(ended, run(&code), "it runs in two ways");
            ended
        }
        Err(_) => "not accepted".to_string(),
    },
    answers_min: 30,
};

/// Bytes of heap that a program may have.
const HEAP_BYTES_MAX: usize = 1 << 20;

/// Instructions that a program may run between two waits.
const FUEL: u64 = 20_000;

/// Characters of a result by which answers differ.
const RESULT_CHARACTERS: usize = 40;

/// Waits of a program at most.
const WAITS_MAX: usize = 20;

/// The scripts of the repository: examples, the standard library, those of tests.
fn corpus() -> Vec<Vec<u8>> {
    let folders = ["examples", "crates/ciel-skywriting"].map(in_repository);
    let files = folders.iter().flat_map(|folder| files_below(folder));
    let scripts = files.filter(|path| path.extension().is_some_and(|extension| extension == "sw"));
    scripts
        .map(|path| std::fs::read(path).expect("a script can be read"))
        .collect()
}

/// Those of them that are right by themselves, and a few that use much of the language.
fn accepted() -> Vec<Vec<u8>> {
    let programs = PROGRAMS.iter().map(|program| program.as_bytes().to_vec());
    let mut all: Vec<Vec<u8>> = programs.chain(corpus()).collect();
    all.retain(|script| checked(script).is_ok());
    assert!(all.len() > PROGRAMS.len(), "the programs are accepted");
    all
}

/// Small programs whose changes are often accepted.
pub(super) const PROGRAMS: [&str; 10] = [
    "f = lambda: 1; total = 0; for (i in range(3)) { total += *spawn(f); } return total;",
    "function g(n) { if (n == 0) { return 1; } return g(n - 1) + *spawn(g, [0]); } return g(3);",
    "try { x = [1, 2]; throw [x, x[5]]; } catch (e) { return [e.value, e.kind]; }",
    "f = lambda: 9; d = {\"a\": *spawn(f), \"b\": {}}; d.b.c = d; d.b.c = 1; return d;",
    "s = \"\"; for (i in range(40)) { s += str(i) + \"-\"; t = s[1:-1]; } return [s, t, s == t];",
    "n = 99999999999999999999; do { n = n * 10 + 1; } while (n < 10 * n && n > 0); return n;",
    "x = []; i = 0; while (i < 50) { x[i] = i * 2; i = i + 1; } remove(x, 3); return sort(x);",
    "t = format(\"{:>4}|{x:.1}|{}\", {\"x\": 2.5}, 7); return [t, upper(t), trim(t)];",
    "j = to_json({\"a\": [1, null, true]}); g = from_json; return [g(j).a[0], j, trim(\" a \")];",
    "g = lambda x: x + 1; r = [g(1), g(2)]; for (k in {\"a\": 1}) { print(k, len(r)); }",
];

struct NoFiles;

impl Loader for NoFiles {
    fn load(&mut self, name: &str, _from: &str) -> Result<(String, Vec<u8>), String> {
        Err(format!("there is no file {name}"))
    }
}

pub(super) fn checked(input: &[u8]) -> Result<Program, Problems> {
    check("job.sw", input, &mut NoFiles)
}

/// The first words of each message, which say what kind it is.
fn messages(problems: &Problems) -> String {
    assert!(!problems.diagnostics.is_empty(), "refused without a reason");
    assert!(problems.render(false).starts_with("error: "));
    assert!(!problems.render(true).is_empty());
    let first = |message: &str| message.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let kinds = problems.diagnostics.iter().take(2);
    let kinds: Vec<String> = kinds.map(|problem| first(&problem.message)).collect();
    kinds.join(" + ")
}

/// A host that prints nowhere and runs nothing.
pub(super) struct Nobody;

impl Host for Nobody {
    fn spawn(&mut self, _request: SpawnRequest) {}

    fn print(&mut self, _actions: u64, _line: &str) {}
}

pub(super) fn environment() -> Arc<ScriptEnvironment> {
    Arc::new(ScriptEnvironment {
        heap_bytes_max: HEAP_BYTES_MAX,
        role: Role::Job,
        ..ScriptEnvironment::default()
    })
}

/// How a program ends if each reference is the number 1.
fn run(code: &Arc<Code>) -> String {
    let machine = Machine::for_script(Arc::clone(code), environment());
    run_on(machine)
}

/// How a machine ends, likewise.
pub(super) fn run_on(mut machine: Machine) -> String {
    for waits in 0..=WAITS_MAX {
        match machine.run(&mut Nobody, FUEL) {
            Step::Finished(ended) => {
                let value = format!("{:?}", ended.value);
                let first: String = value.chars().take(RESULT_CHARACTERS).collect();
                return format!("{first} after {waits} waits");
            }
            Step::Preempted | Step::NeedsHost => return format!("is long after {waits} waits"),
            Step::Failed { thrown, .. } => {
                return format!("{:?} after {waits} waits", thrown.kind);
            }
            Step::Cancels { .. } => machine.cancelled(false),
            Step::Blocked { on } => {
                assert!(!on.is_empty(), "it waits for nothing");
                on.into_iter()
                    .for_each(|handle| machine.answer(handle, one()));
            }
        }
    }
    "waits often".to_string()
}

fn one() -> Answer {
    Answer::Json {
        bytes: b"1".as_slice().into(),
        references: References::NONE,
    }
}
