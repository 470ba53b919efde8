//! Whole programs: operators and statements, and the meaning of each.

mod machine_support;

use machine_support::{assert_fails, eval, failure, run, value};
use serde_json::{Value, json};

#[test]
fn arithmetic_gives_what_a_reader_expects() {
    for (expression, expected) in [
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3", json!(9)),
        ("7 - 10", json!(-3)),
        ("6 / 3", json!(2)),
        ("7 / 2", json!(3.5)),
        ("-7 % 3", json!(2)),
        ("7 % -3", json!(-2)),
        ("7.5 % 2", json!(1.5)),
        ("-1.5", json!(-1.5)),
        ("1 + 0.5", json!(1.5)),
        ("2 * 0.5", json!(1.0)),
        ("1.0 / 4", json!(0.25)),
        ("\"a\" + \"b\"", json!("ab")),
        ("[1] + [2, 3]", json!([1, 2, 3])),
        ("- - 3", json!(3)),
    ] {
        assert_eq!(eval(expression), expected, "{expression}");
    }
}

#[test]
fn integers_have_any_size() {
    let big: Value = serde_json::from_str("9223372036854775808").expect("JSON");
    assert_eq!(eval("9223372036854775807 + 1"), big);
    assert_eq!(eval("9223372036854775808 - 1"), json!(i64::MAX));
    assert_eq!(eval("-9223372036854775807 - 1"), json!(i64::MIN));
    assert_eq!(eval("-(-9223372036854775807 - 1)"), big);
    assert_eq!(
        eval("99999999999999999999 / 3"),
        serde_json::from_str::<Value>("33333333333333333333").unwrap()
    );
    assert_eq!(eval("99999999999999999999 % 7"), json!(1));
    assert_eq!(
        eval("100000000000000000000 / 200000000000000000000"),
        json!(0.5)
    );
    assert_eq!(eval("100000000000000000000 == 1e20"), json!(true));
    assert_eq!(eval("9007199254740993 < 9007199254740992.0"), json!(false));
    assert_eq!(
        eval("str(123456789012345678901234567890)"),
        json!("123456789012345678901234567890")
    );
}

#[test]
fn comparisons_are_by_value_and_refuse_different_kinds() {
    for (expression, expected) in [
        ("1 == 1.0", true),
        ("1 == \"1\"", false),
        ("true == 1", false),
        ("null == false", false),
        ("[1, [2]] == [1, [2]]", true),
        ("[1] == [2]", false),
        ("{\"a\": 1, \"b\": 2} == {\"b\": 2, \"a\": 1}", true),
        ("{\"a\": 1} == {\"a\": 1, \"b\": 2}", false),
        ("\"a\" < \"b\"", true),
        ("[1, 2] < [1, 3]", true),
        ("[1] <= [1, 0]", true),
        ("1 != 2", true),
        ("2 >= 2", true),
        ("3 > 2.5", true),
        ("!true == false", true),
        ("!0", true),
        ("1 && 0 == 0", true),
    ] {
        assert_eq!(eval(expression), json!(expected), "{expression}");
    }
    assert_fails(
        "1 < \"a\"",
        "TypeError",
        "`<` cannot be applied to an integer and a string: 1 < \"a\"",
    );
    assert_fails(
        "true < false",
        "TypeError",
        "`<` cannot be applied to a boolean and a boolean: true < false",
    );
    assert_fails(
        "true + 1",
        "TypeError",
        "`+` cannot be applied to a boolean and an integer: true + 1",
    );
}

#[test]
fn and_and_or_short_circuit_and_give_an_operand() {
    assert_eq!(eval("false && 1 / 0"), json!(false));
    assert_eq!(eval("1 || 1 / 0"), json!(1));
    assert_eq!(eval("0 || \"x\""), json!("x"));
    assert_eq!(eval("1 && \"\""), json!(""));
}

