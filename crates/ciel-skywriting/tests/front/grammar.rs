//! Tokens, precedence and the forms of statements.

use crate::support::{messages, program, returned};

#[test]
fn operators_of_equal_strength_join_from_the_left() {
    assert_eq!(returned("return 1 - 2 - 3;"), "(Subtract (Subtract 1 2) 3)");
    assert_eq!(
        returned("return 8 / 4 % 3 * 2;"),
        "(Multiply (Remainder (Divide 8 4) 3) 2)"
    );
    assert_eq!(
        returned("return 1 < 2 >= 3;"),
        "(GreaterOrEqual (Less 1 2) 3)"
    );
    assert_eq!(returned("return 1 == 2 != 3;"), "(NotEqual (Equal 1 2) 3)");
}

#[test]
fn stronger_operators_join_first() {
    assert_eq!(
        returned("return 1 || 2 && 3 == 4 < 5 + 6 * 7;"),
        "(Or 1 (And 2 (Equal 3 (Less 4 (Add 5 (Multiply 6 7))))))"
    );
    assert_eq!(
        returned("return 1 * 2 + 3 < 4 == 5 && 6 || 7;"),
        "(Or (And (Equal (Less (Add (Multiply 1 2) 3) 4) 5) 6) 7)"
    );
    assert_eq!(returned("return (1 + 2) * 3;"), "(Multiply (Add 1 2) 3)");
}

#[test]
fn prefix_operators_bind_tighter_than_infix_ones_and_looser_than_postfix() {
    assert_eq!(
        returned("x = 1; return !x && -x == *x;"),
        "(And (! x) (Equal (- x) (* x)))"
    );
    assert_eq!(returned("x = 1; return *x[0].a(2);"), "(* x[0][\"a\"](2))");
    assert_eq!(
        returned("x = 1; return x * *x - -x;"),
        "(Subtract (Multiply x (* x)) (- x))"
    );
    assert_eq!(returned("x = 1; return -!*x;"), "(- (! (* x)))");
}

#[test]
fn trailing_commas_are_allowed() {
    assert_eq!(returned("return [1, 2,];"), "[1, 2]");
    assert_eq!(returned("return {\"a\": 1,};"), "{\"a\": 1}");
    assert_eq!(returned("return max(1, 2,);"), "max(1, 2)");
    assert_eq!(returned("return [[], {}];"), "[[], {}]");
}

#[test]
fn numbers_are_read_at_any_size() {
    assert_eq!(
        returned("return 123456789012345678901234567890;"),
        "123456789012345678901234567890"
    );
    assert_eq!(
        returned("return [1.5, 1e3, 2E-1, .5, 1.];"),
        "[1.5, 1000.0, 0.2, 0.5, 1.0]"
    );
    assert_eq!(returned("return 007;"), "7");
}

#[test]
fn escapes_stand_for_their_characters() {
    assert_eq!(
        returned(r#"return "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é";"#),
        format!("{:?}", "\"\\/\u{8}\u{c}\n\r\té😀é")
    );
}

#[test]
fn comments_and_first_line_are_skipped() {
    let text = "#!/usr/bin/env ciel\n// one\n/* two\n ** * / */ return /**/ 1; // three";
    assert_eq!(returned(text), "1");
    assert_eq!(returned("\u{feff}return 1;"), "1");
    assert_eq!(returned("return 1;\r\n"), "1");
}

#[test]
fn only_comments_are_an_empty_program() {
    assert!(program("// nothing\n").functions[0].body.is_empty());
    assert!(program("#!/usr/bin/env ciel").functions[0].body.is_empty());
}

#[test]
fn every_statement_is_read() {
    let text = r#"
        x = 1; x += 2; x -= 1; list = [0]; list[0] += 1; table = {}; table.a = 1; table["b"] = 2;
        if (x == 1) { x = 2; } else if (x == 2) { x = 3; } else { x = 4; }
        while (x < 9) { x += 1; if (x == 5) { continue; } }
        do { x -= 1; break; } while (x > 0);
        for (i in range(3)) { print(i); }
        function f(a, b) { return; }
        try { throw "no"; } catch (e) { print(e.message); }
        g = lambda : 1; h = lambda a, b,: a + b; k = function () { };
        f(1, 2); return [i, e];
    "#;
    assert_eq!(program(text).functions.len(), 5);
}

#[test]
fn lambda_body_reaches_as_far_as_it_can() {
    assert_eq!(returned("return (lambda x: x + 1 == 2)(3);"), "closure(3)");
    assert_eq!(returned("x = 1; return [lambda y: y, x];"), "[closure, x]");
}

#[test]
fn semicolon_alone_is_nothing() {
    assert_eq!(program("function f() { };; ;").functions[0].body.len(), 1);
}

#[test]
fn error_in_one_statement_leaves_the_next_ones_readable() {
    let text = "a = ;\nb = 1;\nc = );\nif (b) { d = ]; e = 2; }\nf = 3 3;\n";
    let lines: Vec<String> = messages(text)
        .iter()
        .map(|line| line.split(':').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(lines, ["1", "3", "4", "5"]);
}
