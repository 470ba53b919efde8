//! Programs that spawn: references, laziness, errors across tasks, executors.

mod machine_support;

use ciel_skywriting::host::{Answer, Handle, Host, References, SpawnRequest, Work};
use ciel_skywriting::machine::{Machine, Returned, ScriptEnvironment, Step};
use machine_support::{Plan, compile, failure, run, run_as, value};
use serde_json::{Value, json};
use std::sync::Arc;

const FIB: &str = "
    function fib(n) {
        if (n <= 1) { return n; }
        x = spawn(fib, [n - 1]); y = spawn(fib, [n - 2]);
        return *x + *y;
    }
    return *spawn(fib, [10]);";

#[test]
fn reference_results_of_the_original_engine() {
    let fib = run(FIB);
    // The root's own call is a spawn here; the original counted those beneath it.
    assert_eq!((fib.value(), fib.spawns), (&json!(55), 177));
    let direct = run(&FIB.replace("*spawn(fib, [10])", "fib(10)"));
    assert_eq!((direct.value(), direct.spawns), (&json!(55), 176));
    let tree = run("
        function f(n) {
            if (n == 0) { return 1; }
            l = spawn(f, [n - 1]); r = spawn(f, [n - 1]);
            return *l + *r;
        }
        return f(8);");
    assert_eq!((tree.value(), tree.spawns), (&json!(256), 510));
    let prints = run("
        function show(i) { print(\"task\", i); return true; }
        refs = [];
        for (i in range(10)) { refs += spawn(show, [i]); }
        ok = true;
        for (r in refs) { ok = ok && *r; }
        return ok;");
    let lines: Vec<String> = (0..10).map(|i| format!("task {i}")).collect();
    assert_eq!((prints.value(), &prints.output), (&json!(true), &lines));
    let chain = run("
        function first() { print(\"first\"); return 1; }
        function second(r) { x = *r; print(\"second\", x); return x + 1; }
        a = spawn(first); b = spawn(second, [a]);
        return *b;");
    assert_eq!(
        (chain.value(), &chain.output),
        (&json!(2), &vec!["first".to_owned(), "second 1".to_owned()])
    );
}

#[test]
fn the_lattice_prices_of_the_language_reference() {
    let program = "
        function price(n) {
            dt = 1.0 / n; r = 0.03; sigma = 0.3; s = 100.0; k = 100.0;
            drift = (r - sigma * sigma / 2) * dt;
            u = exp(drift + sigma * sqrt(dt)); d = exp(drift - sigma * sqrt(dt));
            p = (exp(r * dt) - d) / (u - d); discount = exp(-r * dt);
            values = []; x = s; i = 0;
            while (i < n) { x = x * d; i += 1; }
            i = 0;
            while (i <= n) { values += max(k - x, 0.0); x = x * u / d; i += 1; }
            while (n > 0) {
                i = 0;
                while (i < n) { values[i] = discount * (p * values[i + 1] + (1 - p) * \
                    values[i]); i += 1; }
                n -= 1;
            }
            return values[0];
        }
        function exp(x) { term = 1.0; sum = 1.0; i = 1; while (i < 30) { term = term * x / i; \
            sum += term; i += 1; } return sum; }
        return *spawn(price, [100]);";
    let price = value(program).as_f64().expect("a number");
    assert!((price - 10.341476489).abs() < 1e-8, "{price}");
}

#[test]
fn the_order_in_which_tasks_run_does_not_show() {
    let program = "
        function leaf(i) { print(\"leaf\", i); if (i == 3) { throw \"three\"; } return [i]; }
        function node(a, b) {
            l = spawn(leaf, [a]); r = spawn(leaf, [b]); print(\"node\", a);
            try { return *l + *r; } catch (e) { print(\"caught\", e.message); return []; }
        }
        all = [];
        for (i in range(4)) { all += spawn(node, [i, i + 1]); }
        sum = [];
        for (r in all) { sum = sum + *r; }
        print(sum);
        return sum;";
    let expected = run(program);
    assert_eq!(expected.value(), &json!([0, 1, 1, 2]));
    for (newest_first, reload, compact, fuel) in [
        (true, false, false, 1_000_000),
        (false, true, false, 7),
        (true, true, true, 3),
        (true, false, true, 1),
    ] {
        let plan = Plan {
            newest_first,
            reload,
            compact,
            fuel,
            ..Plan::default()
        };
        assert_eq!(run_as(program, &plan), expected, "{plan:?}");
    }
}

#[test]
fn references_inside_the_jobs_result_are_resolved() {
    let program = "
        function inner(n) { return n; }
        function outer(n) { return [spawn(inner, [n]), *spawn(inner, [n + 1])]; }
        return {\"a\": spawn(outer, [1]), \"b\": [*spawn(inner, [9])]};";
    assert_eq!(value(program), json!({"a": [1, 2], "b": [9]}));
    assert_eq!(
        value("function f() { return 4; } function g() { return spawn(f); } return spawn(g);"),
        json!(4)
    );
}

#[test]
fn a_returned_thunk_is_a_tail_call() {
    let program = "
        function count(n) { if (n == 0) { return \"done\"; } return *spawn(count, [n - 1]); }
        return *spawn(count, [500]);";
    let outcome = run(program);
    assert_eq!((outcome.value(), outcome.spawns), (&json!("done"), 501));
}

#[test]
fn arguments_are_copied_at_the_spawn_with_their_sharing() {
    let program = "
        function change(a, b) { a[0] = 5; b += 9; return [a, b]; }
        x = [1, 2];
        r = spawn(change, [x, x]);
        x += 3;
        return [*r, x];";
    assert_eq!(value(program), json!([[[5, 2, 9], [5, 2, 9]], [1, 2, 3]]));
}

#[test]
fn closures_travel_with_what_they_captured() {
    let program = "
        base = 10;
        function add(x) { return x + base; }
        function even(n) { if (n == 0) { return true; } return *spawn(odd, [n - 1]); }
        function odd(n) { if (n == 0) { return false; } return *spawn(even, [n - 1]); }
        function apply(f, x) { return f(x); }
        function make(k) { return lambda x: x * k; }
        made = spawn(make, [7]);
        m = *made;
        return [*spawn(apply, [add, 1]), *spawn(even, [6]), m(6), *spawn(apply, [*made, 2])];";
    assert_eq!(value(program), json!([11, true, 42, 14]));
}

#[test]
fn each_dereference_gives_its_own_copy() {
    let program = "
        function f() { return [1]; }
        r = spawn(f); a = *r; b = *r; c = a;
        a += 2;
        return [a, b, c, *r];";
    assert_eq!(value(program), json!([[1, 2], [1], [1, 2], [1]]));
}

#[test]
fn a_failed_task_throws_where_it_is_used_and_not_before() {
    let program = "
        function bad() { return 1 / 0; }
        r = spawn(bad); x = *r; y = [x];
        try { print(\"before\"); z = x + 1; } catch (e) { return [e.kind, is_error(r), len(y)]; }";
    assert_eq!(value(program), json!(["DivisionByZero", true, 1]));
    let thrown = failure("function bad() { return 1 / 0; } return *spawn(bad);");
    assert_eq!(
        thrown.trace,
        ["bad at test.sw:1:25", "the script at test.sw:1:34"]
    );
    let thrown = failure("r = spawn_exec(\"fail\", {}, 1)[0]; return *r;");
    assert_eq!((thrown.task.as_str(), thrown.trace.len()), ("fail@1", 2));
}

#[test]
fn is_error_waits_and_tells() {
    let program = "
        function good() { return 1; }
        function bad() { throw \"x\"; }
        a = spawn(good); b = spawn(bad);
        return [is_error(a), is_error(b), is_error(*a), is_error(*b), is_error(5)];";
    assert_eq!(value(program), json!([false, true, false, true, false]));
}

/// The message had the 32 digits of an object's name, by which nobody finds its task.
#[test]
fn bytes_that_are_no_json_are_shown_by_their_beginning() {
    let of = |text: &str| {
        let spawned = format!("x = *spawn_exec(\"raw\", {{\"text\": {text:?}}}, 1)[0];");
        failure(&format!("{spawned} return x + 1;")).message
    };
    assert_eq!(of("a\nb"), "these bytes are not JSON: \"a\\nb\"");
    let long = of(&"ab".repeat(1000));
    let shown = "ab".repeat(20);
    assert_eq!(long, format!("these bytes are not JSON: \"{shown}\"…"));
}

#[test]
fn bytes_of_executors_are_json_or_text() {
    assert_eq!(
        value("return *spawn_exec(\"raw\", {\"text\": \"[1, 2.5]\"}, 1)[0];"),
        json!([1, 2.5])
    );
    assert_eq!(
        value("return text(spawn_exec(\"raw\", {\"text\": \"hello\"}, 1)[0]);"),
        json!("hello")
    );
    assert_eq!(
        value("return spawn_exec(\"raw\", {\"text\": \"hello\"}, 1)[0];"),
        json!("hello")
    );
    assert_eq!(
        value("return *exec(\"raw\", {\"text\": \"hello\"}, 2)[1];"),
        json!("hello")
    );
    let thrown = failure("x = *spawn_exec(\"raw\", {\"text\": \"hello\"}, 1)[0]; return x + 1;");
    assert_eq!(thrown.message, "these bytes are not JSON: \"hello\"");
    assert_eq!(
        value("return spawn_exec(\"binary\", {}, 1);"),
        json!([{"object": "object", "bytes": 3}])
    );
    assert_eq!(
        value("return *spawn_exec(\"large\", {}, 1)[0];"),
        json!({"object": "object", "bytes": 20_000_000})
    );
    let thrown = failure("return len(*spawn_exec(\"large\", {}, 1)[0]);");
    assert_eq!(
        thrown.message,
        "object is too large for a script: 20000000 bytes"
    );
    assert_eq!(
        failure("return text(spawn_exec(\"binary\", {}, 1)[0]);").kind,
        "ValueError"
    );
    assert_eq!(
        value("return *spawn_exec(\"env\", {}, 1)[0];"),
        json!("environ")
    );
}

#[test]
fn executor_arguments_are_forced_but_keep_references() {
    let program = "
        function f() { return {\"deep\": [1]}; }
        r = spawn(f);
        return *spawn_exec(\"echo\", {\"value\": [*r], \"inputs\": [r, r], \"$key\": 1}, 1)[0];";
    let expected =
        json!({"value": [{"deep": [1]}], "inputs": [{"$ref": 0}, {"$ref": 0}], "$$key": 1});
    assert_eq!(value(program), expected);
}

#[test]
fn wrong_spawns_say_what_is_wrong() {
    for (program, message) in [
        (
            "spawn(len, [1]);",
            "`spawn` takes a function of the script, not <function len>",
        ),
        ("spawn(5);", "`spawn` takes a function of the script, not 5"),
        (
            "f = lambda x: x; g = [f]; spawn(g[0], []);",
            "`f` takes 1 argument, not 0",
        ),
        (
            "f = lambda x: x; spawn(f, 5);",
            "`spawn` takes a list of arguments, not an integer: 5",
        ),
        (
            "f = lambda: 1; spawn(f, [], {\"core\": 1});",
            "unknown option \"core\"",
        ),
        (
            "f = lambda: 1; spawn(f, [], {\"cores\": 0});",
            "the option \"cores\" takes a positive number, not 0",
        ),
        (
            "f = lambda: 1; spawn(f, [], {\"lazy\": 1});",
            "the option \"lazy\" takes true or false, not 1",
        ),
        (
            "spawn_exec(\"raw\", {}, 0);",
            "`spawn_exec` takes between 1 and 10,000 outputs, not 0",
        ),
        (
            "spawn_exec(\"raw\", {}, 10001);",
            "`spawn_exec` takes between 1 and 10,000 outputs, not 10001",
        ),
        (
            "spawn_exec(\"raw\", {}, \"1\");",
            "`spawn_exec` takes an integer as the number of outputs, not a string: \"1\"",
        ),
        (
            "spawn_exec(5, {}, 1);",
            "`spawn_exec` takes the name of an executor as first argument, not an integer: 5",
        ),
        (
            "spawn_exec(\"raw\", [1], 1);",
            "`spawn_exec` takes the executor's arguments as a dictionary, not [1]",
        ),
        (
            "f = lambda: 1; spawn_exec(\"raw\", {\"x\": f}, 1);",
            "a function cannot be passed to another language: <function f>",
        ),
        (
            "spawn_other(\"raw\", {});",
            "`spawn_other` needs the key \"args\"",
        ),
    ] {
        assert_eq!(failure(program).message, message, "{program}");
    }
    let thrown = failure("f = lambda: 1;\nspawn(f, [], {\"core\": 1});");
    assert_eq!(thrown.hint.as_deref(), Some("did you mean \"cores\"?"));
    assert_eq!(thrown.trace, ["the script at test.sw:2:1"]);
}

/// Keeps what is asked.
#[derive(Default)]
struct Recorder {
    spawns: Vec<SpawnRequest>,
}

impl Host for Recorder {
    fn spawn(&mut self, request: SpawnRequest) {
        self.spawns.push(request);
    }

    fn print(&mut self, _actions: u64, _line: &str) {}
}

fn machine(source: &str) -> Machine {
    Machine::for_script(compile(source), Arc::new(ScriptEnvironment::default()))
}

/// What the script first waits for.
fn blocked_on(body: &str) -> Vec<u32> {
    let source = format!(
        "function f(n) {{ return n; }}
         a = spawn(f, [1]); b = spawn(f, [2]); c = spawn(f, [3]); x = *a; y = *b; z = *c; {body}"
    );
    match machine(&source).run(&mut Recorder::default(), 100_000) {
        Step::Blocked { on } => on.iter().map(|handle| handle.0).collect(),
        other => panic!("it should wait: {other:?}"),
    }
}

#[test]
fn a_wait_is_for_what_the_pending_expression_needs() {
    for (body, expected) in [
        ("return x + y;", vec![0, 1]),
        ("if (x) { return y; }", vec![0]),
        ("return x * (1 + y);", vec![1, 0]),
        ("return (x + y) + z;", vec![0, 1]),
        ("print(x, [y]);", vec![0, 1]),
        ("return [y, z] == [x, 1];", vec![1, 2, 0]),
        ("w = [x, y + 1];", vec![1]),
        ("f(x + 1);", vec![0]),
        ("x[0] = y;", vec![0]),
        ("x += y;", vec![0, 1]),
        ("return min(x, y, z);", vec![0, 1, 2]),
        ("for (i in x) { y; }", vec![0]),
        ("return x && y;", vec![0]),
        ("return -x;", vec![0]),
        ("return [1, 2][x];", vec![0]),
        ("throw y;", vec![1]),
        ("return join([x, y], z);", vec![0, 1, 2]),
        ("spawn(x, [y]);", vec![0]),
        ("spawn_exec(\"e\", {\"k\": [x, b]}, 1);", vec![0]),
        ("return {x: y};", vec![0]),
        ("return is_error(a);", vec![0]),
    ] {
        assert_eq!(blocked_on(body), expected, "{body}");
    }
}

#[test]
fn the_requests_of_a_script_carry_their_place_and_number() {
    let mut host = Recorder::default();
    let mut script = machine(
        "function f(r, n) { return n; }\na = spawn(f, [1, 2], {\"name\": \"x\"});\n\
         spawn(f, [a, a]); l = spawn_other(\"e\", {\"args\": {\"k\": a}, \"n_outputs\": 3, \
             \"retries\": 2});\n\
         spawn(f, [l[2], *a]); return 1;",
    );
    let step = script.run(&mut host, 10_000);
    assert!(matches!(step, Step::Finished(_)), "{step:?}");
    let [first, second, other, last] = &host.spawns[..] else {
        panic!("four spawns");
    };
    assert_eq!(
        (&*first.label, first.line, &*first.file),
        ("f", 2, "test.sw")
    );
    assert_eq!(first.options, json!({"name": "x"}));
    assert_eq!(second.references, [Handle(0)]);
    assert_eq!(second.options, Value::Null);
    assert_eq!((other.outputs, &other.options), (3, &json!({"retries": 2})));
    assert_eq!(other.references, [Handle(0)]);
    assert_eq!(last.references, [Handle(4), Handle(0)]);
    match &second.work {
        Work::Call(bytes) => assert!(bytes.len() <= 36, "{}", bytes.len()),
        Work::Executor { .. } => panic!("a call"),
    }
    assert_eq!(script.references(), 6);
}

#[test]
fn each_cancel_stops_for_an_answer_even_about_what_is_known() {
    let mut host = Recorder::default();
    let mut script = machine(
        "f = lambda: 1; r = spawn(f); x = cancel(r); y = cancel(*r); return [x, y, cancel(r)];",
    );
    for answer in [false, true, true] {
        assert_eq!(
            script.run(&mut host, 10_000),
            Step::Cancels { on: Handle(0) }
        );
        script.cancelled(answer);
    }
    let Step::Finished(ended) = script.run(&mut host, 10_000) else {
        panic!("it has all answers");
    };
    let Returned::Value { bytes, .. } = ended.value else {
        panic!("a value");
    };
    let json = ciel_skywriting::wire::to_json(&bytes).expect("JSON");
    assert_eq!(json, json!([false, true, true]));
}

#[test]
fn cancel_of_a_value_is_refused() {
    let mut host = Recorder::default();
    let Step::Failed { thrown, .. } = machine("return cancel(3);").run(&mut host, 10_000) else {
        panic!("it should fail");
    };
    assert_eq!(
        thrown.message,
        "`cancel` takes a reference, not an integer: 3"
    );
}

#[test]
fn a_result_is_a_value_with_references_or_a_delegation() {
    let run = |source: &str| match machine(source).run(&mut Recorder::default(), 10_000) {
        Step::Finished(ended) => ended.value,
        other => panic!("it should end: {other:?}"),
    };
    assert_eq!(
        run("f = lambda: 1; spawn(f); return *spawn(f);"),
        Returned::Delegated(Handle(1))
    );
    match run("f = lambda: 1; a = spawn(f); b = spawn(f); return [b, *a, b];") {
        Returned::Value { bytes, references } => {
            assert_eq!(references, [Handle(1), Handle(0)]);
            let json = ciel_skywriting::wire::to_json(&bytes).expect("JSON");
            assert_eq!(json, json!([{"$ref": 0}, {"$ref": 1}, {"$ref": 0}]));
        }
        other => panic!("a value: {other:?}"),
    }
}

#[test]
fn references_inside_answers_have_the_handles_that_the_host_says() {
    let mut host = Recorder::default();
    let mut script = machine(
        "f = lambda: 1; a = spawn(f); b = spawn(f); x = [*a, *b];
         if (x[0] == x[1]) { return 0; } y = x[0]; z = x[1]; return [z[0], y[0], a];",
    );
    assert_eq!(
        script.run(&mut host, 10_000),
        Step::Blocked {
            on: vec![Handle(0), Handle(1)]
        }
    );
    let delivered = |index| Handle(Handle::DELIVERED_MIN + index);
    let json = |index| Answer::Json {
        bytes: "[{\"$ref\": 0}]".into(),
        references: References {
            first: delivered(index),
            count: 1,
        },
    };
    script.answer(Handle(1), json(0));
    script.answer(Handle(0), json(2));
    assert_eq!(script.references(), 5);
    match script.run(&mut host, 10_000) {
        Step::Finished(ended) => match ended.value {
            Returned::Value { references, .. } => {
                assert_eq!(references, [delivered(0), delivered(2), Handle(0)]);
            }
            other => panic!("a value: {other:?}"),
        },
        other => panic!("it should end: {other:?}"),
    }
}

/// `text(*r)` of a task that gives the reference of a command was a `TypeError` whose hint led to
/// the same error again; the job's result and `**r` looked through.
#[test]
fn text_and_is_error_look_through_references_behind_references() {
    let program = |expression: &str| {
        format!(
            "function raw() {{ return spawn_exec(\"raw\", {{\"text\": \"hi\"}}, 1)[0]; }}
             function twice() {{ return spawn(raw); }}
             function bad() {{ throw \"no\"; }}
             function wrapped() {{ return spawn(bad); }}
             a = spawn(raw); b = spawn(twice); return {expression};"
        )
    };
    for reload in [false, true] {
        let plan = Plan {
            reload,
            ..Plan::default()
        };
        for (expression, expected) in [
            (
                "[text(a), text(*a), text(b), text(*b), text(**b)]",
                json!(["hi", "hi", "hi", "hi", "hi"]),
            ),
            (
                "[is_error(a), is_error(*b), is_error(spawn(wrapped))]",
                json!([false, false, true]),
            ),
            ("is_error(*spawn(wrapped))", json!(true)),
            ("[is_error(5), is_error([a])]", json!([false, false])),
        ] {
            let outcome = run_as(&program(expression), &plan);
            assert_eq!(outcome.value(), &expected, "{expression}");
        }
    }
    for (expression, message, hint) in [
        (
            "text(spawn(lambda: 5))",
            "`text` takes a reference to text; this one gives an integer: 5",
            "str(*reference) shows any value as text",
        ),
        (
            "text([a])",
            "`text` takes a reference, not a list: [\"<reference>\"]",
            "spawn_exec gives a list: text(spawn_exec(…)[0])",
        ),
    ] {
        let thrown = failure(&program(expression));
        assert_eq!(thrown.message, message, "{expression}");
        assert_eq!(thrown.hint.as_deref(), Some(hint), "{expression}");
    }
    assert_eq!(
        failure(&program("text(spawn(wrapped))")).value,
        Some(json!("no"))
    );
}

/// Programs of the original engine pass hints to its scheduler; each was refused as an unknown
/// option. A misspelt option still is.
#[test]
fn spawn_other_ignores_hints_to_a_scheduler() {
    let program = "return text(spawn_other(\"raw\", {\"args\": {\"text\": \"hi\"},
        \"n_outputs\": 1, \"small_task\": true, \"scheduling_class\": \"cpu\",
        \"scheduling_type\": 3, \"options\": {\"cores\": 2}, \"retries\": 1})[0]);";
    assert_eq!(value(program), json!("hi"));
    let misspelt = "spawn_other(\"raw\", {\"args\": {}, \"retires\": 1});";
    let thrown = failure(misspelt);
    assert_eq!(thrown.message, "unknown option \"retires\"");
    assert_eq!(thrown.hint.as_deref(), Some("did you mean \"retries\"?"));
}
