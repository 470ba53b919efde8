//! The builtin functions that make no tasks.

mod machine_support;

use machine_support::{Plan, assert_fails, eval, run, run_as, surroundings};
use serde_json::json;

#[test]
fn builtins_on_scalars() {
    for (expression, expected) in [
        ("int(\" -12 \")", json!(-12)),
        ("int(3.9)", json!(3)),
        ("int(-3.9)", json!(-3)),
        ("float(\"1e3\")", json!(1000.0)),
        ("float(2)", json!(2.0)),
        ("str(1.5)", json!("1.5")),
        ("str(2.0)", json!("2.0")),
        ("str(1e300)", json!("1e+300")),
        ("str([1, \"a\", null])", json!("[1,\"a\",null]")),
        ("str(\"a\")", json!("a")),
        ("abs(-3)", json!(3)),
        ("abs(-3.5)", json!(3.5)),
        ("floor(2.7)", json!(2)),
        ("floor(-2.1)", json!(-3)),
        ("sqrt(9)", json!(3.0)),
        ("len(\"héé\")", json!(3)),
        (
            "[type(null), type(true), type(1), type(1.0), type(\"\"), type([]), type({}), \
                type(len)]",
            json!([
                "null",
                "boolean",
                "integer",
                "float",
                "string",
                "list",
                "dictionary",
                "function"
            ]),
        ),
        ("split(\" a  b \")", json!(["a", "b"])),
        ("split(\"a,b,,c\", \",\")", json!(["a", "b", "", "c"])),
        ("join([1, \"b\", 2.5], \"-\")", json!("1-b-2.5")),
    ] {
        assert_eq!(eval(expression), expected, "{expression}");
    }
    assert_fails(
        "int(\"x\")",
        "ValueError",
        "`int` cannot read an integer from \"x\"",
    );
    assert_fails(
        "int(true)",
        "TypeError",
        "`int` takes a number or a string, not a boolean: true",
    );
    assert_fails(
        "float(\"\")",
        "ValueError",
        "`float` cannot read a number from \"\"",
    );
    assert_fails("sqrt(-1)", "OutOfRange", "`sqrt` of a negative number: -1");
    assert_fails(
        "len(5)",
        "TypeError",
        "`len` takes a list, dictionary or string, not an integer: 5",
    );
    assert_fails(
        "split(\"a\", \"\")",
        "ValueError",
        "`split` at an empty string",
    );
}

#[test]
fn builtins_on_collections() {
    for (expression, expected) in [
        ("len([1, 2])", json!(2)),
        ("len({\"a\": 1})", json!(1)),
        ("range(3)", json!([0, 1, 2])),
        ("range(1, 4)", json!([1, 2, 3])),
        ("range(5, 0, -2)", json!([5, 3, 1])),
        ("range(3, 1)", json!([])),
        ("has_key({\"a\": 1}, \"a\")", json!(true)),
        ("has_key({\"a\": 1}, \"b\")", json!(false)),
        ("get_key({\"a\": 1}, \"b\", 5)", json!(5)),
        ("get_key({\"a\": 1}, \"a\")", json!(1)),
        ("keys({\"b\": 1, \"a\": 2, 3: 4})", json!(["b", "a", 3])),
        ("min([3, 1, 2])", json!(1)),
        ("max(3, 1.5, 7)", json!(7)),
        ("max(\"a\", \"b\")", json!("b")),
        ("sort([3, 1.5, 2])", json!([1.5, 2, 3])),
        (
            "sort([[2, \"b\"], [1, \"z\"], [2, \"a\"]])",
            json!([[1, "z"], [2, "a"], [2, "b"]]),
        ),
        ("sort([])", json!([])),
    ] {
        assert_eq!(eval(expression), expected, "{expression}");
    }
    assert_fails("min([])", "ValueError", "`min` of an empty list");
    assert_fails(
        "sort([1, \"a\"])",
        "TypeError",
        "`<` does not go with a string and an integer: \"a\" < 1",
    );
    assert_fails("range(1, 2, 0)", "ValueError", "`range` with a step of 0");
    assert_fails(
        "range(1.5)",
        "TypeError",
        "`range` takes integers, not a float: 1.5",
    );
}

#[test]
fn builtins_on_surroundings() {
    let plan = Plan {
        surroundings: surroundings(),
        ..Plan::default()
    };
    let eval = |expression: &str| {
        run_as(&format!("return {expression};"), &plan)
            .result
            .map_err(Box::new)
    };
    assert_eq!(eval("argv()"), Ok(json!(["first", "second"])));
    assert_eq!(eval("argv(-1)"), Ok(json!("second")));
    assert_eq!(eval("env()"), Ok(json!({"HOME": "/home"})));
    assert_eq!(eval("env(\"HOME\")"), Ok(json!("/home")));
    assert_eq!(eval("env(\"PATH\", 5)"), Ok(json!(5)));
    let thrown = eval("env(\"HOMER\")").unwrap_err();
    assert_eq!(thrown.hint.as_deref(), Some("did you mean \"HOME\"?"));
    assert!(eval("argv(2)").is_err());
    assert_eq!(eval("*package(\"data\")"), Ok(json!([1, 2, 3])));
    assert_eq!(eval("package(\"nothing\")").unwrap_err().kind, "KeyError");
}

/// The original's `env` is a dictionary and its `argv` a list; here they were functions only, so
/// `env["HOME"]` was an error in most programs that were written for it.
#[test]
fn env_and_argv_are_containers_as_well_as_functions() {
    let plan = Plan {
        surroundings: surroundings(),
        ..Plan::default()
    };
    let eval = |program: &str| run_as(program, &plan).result.map_err(Box::new);
    for (program, expected) in [
        ("return env[\"HOME\"];", json!("/home")),
        ("return [argv[0], argv[-1]];", json!(["first", "second"])),
        (
            "l = []; for (k in env) { l += k; } return l;",
            json!(["HOME"]),
        ),
        (
            "l = []; for (a in argv) { l += a; } return l;",
            json!(["first", "second"]),
        ),
        ("return [len(env), len(argv)];", json!([1, 2])),
        (
            "return [has_key(env, \"HOME\"), has_key(env, \"PATH\")];",
            json!([true, false]),
        ),
        ("return get_key(env, \"PATH\", 5);", json!(5)),
        ("return keys(env);", json!(["HOME"])),
        (
            "e = env; return e[\"HOME\"] + e()[\"HOME\"];",
            json!("/home/home"),
        ),
    ] {
        assert_eq!(eval(program), Ok(expected), "{program}");
    }
    let thrown = eval("return env[\"HOMER\"];").unwrap_err();
    assert_eq!(thrown.kind, "KeyError");
    assert_eq!(thrown.hint.as_deref(), Some("did you mean \"HOME\"?"));
    assert_eq!(eval("return argv[2];").unwrap_err().kind, "IndexError");
    assert_eq!(eval("return argv[\"x\"];").unwrap_err().kind, "TypeError");
}

#[test]
fn print_gives_true() {
    assert_eq!(run("return print(1);").value(), &json!(true));
}

#[test]
fn print_shows_each_kind() {
    let program = "
        function f() { return 1; }
        print(\"a b\", 1, 2.0, null, [\"x\", {\"k\": true}]);
        print(); print(*spawn(f), spawn(f), f);";
    assert_eq!(
        run(program).output,
        [
            "a b 1 2.0 null [\"x\",{\"k\":true}]",
            "",
            "1 <reference> <function f>"
        ]
    );
}