#[test]
fn wrong_operands_name_both_types_and_values() {
    assert_fails(
        "\"a\" + 5",
        "TypeError",
        "`+` cannot be applied to a string and an integer: \"a\" + 5",
    );
    assert_fails(
        "[1] + 2",
        "TypeError",
        "`+` cannot be applied to a list and an integer: [1] + 2",
    );
    assert_fails("-\"a\"", "TypeError", "cannot negate a string: \"a\"");
    assert_fails("1 / 0", "DivisionByZero", "division by zero");
    assert_fails("1.0 % 0", "DivisionByZero", "division by zero");
    assert_fails(
        "1e308 * 10",
        "OutOfRange",
        "the result is too large for a float, or is not a number",
    );
    assert_fails(
        "[1, 2][2]",
        "IndexError",
        "index 2 is out of range: the list has 2 elements",
    );
    assert_fails(
        "\"ab\"[-3]",
        "IndexError",
        "index -3 is out of range: the string has 2 characters",
    );
    assert_fails(
        "{\"alpha\": 1}.alpah",
        "KeyError",
        "the dictionary has no key \"alpah\"",
    );
    assert_fails("null[0]", "TypeError", "cannot index null: null");
    assert_fails(
        "{1.5: 2}",
        "TypeError",
        "a key is a string or an integer, not a float: 1.5",
    );
    assert_fails("5(1)", "TypeError", "cannot call an integer: 5");
    assert_fails("*5", "TypeError", "cannot dereference an integer: 5");
    let thrown = failure("return {\"alpha\": 1}.alpah;");
    assert_eq!(thrown.hint.as_deref(), Some("did you mean \"alpha\"?"));
}

#[test]
fn indexing_counts_from_both_ends_and_reads_characters() {
    assert_eq!(eval("[1, 2, 3][-1]"), json!(3));
    assert_eq!(eval("\"héllo\"[1]"), json!("é"));
    assert_eq!(eval("\"abc\"[-1]"), json!("c"));
    assert_eq!(eval("{\"a\": {\"b\": [7]}}.a.b[0]"), json!(7));
    assert_eq!(eval("{1: \"one\"}[1]"), json!("one"));
}

