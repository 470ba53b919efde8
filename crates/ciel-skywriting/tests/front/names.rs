//! What names mean: scopes, captures, cells, and checks of calls.

use ciel_skywriting::hir::{ExprKind, StmtKind};

use crate::support::{captures, function, messages, program};

#[test]
fn functions_of_one_level_share_cells_in_both_orders() {
    let program = program(
        "function even(n) { if (n == 0) { return true; } return odd(n - 1); }
         function odd(n) { if (n == 0) { return false; } return even(n - 1); }
         fact = lambda n: fact(n - 1);",
    );
    assert_eq!(captures(&program, "even"), "odd:Cell");
    assert_eq!(captures(&program, "odd"), "even:Cell");
    assert_eq!(captures(&program, "fact"), "fact:Cell");
    assert!(
        program.functions[0]
            .slots
            .iter()
            .all(|variable| variable.cell)
    );
}

#[test]
fn function_that_no_closure_takes_is_in_no_cell() {
    let program = program("function f() { return 1; } return f();");
    assert!(!program.functions[0].slots[0].cell);
}

#[test]
fn plain_variable_is_captured_by_value() {
    let program = program("x = 1; function f(y) { return x + y; }");
    assert_eq!(captures(&program, "f"), "x:Value");
    assert_eq!(function(&program, "f").slots.len(), 2);
}

#[test]
fn captured_name_that_is_assigned_begins_with_the_outer_value() {
    let program = program(
        "x = 1; function f() { x = x + 1; return x; } function g() { x += 1; return x; }
         function h() { if (x > 1) { f = 3; } return f; }",
    );
    assert_eq!(captures(&program, "f"), "x:Value");
    assert_eq!(captures(&program, "g"), "x:Value");
    assert_eq!(captures(&program, "h"), "f:Entry x:Value");
    assert!(
        !function(&program, "h")
            .slots
            .iter()
            .any(|variable| variable.cell)
    );
}

#[test]
fn name_that_is_surely_assigned_first_is_not_captured() {
    let program = program(
        "x = 1; i = 2; e = 3; y = 4;
         function f(c) {
           x = 5;
           for (i in range(3)) { print(i); }
           try { print(x); } catch (e) { print(e); }
           if (c) { y = 1; } else { y = 2; }
           return x + y;
         }",
    );
    assert_eq!(captures(&program, "f"), "");
}

#[test]
fn name_that_is_perhaps_assigned_first_is_captured() {
    let program = program(
        "x = 1; i = 2; y = 3;
         function f(c) {
           if (c) { x = 5; }
           for (i in c) { y = 1; }
           return x + i + y;
         }",
    );
    assert_eq!(captures(&program, "f"), "i:Value x:Value y:Value");
}

#[test]
fn name_passes_through_the_functions_between() {
    let program = program(
        "x = 1; function leaf() { return x; }
         function outer() { function inner() { return leaf() + x; } return inner(); }",
    );
    assert_eq!(captures(&program, "outer"), "leaf:Cell x:Value");
    assert_eq!(captures(&program, "inner"), "leaf:Cell x:Value");
}

#[test]
fn variables_of_blocks_stay_visible() {
    let text = "for (i in [1]) { a = i; } try { b = 1; } catch (e) { } return [i, a, b, e];";
    assert!(messages(text).is_empty());
}

#[test]
fn builtin_is_hidden_where_its_name_is_assigned() {
    let program = program("len = len([1, 2]); function f() { return len; } return range;");
    let script = &program.functions[0];
    assert_eq!(script.slots[0].name, "len");
    let StmtKind::Assign { value, .. } = &script.body[0].kind else {
        panic!("no prologue")
    };
    assert!(matches!(value.kind, ExprKind::Builtin(_)));
    assert_eq!(captures(&program, "f"), "len:Value");
    let StmtKind::Return(Some(value)) = &script.body[3].kind else {
        panic!("no return")
    };
    assert!(matches!(value.kind, ExprKind::Builtin(_)));
}

#[test]
fn function_that_is_assigned_again_is_not_checked() {
    assert!(messages("function f(x) { return x; } f = lambda: 1; return f();").is_empty());
    assert!(
        messages("function f(x) { return x; } g = function (f) { return f(1, 2); };").is_empty()
    );
    let branches =
        "if (true) { function f(x) { return x; } } else { function f() { return 1; } } f();";
    assert!(messages(branches).is_empty());
}

#[test]
fn known_function_is_checked_where_it_is_called_and_spawned() {
    let text = "function f(x) { return x; } function g() { return f(); } return spawn(f, [1, 2]);";
    assert_eq!(
        messages(text),
        [
            "job.sw:1:51: `f` takes 1 argument, but none are given",
            "job.sw:1:74: `f` takes 1 argument, but 2 are given",
        ]
    );
}

#[test]
fn lambda_gets_the_name_of_its_variable() {
    let program = program("add = lambda a, b: a + b; t = {}; t.f = lambda: 1;");
    assert_eq!(function(&program, "add").parameters, 2);
    assert_eq!(program.functions[2].name, None);
}

#[test]
fn function_span_is_its_head() {
    let text = "function add(a, b) { return a; } g = lambda x: x;";
    let program = program(text);
    let head = |index: usize| {
        let span = program.functions[index].span;
        &text[span.start as usize..span.end as usize]
    };
    assert_eq!(head(1), "function add(a, b)");
    assert_eq!(head(2), "lambda x");
}

#[test]
fn unknown_name_is_reported_once() {
    assert_eq!(
        messages("x = zebra; y = zebra; function f() { return zebra; }").len(),
        1
    );
}
