//! The programs in C and C++ on the pages do what the pages say.

use std::fs;

use crate::support::{Place, can_compile, repository};

/// A block of code: its language and its text.
type Block = (String, String);

/// The pages that have such programs, and how many.
const PAGES: [(&str, usize); 2] = [
    ("docs/reference/ordered-c.md", 3),
    ("docs/concepts/serial-append.md", 1),
];

fn blocks(page: &str) -> Vec<Block> {
    let page = fs::read_to_string(repository().join(page)).unwrap();
    let parts = page.split("```").skip(1).step_by(2);
    let blocks = parts.map(|block| {
        let (language, text) = block.split_once('\n').unwrap();
        (language.to_owned(), text.to_owned())
    });
    blocks.collect()
}

#[test]
fn programs_of_the_pages_write_what_the_pages_say() {
    if !can_compile() {
        return;
    }
    for (page, programs) in PAGES {
        assert_eq!(run_programs(page), programs, "{page}");
    }
}

/// Runs the programs of a page, and counts them.
fn run_programs(page: &str) -> usize {
    let blocks = blocks(page);
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
    programs
}
