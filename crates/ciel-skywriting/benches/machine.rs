//! What the machine costs: instructions, calls, and the whole life of a trivial task.
//!
//! The engine's own costs are not in these figures.

use ciel_skywriting::code::Code;
use ciel_skywriting::front::{self, Loader};
use ciel_skywriting::host::{Answer, Handle, Host, Keeping, References, SpawnRequest, Work};
use ciel_skywriting::machine::{Machine, Returned, ScriptEnvironment, Step};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;

struct NoFiles;

impl Loader for NoFiles {
    fn load(&mut self, name: &str, _from: &str) -> Result<(String, Vec<u8>), String> {
        Err(format!("there is no file {name}"))
    }
}

fn compile(source: &str) -> Arc<Code> {
    let program = front::check("bench.sw", source.as_bytes(), &mut NoFiles).expect("it is correct");
    Arc::new(Code::compile(&program))
}

/// Keeps the payloads of calls.
#[derive(Default)]
struct Calls(Vec<Vec<u8>>);

impl Host for Calls {
    fn spawn(&mut self, request: SpawnRequest) {
        if let Work::Call(bytes) = request.work {
            self.0.push(bytes);
        }
    }

    fn print(&mut self, _actions: u64, _line: &str) {}
}

/// Leaves all calls in the machine that spawns them.
struct Keeps;

impl Host for Keeps {
    fn keeping(&mut self, _action: u64) -> Keeping {
        Keeping::Kept
    }

    fn spawn(&mut self, _request: SpawnRequest) {
        unreachable!("nothing is promoted")
    }

    fn print(&mut self, _actions: u64, _line: &str) {}
}

/// Runs to the end and gives the instructions used, to a thousand.
fn instructions(code: &Arc<Code>) -> u64 {
    let mut machine = Machine::for_script(Arc::clone(code), Arc::default());
    let mut turns = 0;
    while machine.run(&mut Calls::default(), 1000) == Step::Preempted {
        turns += 1;
    }
    turns * 1000
}

fn dispatch(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dispatch");
    for (name, source) in [
        (
            "loop",
            "function f() { n = 0; x = 0; while (n < 100000) { x = x + n; n += 1; } return x; } \
                return f();",
        ),
        (
            "list",
            "function f() { l = range(1000); s = 0; for (k in range(100)) { for (x in l) { s += \
                x; } } return s; } return f();",
        ),
        (
            "calls",
            "function fib(n) { if (n < 2) { return n; } return fib(n - 1) + fib(n - 2); } return \
                fib(20);",
        ),
        (
            "floats",
            "function f() { v = range(1000); n = 0; while (n < 100) { i = 0; while (i < 999) { \
                v[i] = 0.5 * v[i] + 0.5 * v[i + 1]; i += 1; } n += 1; } return v[0]; } return f();",
        ),
    ] {
        let code = compile(source);
        group.throughput(Throughput::Elements(instructions(&code)));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut machine = Machine::for_script(Arc::clone(&code), Arc::default());
                black_box(machine.run(&mut Calls::default(), u64::MAX))
            });
        });
    }
    group.finish();
}

/// Spawned functions that nobody else runs, beside the same functions called.
fn in_place(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fib(18)");
    group.throughput(Throughput::Elements(8361));
    for (name, spawned) in [("called", false), ("spawned, in place", true)] {
        let again = |n: &str| match spawned {
            true => format!("*spawn(fib, [{n}])"),
            false => format!("fib({n})"),
        };
        let (one, two) = (again("n - 1"), again("n - 2"));
        let code = compile(&format!(
            "function fib(n) {{ if (n < 2) {{ return n; }} return {one} + {two}; }} return fib(18);"
        ));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut machine = Machine::for_script(Arc::clone(&code), Arc::default());
                black_box(machine.run(&mut Keeps, u64::MAX))
            });
        });
    }
    group.finish();
}

/// One round of a driver: spawn, run the child, answer, dereference.
fn tasks(criterion: &mut Criterion) {
    const TASKS: u64 = 1000;
    let code = compile(
        "f = lambda n: n + 1; x = 0; while (true) { x = *spawn(f, [x]); if (x == -1) { x = 0; } }",
    );
    let surroundings: Arc<ScriptEnvironment> = Arc::default();
    let mut group = criterion.benchmark_group("task");
    group.throughput(Throughput::Elements(TASKS));
    group.bench_function("spawn, run, dereference", |bencher| {
        let mut driver = Machine::for_script(Arc::clone(&code), Arc::clone(&surroundings));
        let mut calls = Calls::default();
        bencher.iter(|| {
            for _ in 0..TASKS {
                let Step::Blocked { on } = driver.run(&mut calls, u64::MAX) else {
                    unreachable!("the driver waits for its child");
                };
                let mut wait = on[0];
                if let Some(compacted) = driver.compact(false) {
                    let at = compacted.kept.iter().position(|handle| *handle == wait);
                    wait = Handle(at.expect("it is live") as u32);
                }
                let bytes = calls.0.pop().expect("one call");
                let (code, surroundings) = (Arc::clone(&code), Arc::clone(&surroundings));
                let mut child = Machine::for_call(code, &bytes, 0, surroundings).expect("valid");
                let Step::Finished(ended) = child.run(&mut calls, u64::MAX) else {
                    unreachable!("the child does not wait");
                };
                let Returned::Value { bytes, .. } = ended.value else {
                    unreachable!("the child gives an integer");
                };
                driver.answer(
                    wait,
                    Answer::Value {
                        bytes: bytes.into(),
                        references: References::NONE,
                    },
                );
            }
        });
    });
    group.finish();
}

/// Saving and loading a task that waits.
fn saved(criterion: &mut Criterion) {
    let code = compile("function g(n) { return *spawn(f) + n; } f = lambda: 1; return g(1) + 2;");
    let mut machine = Machine::for_script(Arc::clone(&code), Arc::default());
    machine.run(&mut Calls::default(), 1000);
    criterion.bench_function("save", |bencher| bencher.iter(|| machine.save()));
    let saved = machine.save();
    criterion.bench_function("load", |bencher| {
        bencher.iter(|| Machine::load(Arc::clone(&code), &saved.bytes, Arc::default()));
    });
}

criterion_group!(benches, dispatch, in_place, tasks, saved);
criterion_main!(benches);
