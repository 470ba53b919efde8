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
        "`split` with an empty separator",
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
        "`<` cannot be applied to a string and an integer: \"a\" < 1",
    );
    assert_fails("range(1, 2, 0)", "ValueError", "`range` with a step of 0");
    assert_fails(
        "range(1.5)",
        "TypeError",
        "`range` takes integers, not a float: 1.5",
    );
}

/// No entry could be taken out of a dictionary, and no part out of a list or string, without a loop
/// that builds another one.
#[test]
fn entries_and_parts_are_taken_out() {
    for (program, expected) in [
        (
            "d = {\"a\": 1, \"b\": 2, 3: 4}; x = remove(d, \"a\"); return [x, d, len(d)];",
            json!([1, {"b": 2, "3": 4}, 2]),
        ),
        ("d = {}; return remove(d, \"a\", 5);", json!(5)),
        (
            "l = [1, 2, 3]; return [remove(l, 0), remove(l, -1), l];",
            json!([1, 3, [2]]),
        ),
        (
            "d = {\"a\": 1}; remove(d, \"a\"); d.b = 2; d.a = 3; return keys(d);",
            json!(["b", "a"]),
        ),
        (
            "d = {\"a\": 1, \"b\": 2}; for (k in d) { remove(d, k); d[k + k] = 1; } return d;",
            json!({"aa": 1, "bb": 1}),
        ),
        (
            "a = {\"x\": 1, \"y\": 2}; b = {\"y\": 2}; remove(a, \"x\"); \
                return [a == b, to_json(a) == to_json(b)];",
            json!([true, true]),
        ),
        ("return range(9)[2:5];", json!([2, 3, 4])),
        ("return \"grüße\"[-3:];", json!("üße")),
        (
            "return [range(3)[5:], range(3)[2:1], [1, 2][:]];",
            json!([[], [], [1, 2]]),
        ),
        ("l = [1, 2]; m = l[:]; m += 3; return l;", json!([1, 2])),
        ("return slice(\"abc\", null, 2);", json!("ab")),
        (
            "f = lambda x: x[1:]; return *spawn(f, [[1, 2]]);",
            json!([2]),
        ),
    ] {
        assert_eq!(run(program).value(), &expected, "{program}");
    }
    assert_fails(
        "remove({}, \"a\")",
        "KeyError",
        "the dictionary has no key \"a\"",
    );
    assert_fails(
        "remove([1], 1)",
        "IndexError",
        "index 1 is out of range: the list has 1 element",
    );
    assert_fails(
        "[1][\"a\":]",
        "TypeError",
        "`slice` takes integers or null as bounds, not a string: \"a\"",
    );
    assert_fails(
        "5[1:]",
        "TypeError",
        "`slice` takes a list or string first, not an integer: 5",
    );
}

#[test]
fn strings_are_searched_and_changed() {
    for (expression, expected) in [
        ("find(\"grüße\", \"ß\")", json!(3)),
        ("find(\"abab\", \"ab\", 1)", json!(2)),
        ("find(\"abab\", \"c\")", json!(null)),
        ("find([1, [2], 3], [2])", json!(1)),
        ("find([1, 1], 1, -1)", json!(1)),
        ("find([], 1)", json!(null)),
        ("replace(\"a-b-c\", \"-\", \"+\")", json!("a+b+c")),
        ("trim(\"  a b\\n\")", json!("a b")),
        ("lower(\"ÄB\") + upper(\"straße\")", json!("äbSTRASSE")),
        (
            "[starts_with(\"abc\", \"ab\"), ends_with(\"abc\", \"ab\")]",
            json!([true, false]),
        ),
        (
            "to_json({\"a\": [1, 2.0, null, \"\\n\"]})",
            json!("{\"a\":[1,2.0,null,\"\\n\"]}"),
        ),
        (
            "from_json(\" [1, {\\\"a\\\": 1e3}] \")",
            json!([1, {"a": 1000.0}]),
        ),
        ("from_json(\"{\\\"$ref\\\": 0}\")", json!({"$ref": 0})),
    ] {
        assert_eq!(eval(expression), expected, "{expression}");
    }
    assert_fails("from_json(\"[1,\")", "ValueError", "\"[1,\" is not JSON");
    assert_fails(
        "to_json([len])",
        "TypeError",
        "a function has no JSON form: <function len>",
    );
    assert_fails(
        "to_json([spawn(lambda: 1)])",
        "TypeError",
        "a reference has no JSON form",
    );
    assert_fails(
        "replace(\"a\", \"\", \"b\")",
        "ValueError",
        "`replace` of an empty string",
    );
    assert_fails(
        "find(\"1\", 1)",
        "TypeError",
        "`find` takes a string to find, not an integer: 1",
    );
}

