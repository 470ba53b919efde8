//! The page `docs/reference/cio.md`: its examples are the vectors, and its numbers are ours.

use std::path::Path;

use ciel_cio::format::{
    ENTRY_BYTES, FIRST_BLOCK_END, FORMAT, HEADER_BYTES, ITEM_BYTES, RECORD_HEAD_BYTES,
    TRAILER_BYTES,
};
use ciel_cio::limits::{EXTENT_BYTES_MAX, LOG_BLOCK_BYTES_MAX, RECORD_ITEMS_MAX};

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn examples_of_the_page_are_golden_files() {
    let page = read("docs/reference/cio.md");
    for name in ["complete", "partial"] {
        let vector = read(&format!("crates/ciel-cio/vectors/{name}.txt"));
        assert!(page.contains(&format!("```text\n{vector}```\n")), "{name}");
    }
}

#[test]
fn numbers_of_the_page_are_those_of_the_format() {
    let page = read("docs/reference/cio.md");
    let sums = [
        format!("| 0 | {HEADER_BYTES} | header |"),
        format!("| {HEADER_BYTES} | {FIRST_BLOCK_END} | first block of the log |"),
        format!("| end − {TRAILER_BYTES} | end | trailer, if the file was closed |"),
        format!("| 8 | 4 | format: {FORMAT} |"),
        format!("| {RECORD_HEAD_BYTES} | {ITEM_BYTES} each | items |"),
        format!("at most {RECORD_ITEMS_MAX} items"),
        format!("| 8 | 4 | length, 1 to {EXTENT_BYTES_MAX} | 0 |"),
        format!("length of the block, at most {LOG_BLOCK_BYTES_MAX} |"),
        format!("The index makes it quick to open a file and to find a byte. It has {ENTRY_BYTES}"),
    ];
    for sum in sums {
        assert!(page.contains(&sum), "{sum}");
    }
}
