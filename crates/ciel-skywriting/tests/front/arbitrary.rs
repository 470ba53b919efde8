//! Whatever the bytes are, the front end answers, and its messages can be shown.

use ciel_skywriting::front::check;
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::support::Files;

const GOOD: &str = include_str!("good.sw");

/// Pieces of programs, for texts that nearly are some.
const PIECES: &[&str] = &[
    "function",
    "if",
    "else",
    "for",
    "in",
    "while",
    "do",
    "return",
    "break",
    "continue",
    "true",
    "null",
    "lambda",
    "include",
    "try",
    "catch",
    "throw",
    "f",
    "x",
    "len",
    "remove",
    "spawn",
    "1",
    "2.5",
    "\"s\"",
    "\"",
    "'",
    "/*",
    "//",
    "\n",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    "[:",
    "[1:2]",
    ".",
    "=",
    "+=",
    "==",
    "<",
    "+",
    "-",
    "*",
    "/",
    "&&",
    "||",
    "!",
    "\\",
    "é",
    "\u{1b}",
    "\r",
    "\"stdinout\"",
];

fn answer(bytes: &[u8]) {
    let mut files = Files(vec![("x.sw", b"x = 1;".to_vec())]);
    if let Err(problems) = check("job.sw", bytes, &mut files) {
        assert!(!problems.diagnostics.is_empty());
        assert!(problems.render(false).starts_with("error: "));
        assert!(!problems.render(true).is_empty());
    }
}

#[test]
fn good_program_is_good() {
    assert!(check("good.sw", GOOD.as_bytes(), &mut Files(Vec::new())).is_ok());
}

proptest! {
    #![proptest_config(Config { cases: 150, failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        answer(&bytes);
    }

    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        answer(text.as_bytes());
    }

    #[test]
    fn pieces_in_any_order_are_answered(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..80)
    ) {
        answer(pieces.join(" ").as_bytes());
        answer(pieces.concat().as_bytes());
    }

    #[test]
    fn changed_program_is_answered(
        at in 0..GOOD.len(),
        length in 0..40_usize,
        piece in proptest::sample::select(PIECES),
    ) {
        let mut bytes = GOOD.as_bytes().to_vec();
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, piece.bytes());
        answer(&bytes);
    }

    #[test]
    fn cut_program_is_answered(at in 0..GOOD.len()) {
        answer(&GOOD.as_bytes()[..at]);
    }
}