#[test]
fn templates_are_filled() {
    for (expression, expected) in [
        ("format(\"{} of {}\", 1, [2])", json!("1 of [2]")),
        ("format(\"{1}{0}{1}\", \"a\", \"b\")", json!("bab")),
        (
            "format(\"{x} {y:.2}\", {\"x\": \"a\", \"y\": 2})",
            json!("a 2.00"),
        ),
        ("format(\"{{{}}}\", 1)", json!("{1}")),
        (
            "format(\"{:>4}|{:<4}|{:^4}|{:4}|{:4}\", 1, 2, 3, 4, \"ß\")",
            json!("   1|2   | 3  |   4|ß   "),
        ),
        (
            "format(\"{:05}|{:05.1}\", -12, 3.14159)",
            json!("-0012|003.1"),
        ),
        (
            "format(\"{:.0} {:.1}\", 2.5, 10 * 99999999999999999999)",
            json!("2 999999999999999999990.0"),
        ),
        ("format(\"{}\", *spawn(lambda: 7))", json!("7")),
    ] {
        assert_eq!(eval(expression), expected, "{expression}");
    }
    for (expression, kind, message) in [
        (
            "format(\"{}\")",
            "ValueError",
            "the template has a place for value 0",
        ),
        (
            "format(\"{x}\", 1)",
            "ValueError",
            "the template has a place for \"x\"",
        ),
        (
            "format(\"{x}\", {})",
            "KeyError",
            "the dictionary has no key \"x\"",
        ),
        (
            "format(\"{\", 1)",
            "ValueError",
            "a `{` without a partner in the template",
        ),
        (
            "format(\"}\", 1)",
            "ValueError",
            "a `}` without a partner in the template",
        ),
        (
            "format(\"{:x}\", 1)",
            "ValueError",
            "a layout cannot be \"x\"",
        ),
        (
            "format(\"{:99999}\", 1)",
            "ValueError",
            "a layout cannot be \"99999\"",
        ),
        (
            "format(\"{:.1}\", \"a\")",
            "TypeError",
            "only numbers have digits after the point, not \"a\"",
        ),
    ] {
        assert_fails(expression, kind, message);
    }
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
            "e = env; e[\"A\"] = 1; return [e, env];",
            json!([{"HOME": "/home", "A": 1}, {"HOME": "/home"}]),
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

/// `env` and `argv` could be indexed, but `return argv;` was refused as a function, `str(argv)` was
/// `<function argv>`, and `argv == ["first", "second"]` was false.
#[test]
fn env_and_argv_are_a_dictionary_and_a_list_wherever_they_stand() {
    let plan = Plan {
        surroundings: surroundings(),
        ..Plan::default()
    };
    for (program, expected) in [
        (
            "return [argv, env];",
            json!([["first", "second"], {"HOME": "/home"}]),
        ),
        ("return argv + [\"x\"];", json!(["first", "second", "x"])),
        ("return argv == argv();", json!(true)),
        (
            "return [type(env), type(argv)];",
            json!(["dictionary", "list"]),
        ),
        (
            "return str(argv) + join(argv, \",\");",
            json!("[\"first\",\"second\"]first,second"),
        ),
        (
            "x = argv; x += 1; return [len(x), len(argv)];",
            json!([3, 2]),
        ),
        ("f = lambda a: a[1]; return f(argv);", json!("second")),
        ("f = lambda: env; return f().HOME;", json!("/home")),
        ("env = env(); env[\"A\"] = 1; return len(env);", json!(2)),
        ("argv = [1]; return argv;", json!([1])),
        ("return argv && !argv;", json!(false)),
    ] {
        let result = run_as(program, &plan).result.map_err(Box::new);
        assert_eq!(result, Ok(expected), "{program}");
    }
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