#[test]
fn assignments_reach_into_lists_and_dictionaries() {
    let program = "
        x = [1, 2]; x[4] = 5; x[0] += 10; x[-1] -= 1; x += 9;
        d = {}; d.a = {}; d[\"a\"].b = [1]; d.a.b += 2; d.a.n = 1; d.a.n += 4;
        s = \"a\"; s += \"b\";
        y = x; y[0] = 0;
        return [x, d, s];";
    let expected = json!([[0, 2, null, null, 4, 9], {"a": {"b": [1, 2], "n": 5}}, "ab"]);
    assert_eq!(value(program), expected);
}

#[test]
fn strings_that_grow_leave_older_ones_alone() {
    let program = "
        s = \"a\"; s += \"b\"; t = s; s += \"c\"; t += \"d\"; u = s + s; s += s;
        return [s, t, u];";
    assert_eq!(value(program), json!(["abcabc", "abd", "abcabc"]));
}

#[test]
fn loops_break_continue_and_leave_their_variable() {
    let program = "
        log = [];
        for (i in range(10)) { if (i == 2) { continue; } if (i == 5) { break; } log += i; }
        n = 3; while (n > 0) { n -= 1; if (n == 1) { continue; } log += n * 10; }
        do { n += 1; if (n == 2) { continue; } } while (n < 4);
        for (k in {\"a\": 1, \"b\": 2}) { log += k; }
        for (c in \"hé\") { log += c; }
        for (a in [1, 2]) { for (b in [1, 2]) { if (b == 2) { break; } log += [a, b]; } }
        return [log, i, n];";
    let expected = json!([
        [0, 1, 3, 4, 20, 0, "a", "b", "h", "é", [1, 1], [2, 1]],
        5,
        4
    ]);
    assert_eq!(value(program), expected);
}

#[test]
fn functions_close_over_what_was_there_and_may_be_recursive_both_ways() {
    let program = "
        n = 1;
        function add(x) { return x + n; }
        n = 100;
        function even(k) { if (k == 0) { return true; } return odd(k - 1); }
        function odd(k) { if (k == 0) { return false; } return even(k - 1); }
        fact = lambda k: 0;
        fact = lambda k: 1;
        function make(y) { return lambda z: y * z; }
        double = make(2); triple = make(3);
        function assigns(p) { n = p; p = 0; return n; }
        return [add(1), even(10), odd(7), double(4), triple(4), assigns(7), n];";
    assert_eq!(value(program), json!([2, true, true, 8, 12, 7, 100]));
}

#[test]
fn a_lambda_may_name_itself() {
    let program = "fact = lambda n: pick(n); function pick(n) { if (n < 2) { return 1; } return \
        n * fact(n - 1); }
        return fact(20);";
    assert_eq!(value(program), json!(2432902008176640000u64));
}

#[test]
fn a_script_or_function_without_return_gives_null() {
    assert_eq!(value("x = 1;"), Value::Null);
    assert_eq!(
        value("function f() { x = 1; } return [f(), 1];"),
        json!([null, 1])
    );
    assert_eq!(value("return;"), Value::Null);
}

#[test]
fn calls_with_the_wrong_number_of_arguments_fail_when_they_are_dynamic() {
    let thrown = failure("function f(a, b) { return a; } g = [f]; return g[0](1);");
    assert_eq!(thrown.message, "`f` takes 2 arguments, not 1");
    let thrown = failure("g = [len]; return g[0]();");
    assert_eq!(thrown.message, "`len` takes 1 argument, not 0");
}

#[test]
fn a_variable_without_a_value_is_named() {
    let thrown = failure("if (false) { x = 1; } return x;");
    assert_eq!(
        (thrown.kind.as_str(), thrown.message.as_str()),
        ("NameError", "`x` has no value yet")
    );
    assert!(thrown.hint.is_some());
}

#[test]
fn try_catches_at_every_depth_and_goes_on() {
    let program = "
        function deep(n) { if (n == 0) { return 1 / 0; } return deep(n - 1); }
        log = [];
        for (i in range(3)) {
            try { if (i == 1) { continue; } deep(i); log += \"not reached\"; }
            catch (e) { log += e.kind; if (i == 2) { break; } }
        }
        try { try { throw \"inner\"; } catch (e) { throw e; } } catch (e) { log += [e.kind, \
            e.message]; }
        try { throw {\"kind\": \"Mine\", \"message\": \"m\", \"x\": 1}; } catch (e) { log += \
            [e.kind, e.x]; }
        try { throw [1, 2]; } catch (e) { log += e.value[1]; }
        function returns() { try { return 5; } catch (e) { return 6; } }
        log += returns();
        try { x = 1; } catch (e) { x = 2; }
        return [log, x];";
    let expected = json!([
        [
            "DivisionByZero",
            "DivisionByZero",
            ["Thrown", "inner"],
            ["Mine", 1],
            2,
            5
        ],
        1
    ]);
    assert_eq!(value(program), expected);
}

#[test]
fn an_uncaught_failure_has_its_place_and_a_trace() {
    let outcome =
        run("function f(x) {\n  return x + null;\n}\nfunction g() { return f(1); }\nreturn g();");
    let thrown = outcome.thrown();
    assert_eq!(
        thrown.trace,
        [
            "f at test.sw:2:10",
            "g at test.sw:4:23",
            "the script at test.sw:5:8"
        ]
    );
    let place = outcome.place.expect("it has a place");
    assert_eq!(
        (place.code.as_str(), place.span.start, place.span.end),
        ("type-error", 25, 33)
    );
}

#[test]
fn a_deep_recursion_keeps_the_ends_of_its_trace() {
    let thrown = failure(
        "function f(n) { if (n == 0) { return null[0]; } return f(n - 1); } return f(10019);",
    );
    assert_eq!(thrown.trace.len(), 31);
    assert_eq!(thrown.trace[20], "… 9,991 more");
}

#[test]
fn a_thrown_value_is_kept_beside_its_text() {
    let thrown = failure("throw {\"code\": 7};");
    assert_eq!(
        (thrown.kind.as_str(), thrown.message.as_str()),
        ("Thrown", "{\"code\":7}")
    );
    assert_eq!(thrown.value, Some(json!({"code": 7})));
    let thrown = failure("try { 1 / 0; } catch (e) { throw e; }");
    assert_eq!(thrown.kind, "DivisionByZero");
    assert_eq!(thrown.trace.len(), 1);
}

#[test]
fn dictionary_that_contains_itself_is_too_deep_to_show() {
    // In a build without optimisation its 400 levels overflowed the stack of a thread, and the
    // whole process ended. Found by changing programs at random.
    let program = |last: &str| format!("d = {{\"b\": {{}}}}; d.b.c = d; {last}");
    for last in ["return d;", "print(d);", "return to_json(d);", "throw d;"] {
        assert_eq!(failure(&program(last)).kind, "TooDeep", "{last}");
    }
}

#[test]
fn a_list_that_contains_itself_cannot_be_shown_or_compared() {
    assert_eq!(failure("x = []; x += x; return x;").kind, "TooDeep");
    assert_eq!(failure("x = []; x += x; print(x);").kind, "TooDeep");
    assert_eq!(
        failure("x = []; x += x; y = []; y += y; return x == y;").kind,
        "TooDeep"
    );
    assert_eq!(value("x = []; x += x; return x == x;"), json!(true));
}

#[test]
fn a_function_as_the_jobs_result_is_an_error_with_a_hint() {
    let thrown = failure("function f() { return 1; } return [f];");
    assert_eq!(
        thrown.message,
        "a function cannot be the job's result: <function f>"
    );
    assert!(thrown.hint.is_some());
}
