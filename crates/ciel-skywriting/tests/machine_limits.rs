//! What no script can do: hang the engine, swell it, or overflow its stack. And arithmetic,
//! equality and sorting against references.

mod machine_support;

use bytes::Bytes;
use ciel_skywriting::host::{Answer, Host, References, SpawnRequest};
use ciel_skywriting::machine::{Machine, Returned, Role, ScriptEnvironment, Step};
use ciel_skywriting::wire;
use machine_support::{Plan, compile, run_as, value};
use num_bigint::BigInt;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

struct Silent;

impl Host for Silent {
    fn spawn(&mut self, _request: SpawnRequest) {}

    fn print(&mut self, _actions: u64, _line: &str) {}
}

fn small(mebibytes: usize) -> Plan {
    let heap_bytes_max = mebibytes * 1024 * 1024;
    let surroundings = ScriptEnvironment {
        role: Role::Job,
        heap_bytes_max,
        ..ScriptEnvironment::default()
    };
    Plan {
        surroundings,
        ..Plan::default()
    }
}

#[test]
fn an_endless_loop_is_preempted_each_time_at_the_same_point() {
    let code = compile("n = 0; while (true) { n += 1; }");
    let mut one = Machine::for_script(Arc::clone(&code), Arc::default());
    let mut two = Machine::for_script(code, Arc::default());
    assert_eq!(one.run(&mut Silent, 10_001), Step::Preempted);
    for _ in 0..10_001 {
        assert_eq!(two.run(&mut Silent, 1), Step::Preempted);
    }
    assert_eq!(one.save(), two.save());
}

/// Each assignment to the element behind the last one doubled the room of the list, also when there
/// was enough: the 23rd element took 256 MiB. Lists were filled by `+=` in our own programs only.
#[test]
fn list_filled_by_index_takes_memory_and_steps_in_proportion() {
    let flat = |count: usize| {
        format!("x = []; for (i in range({count})) {{ x[i] = i; }} return [len(x), x[-1]];")
    };
    let at_end = "x = [0]; for (i in range(99999)) { x[len(x)] = i; } return len(x);";
    let nested = "m = []; for (i in range(300)) { m[i] = []; for (j in range(300)) \
        { m[i][j] = i * j; } } return m[299][299];";
    assert_eq!(
        run_as(&flat(100_000), &small(8)).value(),
        &json!([100_000, 99_999])
    );
    assert_eq!(run_as(at_end, &small(8)).value(), &json!(100_000));
    assert_eq!(run_as(nested, &small(8)).value(), &json!(299 * 299));
    let fuel = |count: usize| {
        let mut machine = Machine::for_script(compile(&flat(count)), Arc::default());
        (1..)
            .find(|_| machine.run(&mut Silent, 1_000) != Step::Preempted)
            .unwrap()
    };
    let (small, large) = (fuel(1_000), fuel(100_000));
    assert!(large <= 110 * small, "{small} and {large} thousand steps");
}

#[test]
fn whatever_grows_without_end_runs_out_of_memory_at_its_line() {
    for program in [
        "s = \"x\";\nwhile (true) { s += s; }",
        "s = \"x\";\nwhile (true) { s = s + s; }",
        "n = 3;\nwhile (true) { n = n * n; }",
        "l = [1];\nwhile (true) { l = l + l; }",
        "l = [];\nwhile (true) { l += [1, 2, 3]; }",
        "d = {}; n = 0;\nwhile (true) { d[n] = n; n += 1; }",
        "x =\nrange(100000000000);",
        "x = [];\nx[100000000000] = 1;",
        "function f(n) {\nreturn f(n + 1) + 1; } f(0);",
        "x = [1]; for (i in range(80)) { x = [x, x]; }\nprint(x);",
        "x = [1]; for (i in range(80)) { x = [x, x]; } y = [1]; for (i in range(80)) { y = [y, \
            y]; }\nx == y;",
        "s = \"xxxxxxxxxxxxxxxx\"; for (i in range(15)) { s += s; }\nx = []; while (true) { x += \
            split(s, \"x\"); }",
        "s = \"x\"; for (i in range(20)) { s += s; }\nx = []; while (true) { x += join([s, s], \
            \"\"); }",
        "s = \"x\";\nwhile (true) { s = replace(s, \"x\", \"xxxx\"); }",
        "s = \"x\";\nwhile (true) { s = format(\"{}{}\", s, s); }",
        "s = \"x\";\nwhile (true) { s = to_json([s, s]); }",
        "s = \"1\"; for (i in range(12)) { s = s + \",\" + s; }\nx = []; while (true) { x += \
            from_json(\"[\" + s + \"]\"); }",
        "l = [1];\nwhile (true) { l = l[:] + l[:]; }",
        "s = \"ß\";\nwhile (true) { s += upper(s); }",
    ] {
        let outcome = run_as(program, &small(8));
        assert_eq!(
            outcome.thrown().kind,
            "OutOfMemory",
            "{program}: {outcome:?}"
        );
        let last = outcome.thrown().trace.first().expect("a trace").clone();
        assert!(last.contains("test.sw:2:"), "{program}: {last}");
    }
}

