//! Identities of calls: what counts in them and what does not.
//!
//! Each test compares the first call that one program spawns with that of another.

mod machine_support;

use std::collections::BTreeMap;
use std::sync::Arc;

use ciel_skywriting::code::Code;
use ciel_skywriting::host::{Handle, Host, SpawnRequest, Work};
use ciel_skywriting::identity::{self, CallIdentity};
use ciel_skywriting::machine::{Machine, ScriptEnvironment, Step};

use machine_support::compile;

/// Takes all spawns, and runs none.
#[derive(Default)]
struct Taker(Vec<SpawnRequest>);

impl Host for Taker {
    fn spawn(&mut self, request: SpawnRequest) {
        self.0.push(request);
    }

    fn construct(&mut self, _: u64, _: Vec<u8>, _: Vec<Handle>) -> Result<(), String> {
        Ok(())
    }

    fn print(&mut self, _actions: u64, _line: &str) {}
}

fn environment(variable: &str) -> Arc<ScriptEnvironment> {
    let variable = ("HOME".to_string(), variable.to_string());
    Arc::new(ScriptEnvironment {
        env: Arc::new(BTreeMap::from([variable])),
        ..ScriptEnvironment::default()
    })
}

fn identity_in(source: &str, surroundings: &Arc<ScriptEnvironment>) -> CallIdentity {
    let code: Arc<Code> = compile(source);
    let mut machine = Machine::for_script(code.clone(), surroundings.clone());
    let mut taker = Taker::default();
    let step = machine.run(&mut taker, 100_000);
    assert!(
        matches!(step, Step::Blocked { .. } | Step::Finished(_)),
        "{step:?}"
    );
    let call = taker.0.iter().find_map(|request| match &request.work {
        Work::Call(call) => Some(call),
        Work::Executor { .. } => None,
    });
    let call = call.expect("a function was spawned");
    identity::of_call(&code, surroundings, call).unwrap()
}

fn identity(source: &str) -> CallIdentity {
    identity_in(source, &environment("/home"))
}

