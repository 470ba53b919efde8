//! What a `try` catches: the failures of all that was dereferenced in it.

mod machine_support;

use ciel_skywriting::host::{Host, SpawnRequest};
use ciel_skywriting::machine::{Machine, Role, ScriptEnvironment, Step};
use machine_support::{Plan, compile, run_as};
use serde_json::{Value, json};
use std::sync::Arc;

/// Counts what is spawned.
#[derive(Default)]
struct Counter(usize);

impl Host for Counter {
    fn spawn(&mut self, _request: SpawnRequest) {
        self.0 += 1;
    }

    fn print(&mut self, _actions: u64, _line: &str) {}
}

const FUNCTIONS: &str = "
    function ok(x) { return x; }
    function bad(x) { throw x; }
    function later() { r = spawn(bad, [\"later\"]); return *r; }
    function thrown(e) { if (e.kind == \"Thrown\") { return e.value; } return e.kind; }";

/// Bodies of a function, and what it returns, as JSON.
const CASES: &[(&str, &str)] = &[
    (
        "try { return *spawn(bad, [1]); } catch (e) { return thrown(e); }",
        "1",
    ),
    (
        "r = spawn(bad, [1]);
            try { x = *r; } catch (e) { return thrown(e); } return x;",
        "1",
    ),
    (
        "try { return [0, *spawn(bad, [1])]; } catch (e) { return thrown(e); }",
        "1",
    ),
    (
        "try { *spawn(bad, [1]); } catch (e) { return thrown(e); } return 0;",
        "1",
    ),
    (
        "try { x = later(); } catch (e) { return thrown(e); } return 0;",
        r#""later""#,
    ),
    (
        "try { return *spawn(ok, [7]); } catch (e) { return thrown(e); }",
        "7",
    ),
    // The first in serial order, whatever fails first.
    (
        "try { x = *spawn(bad, [1]); throw 2; } catch (e) { return thrown(e); }",
        "1",
    ),
    (
        "try { x = *spawn(bad, [1]); 1 / 0; } catch (e) { return thrown(e); }",
        "1",
    ),
    (
        "try { x = *spawn(ok, [1]); throw 2; } catch (e) { return thrown(e); }",
        "2",
    ),
    (
        "try { x = *spawn(bad, [1]); y = *spawn(bad, [2]); } catch (e) { return thrown(e); }",
        "1",
    ),
    // Each failure goes to the handler around its `*`.
    (
        "l = []; try { x = *spawn(bad, [1]); try { y = *spawn(bad, [2]); }
            catch (e) { l += \"inner\"; } } catch (e) { l += thrown(e); } return l;",
        "[1]",
    ),
    (
        "l = []; try { x = *spawn(ok, [1]); try { y = *spawn(bad, [2]); }
            catch (e) { l += thrown(e); } } catch (e) { l += \"outer\"; } return l;",
        "[2]",
    ),
    (
        "try { try { return *spawn(bad, [1]); } catch (e) { throw [thrown(e), 2]; } }
            catch (e) { return thrown(e); }",
        "[1, 2]",
    ),
    // Each wait may cost the answers that were there before, and none of these for ever.
    (
        "x = *spawn(bad, [1]); try { y = *spawn(bad, [2]); print(x); }
            catch (e) { return thrown(e); }",
        "2",
    ),
    // `break` and `continue` leave a `try`, too.
    (
        "l = []; for (i in range(3)) {
            try { x = *spawn(bad, [i]); if (i == 1) { break; } continue; }
            catch (e) { l += thrown(e); } } return l;",
        "[0, 1, 2]",
    ),
    (
        "l = []; for (i in range(3)) {
            try { x = *spawn(ok, [i]); if (i == 1) { break; } continue; }
            catch (e) { l += thrown(e); } } return [l, i];",
        "[[], 1]",
    ),
];

/// What `*r` gives was needed only after the `try` around it had been left, so that the handler of
/// `try { return *r; } catch (e) { … }` never ran, which the serial program's would have.
#[test]
fn a_try_catches_the_failures_of_what_was_dereferenced_in_it() {
    for (body, expected) in CASES {
        let expected: Value = serde_json::from_str(expected).unwrap();
        let source = format!("{FUNCTIONS} function work() {{ {body} }} return *spawn(work, []);");
        for reload in [false, true] {
            let plan = Plan {
                reload,
                compact: reload,
                newest_first: reload,
                ..Plan::default()
            };
            assert_eq!(run_as(&source, &plan).value(), &expected, "{body}");
        }
    }
}

#[test]
fn a_try_waits_for_all_that_was_dereferenced_in_it_at_once() {
    let code = compile(
        "function f(x) { return x; } l = [];
         try { for (i in range(100)) { l += *spawn(f, [i]); } } catch (e) { return e.kind; }
         return len(l);",
    );
    let mut counter = Counter::default();
    let mut machine = Machine::for_script(code, Arc::new(ScriptEnvironment::default()));
    match machine.run(&mut counter, 1_000_000) {
        Step::Blocked { on } => assert_eq!((on.len(), counter.0), (100, 100)),
        other => panic!("{other:?}"),
    }
}

/// It would else keep each value that a loop in a `try` ever saw.
#[test]
fn a_long_loop_in_a_try_keeps_only_what_it_still_waits_for() {
    let outcome = run_as(
        "function f(x) { s = \"0123456789abcdef\"; while (len(s) < 10000) { s += s; } return s; }
         n = 0;
         try { for (i in range(2000)) { n += len(*spawn(f, [i])); } } catch (e) { return e; }
         return n;",
        &Plan {
            surroundings: ScriptEnvironment {
                heap_bytes_max: 4 << 20,
                role: Role::Job,
                ..ScriptEnvironment::default()
            },
            ..Plan::default()
        },
    );
    assert_eq!(outcome.value(), &json!(2000 * 16384));
}