#[test]
fn running_out_of_memory_can_be_caught_and_leaves_room() {
    let program = "
        try { s = \"x\"; while (true) { s += s; } } catch (e) { kind = e.kind; }
        s = null;
        return [kind, len(range(100000))];";
    assert_eq!(
        run_as(program, &small(8)).value(),
        &json!(["OutOfMemory", 100_000])
    );
}

#[test]
fn the_largest_integers_are_shown_and_read_quickly() {
    let program = "
        n = 7; i = 0; while (i < 18) { n = n * n; i += 1; }
        s = str(n); return [len(s), int(s) == n, n % 10];";
    assert_eq!(value(program), json!([221_538, true, 1]));
}

#[test]
fn garbage_is_not_counted() {
    let program = "for (i in range(3000)) { x = range(1000); s = str(x); } return len(x);";
    assert_eq!(run_as(program, &small(1)).value(), &json!(1000));
}

#[test]
fn calls_are_as_deep_as_the_heap_allows() {
    let program =
        "function f(n) { if (n == 0) { return 0; } return f(n - 1) + 1; } return f(200000);";
    assert_eq!(value(program), json!(200_000));
}

#[test]
fn appending_costs_what_is_appended() {
    let program = "
        s = \"\"; l = []; n = 0;
        while (n < 100000) { s += \"abc\"; l += n; n += 1; }
        return [len(s), len(l), s[299999], l[-1]];";
    assert_eq!(value(program), json!([300_000, 100_000, "c", 99_999]));
}

/// Text of which one can see whether anybody keeps it.
struct Text(Arc<str>);

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[test]
fn answers_that_nothing_names_any_more_are_forgotten() {
    let code = compile("f = lambda: 1; while (true) { n = len(*spawn(f)); }");
    let mut machine = Machine::for_script(code, Arc::default());
    let mut given = Vec::new();
    for _ in 0..20 {
        let Step::Blocked { on } = machine.run(&mut Silent, 1_000_000) else {
            panic!("it waits for each task");
        };
        let text: Arc<str> = format!("\"{}\"", "x".repeat(512 * 1024)).into();
        given.push(Arc::downgrade(&text));
        let bytes = Bytes::from_owner(Text(text));
        machine.answer(
            on[0],
            Answer::Json {
                bytes,
                references: References::NONE,
            },
        );
    }
    let kept = given
        .iter()
        .filter(|bytes| bytes.strong_count() > 0)
        .count();
    assert!(kept <= 4, "{kept} of 20 answers are kept");
}

#[test]
fn long_work_inside_one_builtin_uses_fuel() {
    let code = compile("x = range(100000); y = sort(x); z = str(y); return 1;");
    let mut machine = Machine::for_script(code, Arc::default());
    let mut turns = 0;
    while machine.run(&mut Silent, 1000) == Step::Preempted {
        turns += 1;
    }
    assert!(turns >= 4, "{turns} turns");
}

#[test]
fn a_heap_of_many_waiting_tasks_is_small() {
    let code = compile("function g(n) { return *spawn(f) + n; } f = lambda: 1; spawn(g, [1]);");
    let mut keep = Keep::default();
    Machine::for_script(Arc::clone(&code), Arc::default()).run(&mut keep, 1000);
    let call = keep.0.expect("one spawn");
    assert!(call.len() <= 48, "{} bytes", call.len());
    let mut machine = Machine::for_call(code, &call, 0, Arc::default()).expect("it loads");
    assert!(matches!(
        machine.run(&mut Silent, 1000),
        Step::Blocked { .. }
    ));
    let live = machine.heap_bytes() + size_of::<Machine>();
    assert!(live < 1024, "{live} bytes");
}

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

#[test]
fn equal_values_have_equal_bytes_and_json_survives() {
    let task = |expression: &str| {
        let code = compile(&format!("return {expression};"));
        match Machine::for_script(code, Arc::default()).run(&mut Silent, 10_000) {
            Step::Finished(ended) => match ended.value {
                Returned::Value { bytes, .. } => bytes,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    let long = "x".repeat(100);
    let pairs = [
        (
            "[1, \"ab\"]".to_owned(),
            "[2 - 1, \"a\" + \"b\"]".to_owned(),
        ),
        (
            format!("[\"{long}\", \"{long}\"]"),
            format!("[\"{long}\" + \"\", \"x\" + \"{}\"]", &long[1..]),
        ),
        (
            "99999999999999999999".to_owned(),
            "99999999999999999998 + 1".to_owned(),
        ),
    ];
    for (left, right) in pairs {
        assert_eq!(task(&left), task(&right), "{left}");
    }
    let json = json!({"a": [1, 2.5, null, true, "x"], "$b": {}, "n": [{"$ref": 7}]});
    let spelled = serde_json::to_string(&json).unwrap().replace("$b", "$$b");
    let (bytes, references) = wire::from_json(spelled.as_bytes()).unwrap();
    assert_eq!(references, [7]);
    let back = wire::to_json(&bytes).unwrap();
    assert_eq!(
        back,
        serde_json::from_str::<serde_json::Value>(&spelled.replace('7', "0")).unwrap()
    );
    assert!(wire::to_json(&task("lambda: 1")).is_err());
}

fn literal(number: &BigInt) -> String {
    if number.sign() == num_bigint::Sign::Minus {
        format!("({number})")
    } else {
        number.to_string()
    }
}

fn integers() -> impl Strategy<Value = BigInt> {
    prop_oneof![
        (-20i64..20).prop_map(BigInt::from),
        any::<i64>().prop_map(BigInt::from),
        (i64::MAX - 3..=i64::MAX).prop_map(BigInt::from),
        (any::<i128>(), any::<u64>()).prop_map(|(high, low)| (BigInt::from(high) << 64) + low),
    ]
}

fn floored(left: &BigInt, right: &BigInt) -> BigInt {
    let rest = left % right;
    let crosses = rest != BigInt::ZERO && (rest < BigInt::ZERO) != (*right < BigInt::ZERO);
    if crosses { rest + right } else { rest }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn integer_arithmetic_is_exact(left in integers(), right in integers()) {
        let (a, b) = (literal(&left), literal(&right));
        let program = format!(
            "return [str({a} + {b}), str({a} - {b}), str({a} * {b}), {a} < {b}, {a} == {b}];"
        );
        let expected = json!([
            (&left + &right).to_string(),
            (&left - &right).to_string(),
            (&left * &right).to_string(),
            left < right, left == right
        ]);
        prop_assert_eq!(value(&program), expected);
        if right != BigInt::ZERO {
            let program = format!("return [str({a} % {b}), str(({a} * {b}) / {b})];");
            let expected = json!([floored(&left, &right).to_string(), left.to_string()]);
            prop_assert_eq!(value(&program), expected);
        }
    }

    #[test]
    fn float_arithmetic_is_that_of_the_machine(left in -1e9f64..1e9, right in -1e9f64..1e9) {
        let program = format!("a = {left:?}; b = {right:?}; return [a + b, a - b, a * b, a / b, \
            a < b];");
        let (sum, product) = (left + right, left * right);
        let expected = json!([sum, left - right, product, left / right, left < right]);
        prop_assert_eq!(value(&program), expected);
    }

    #[test]
    fn division_of_integers_is_the_nearest_float(left in any::<i64>(), right in 1i64..1_000_000) {
        let quotient = value(&format!("return float(({left}) / {right});")).as_f64().unwrap();
        let exact = left as f64 / right as f64;
        prop_assert!((quotient - exact).abs() <= exact.abs() * 3e-16, "{} {}", quotient, exact);
    }

    #[test]
    fn sorting_agrees_with_the_library(mut numbers in prop::collection::vec(-50i64..50, 0..40)) {
        let program = format!("return sort({numbers:?});");
        numbers.sort_unstable();
        prop_assert_eq!(value(&program), json!(numbers));
    }

    #[test]
    fn slices_and_searches_agree_with_the_library(
        items in prop::collection::vec(0u32..4, 0..12), start in -14i64..14, stop in -14i64..14,
    ) {
        let bound = |at: i64| match at < 0 {
            true => items.len().saturating_sub(at.unsigned_abs() as usize),
            false => items.len().min(at as usize),
        };
        let (from, to) = (bound(start), bound(stop).max(bound(start)));
        let letters: String = items.iter().map(|at| ['a', 'é', '☂', 'd'][*at as usize]).collect();
        let inside: String = letters.chars().skip(from).take(to - from).collect();
        let found = items[from..].iter().position(|item| *item == 1).map(|at| at + from);
        let program = format!(
            "l = {items:?}; s = \"{letters}\"; return [l[{start}:{stop}], s[{start}:{stop}], \
                l[{start}:], s[:{stop}], find(l, 1, {start}), find(s, \"é\", {start})];"
        );
        let head: String = letters.chars().take(bound(stop)).collect();
        let expected = json!([items[from..to], inside, items[from..], head, found, found]);
        prop_assert_eq!(value(&program), expected);
    }

    #[test]
    fn json_text_gives_the_value_again(json in json_values()) {
        let program = format!("x = {json}; return [from_json(to_json(x)) == x, to_json(x)];");
        prop_assert_eq!(value(&program), json!([true, json.to_string()]));
    }

    #[test]
    fn a_value_survives_spawn_and_return(json in json_values()) {
        let program = format!(
            "f = lambda x: [x, x]; x = {json}; y = *spawn(f, [x]); return [y[0] == x, y[1]];"
        );
        prop_assert_eq!(value(&program), json!([true, json]));
    }
}

fn json_values() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        (-1000i64..1000).prop_map(|value| json!(value)),
        "[a-zé ]{0,90}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..12).prop_map(|map| json!(map)),
        ]
    })
}