const PROGRAM: &str = "
factor = 2;
table = {\"double\": lambda x: x * factor};
function helper(x) { return table[\"double\"](x) + 1; }
function work(x, limit) {
    inner = lambda y: helper(y);
    return inner(x) + limit;
}
function other(x) { return x; }
first = spawn(work, [5, 100]);
";

/// What the identity names as changed after an edit; nothing if it is the same.
fn changed(before: &str, after: &str) -> Vec<String> {
    assert!(PROGRAM.contains(before));
    let (old, new) = (identity(PROGRAM), identity(&PROGRAM.replace(before, after)));
    let old_pieces: Vec<_> = old.functions.iter().chain(&old.variables).collect();
    let pieces = new.functions.iter().chain(&new.variables);
    let is_known = |name: &str, digest| {
        let mut old = old_pieces.iter();
        old.any(|piece| &*piece.name == name && piece.digest == digest)
    };
    let changed = pieces.filter(|piece| !is_known(&piece.name, piece.digest));
    let mut named: Vec<String> = changed
        .map(|piece| format!("{}:{}", piece.name, piece.location.line))
        .collect();
    let arguments = new
        .arguments
        .iter()
        .filter(|given| !old.arguments.contains(given));
    named.extend(arguments.map(|(name, _)| name.to_string()));
    assert_eq!(
        named.is_empty(),
        old.whole == new.whole,
        "{before} to {after}"
    );
    named
}

#[test]
fn what_a_call_reaches_counts_and_is_named() {
    for (before, after, named) in [
        ("inner(x) + limit", "inner(x) - limit", &["work:5"][..]),
        ("helper(y)", "helper(y + 1)", &["inner:6"]),
        ("(x) + 1", "(x) + 2", &["helper:4"]),
        ("x * factor", "x + factor", &["lambda:3"]),
        ("factor = 2", "factor = 3", &["factor:2"]),
        ("\"double\": lambda", "\"twice\": lambda", &["table:3"]),
        ("[5, 100]", "[6, 100]", &["x"]),
        ("[5, 100]", "[5, 101]", &["limit"]),
    ] {
        assert_eq!(changed(before, after), named, "{before} to {after}");
    }
}

#[test]
fn layout_local_names_and_other_functions_do_not_count() {
    for (before, after) in [
        ("factor = 2;", "\n\n// Two.\nfactor = 2; // or not"),
        ("{\n    inner", "{\n\n        inner"),
        (
            "function other(x) { return x; }",
            "function other(x) { return [x]; }",
        ),
        ("function other(x) { return x; }\n", ""),
        (
            "factor = 2;",
            "function early(z) { return z; }\nunused = 7;\nfactor = 2;",
        ),
    ] {
        assert_eq!(changed(before, after), [""; 0], "{before} to {after}");
    }
    let renamed = PROGRAM
        .replace("inner", "within")
        .replace("lambda y: helper(y)", "lambda z: helper(z)");
    assert_eq!(identity(&renamed).whole, identity(PROGRAM).whole);
}

#[test]
fn functions_that_call_each_other_are_each_named_once() {
    let found = identity(
        "function even(n) { if (n == 0) { return true; } return odd(n - 1); }
         function odd(n) { if (n == 0) { return false; } return even(n - 1); }
         first = spawn(even, [4]);",
    );
    let names: Vec<&str> = found.functions.iter().map(|piece| &*piece.name).collect();
    assert_eq!(names, ["even", "odd"]);
    assert!(found.variables.is_empty());
}

#[test]
fn what_two_arguments_share_counts() {
    let program = |second: &str| {
        format!(
            "function f(a, b) {{ a += 1; return b; }}\nx = [1];\nfirst = spawn(f, [x, {second}]);"
        )
    };
    assert_ne!(
        identity(&program("x")).whole,
        identity(&program("[1]")).whole
    );
}

#[test]
fn references_are_named_by_their_parameters() {
    let found = identity(
        "r = spawn_exec(\"shell\", {\"command\": \"echo\"}, 1)[0];
         function g(x, text) { return *text; }
         first = spawn(g, [1, r]);",
    );
    assert_eq!(found.references, [(0, "text".into())]);
}

/// A variable of the environment by its name, and the arguments of the script, can be looked up.
#[test]
fn environment_that_a_function_asks_counts_by_its_value() {
    for asks in [
        "env(\"HOME\")",
        "env[\"HOME\"]",
        "env.HOME",
        "env(\"HOME\", \"none\")",
    ] {
        let source = format!("function f() {{ return {asks}; }}\nfirst = spawn(f);");
        let (one, other) = (environment("/a"), environment("/b"));
        let (one, other) = (identity_in(&source, &one), identity_in(&source, &other));
        assert!(!one.is_open, "{asks}");
        assert_ne!(one.functions, other.functions, "{asks}");
        assert_eq!(&*one.functions[1].name, "env HOME", "{asks}");
    }
    let plain = "function f() { return 1; }\nfirst = spawn(f);";
    let (one, other) = (environment("/a"), environment("/b"));
    assert_eq!(identity_in(plain, &one), identity_in(plain, &other));
    let argued = "function f() { return argv(); }\nfirst = spawn(f);";
    assert_eq!(&*identity(argued).functions[1].name, "argv");
}

#[test]
fn what_is_known_only_when_a_function_runs_leaves_its_identity_open() {
    for asks in [
        "env()",
        "env(\"HO\" + \"ME\")",
        "env(\"HOME\" || other)",
        "package(\"data\")",
        "cancel(other)",
        "map(package, [\"data\"])",
    ] {
        let source = format!(
            "include \"mapreduce\";\nother = \"x\";\n\
             function f() {{ return {asks}; }}\nfirst = spawn(f);"
        );
        assert!(identity(&source).is_open, "{asks}");
    }
}
