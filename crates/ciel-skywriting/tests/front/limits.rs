//! Programs without bounds meet a message, not a full stack. Test threads have a stack of 2 MiB.

use ciel_skywriting::front::{Loader, check};
use ciel_skywriting::limits::{
    EXPRESSION_HEIGHT_MAX, INTEGER_DIGITS_MAX, NESTING_MAX, PROBLEMS_MAX,
};

use crate::support::{check_text, messages, program};

#[test]
fn hundred_thousand_open_parentheses_are_an_error() {
    assert!(messages(&"(".repeat(100_000))[0].contains("nested too deeply"));
}

#[test]
fn thousands_of_anything_open_are_an_error() {
    let openings = [
        "(",
        "[",
        "{",
        "-",
        "!",
        "*",
        "f(",
        "f[",
        "{1:",
        "lambda:",
        "1+(",
        "1 || 1 && 1 == 1 < 1 + 1 * (",
        "if (1) {",
        "while (1) {",
        "do {",
        "for (x in y) {",
        "try {",
        "function f() {",
        "x = function () {",
        "if (1) { } else ",
        "f(function () { x = ",
    ];
    for opening in openings {
        let text = opening.repeat(5_000);
        assert!(!messages(&text).is_empty(), "{opening}");
        assert!(!messages(&format!("x = {text}")).is_empty(), "{opening}");
    }
}

#[test]
fn thousands_of_anything_in_a_row_are_an_error() {
    for (first, next) in [("x = f", "()"), ("x = f", "[0]"), ("x", ".a")] {
        let text = format!("f = 1; {first}{} = 1;", next.repeat(20_000));
        assert!(messages(&text)[0].contains("too long"), "{next}");
    }
}

/// A string that a program had put together from 2,000 lines was too long an expression, and a
/// table written as `else if` ended after 128 lines with two errors. Both were trees as high as the
/// text is long; they are lists now.
#[test]
fn operators_and_branches_in_a_row_have_no_limit() {
    for operator in ["+", "-", "<", "==", "&&", "||"] {
        program(&format!(
            "x = 1{};",
            format!(" {operator} 1").repeat(50_000)
        ));
    }
    let branches = "if (x == 1) { y = 1; } else ".repeat(20_000);
    program(&format!("x = 1; y = 0; {branches} {{ y = 2; }}"));
}

#[test]
fn program_at_both_limits_is_accepted() {
    let depth = NESTING_MAX as usize - 8;
    let height = EXPRESSION_HEIGHT_MAX as usize - 10;
    let tree = format!("f{}", "[0]".repeat(height));
    program(&format!(
        "f = 1; {}x = {tree};{}",
        "if (true) {".repeat(depth),
        "}".repeat(depth)
    ));
    let depth = depth / 2;
    let inner = format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    program(&format!(
        "{}x = {inner};{}",
        "function f() {".repeat(depth),
        "}".repeat(depth)
    ));
}

#[test]
fn long_integer_is_read_and_a_longer_one_refused() {
    program(&format!("x = {};", "9".repeat(INTEGER_DIGITS_MAX)));
    assert!(
        messages(&format!("x = {};", "9".repeat(INTEGER_DIGITS_MAX + 1)))[0].contains("digits")
    );
}

#[test]
fn thousands_of_mistakes_give_the_first_few() {
    for line in [
        "x = ;\n", "@\n", "\"\n", "x y\n", "break;\n", "}\n", "len();\n",
    ] {
        let problems = check_text(&line.repeat(20_000)).unwrap_err();
        assert!(
            (1..=PROBLEMS_MAX).contains(&problems.diagnostics.len()),
            "{line}"
        );
    }
}

struct Endless(u32);

impl Loader for Endless {
    fn load(&mut self, _name: &str, _from: &str) -> Result<(String, Vec<u8>), String> {
        self.0 += 1;
        Ok((format!("{}.sw", self.0), b"include \"next.sw\";".to_vec()))
    }
}

#[test]
fn endless_includes_are_an_error() {
    let problems = check("job.sw", b"include \"next.sw\";", &mut Endless(0)).unwrap_err();
    assert!(problems.to_string().contains("nested too deeply"));
    let many = b"while (true) { include \"next.sw\"; }".repeat(2_000);
    let mut flat = Flat(0);
    assert!(
        check("job.sw", &many, &mut flat)
            .unwrap_err()
            .to_string()
            .contains("more than")
    );
}

struct Flat(u32);

impl Loader for Flat {
    fn load(&mut self, _name: &str, _from: &str) -> Result<(String, Vec<u8>), String> {
        self.0 += 1;
        Ok((format!("{}.sw", self.0), b"x = 1;".to_vec()))
    }
}
