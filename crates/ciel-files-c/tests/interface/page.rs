//! The programs on the page `docs/reference/ordered-c.md` do what the page says.

use std::fs;

use crate::support::{Place, can_compile, repository};

/// A block of code: its language and its text.
type Block = (String, String);

fn blocks() -> Vec<Block> {
    let page = fs::read_to_string(repository().join("docs/reference/ordered-c.md")).unwrap();
    let parts = page.split("```").skip(1).step_by(2);
    let blocks = parts.map(|block| {
        let (language, text) = block.split_once('\n').unwrap();
        (language.to_owned(), text.to_owned())
    });
    blocks.collect()
}

#[test]
fn programs_of_the_page_write_what_the_page_says() {
    if !can_compile() {
        return;
    }
    let blocks = blocks();
    let mut programs = 0;
    for pair in blocks.windows(2) {
        let [(language, code), (kind, expected)] = pair else {
            unreachable!("a window has two blocks");
        };
        if language != "c" && language != "cpp" {
            continue;
        }
        assert_eq!(kind, "text", "what a program writes stands behind it");
        let place = Place::new();
        let source = place.path(&format!("program.{language}"));
        fs::write(&source, code).unwrap();
        let program = place.compile(&source, &[]);
        place.run(&program, &[]);
        assert_eq!(place.text("log"), *expected);
        programs += 1;
    }
    assert_eq!(programs, 3);
}
