//! Identities of calls: what counts in them and what does not.
//!
//! Each test compares the first call that one program spawns with that of another.

mod machine_support;

use std::collections::BTreeMap;
use std::sync::Arc;

use ciel_skywriting::code::{Code, CodeHash};
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
    identity_as(source, surroundings, None)
}

/// The identity if that number is the version of the called function.
fn identity_as(
    source: &str,
    surroundings: &Arc<ScriptEnvironment>,
    version: Option<u8>,
) -> CallIdentity {
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
    let version = version.map(|number| CodeHash([number; 16]));
    identity::of_call(&code, surroundings, call, version).unwrap()
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

#[test]
fn version_stands_for_the_code_of_the_called_function_and_not_for_what_it_uses() {
    let versioned = |source: &str, version| {
        let found = identity_as(source, &environment("/home"), Some(version));
        (found.whole, found.functions, found.variables)
    };
    let known = versioned(PROGRAM, 3);
    assert_ne!(versioned(PROGRAM, 4).0, known.0);
    assert_ne!(identity(PROGRAM).whole, known.0);
    for (before, after, stays) in [
        ("inner(x) + limit", "inner(x) - limit", true),
        ("helper(y)", "helper(y + 1)", true),
        ("(x) + 1", "(x) + 2", false),
        ("factor = 2", "factor = 3", false),
        ("[5, 100]", "[6, 100]", false),
    ] {
        let now = versioned(&PROGRAM.replace(before, after), 3);
        assert_eq!(now == known, stays, "{before} to {after}");
    }
    let asking = |home| {
        let source = "function f() { return env(\"HOME\"); }\nfirst = spawn(f);";
        identity_as(source, &environment(home), Some(3)).functions
    };
    assert_ne!(asking("/a"), asking("/b"));
}

#[test]
fn whole_script_counts_with_all_its_functions_its_arguments_and_what_it_asks() {
    let script = |source: &str, argument: &str, home: &str| {
        let surroundings = ScriptEnvironment {
            argv: vec![argument.to_string()],
            ..(*environment(home)).clone()
        };
        identity::of_script(&compile(source), &surroundings)
    };
    let source = "function f(x) { return x + 1; }\nprint(argv());\nreturn f(2);";
    let known = script(source, "a", "/a");
    assert_eq!(script(source, "a", "/b"), known);
    let commented = source.replace("print", "// A comment.\n\nprint");
    let moved = script(&commented, "a", "/a");
    assert_eq!(moved.whole, known.whole);
    let digests = |found: &CallIdentity| {
        let pieces = found.functions.iter().map(|piece| piece.digest);
        pieces.collect::<Vec<CodeHash>>()
    };
    assert_eq!(digests(&moved), digests(&known));
    let other = script(source, "b", "/a");
    assert_eq!(other.functions, known.functions);
    assert_ne!(
        (other.whole, &other.arguments),
        (known.whole, &known.arguments)
    );
    for edited in [
        source.replace("x + 1", "x + 2"),
        source.replace("f(2)", "f(3)"),
    ] {
        assert_ne!(digests(&script(&edited, "a", "/a")), digests(&known));
    }
    let asking = "return env(\"HOME\");";
    let [one, two] = ["/a", "/b"].map(|home| script(asking, "a", home));
    assert_ne!(one.functions, two.functions);
    assert!(script("return len(env());", "a", "/a").is_open);
}
