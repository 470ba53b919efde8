//! The examples in `protocol/PROTOCOL.md` are messages, its numbers are the limits, and it names
//! every verb.

use std::fs;

use ciel_protocol::wire::{EngineMessage, WorkerMessage};
use ciel_protocol::{Decoder, WireMessage, limits};
use serde_json::{Deserializer, Value};

fn page() -> String {
    fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../protocol/PROTOCOL.md"
    ))
    .unwrap()
}

/// Decodes the blocks of one sender; a block holds messages with line breaks anywhere.
fn messages<M: WireMessage>(page: &str, fence: &str) -> Vec<M> {
    let mut decoder = Decoder::new();
    for block in page.split(fence).skip(1) {
        let text = block.split("```").next().expect("a split has a first part");
        for message in Deserializer::from_str(text).into_iter::<Value>() {
            decoder.push(format!("{}\n", message.unwrap()).as_bytes());
        }
    }
    std::iter::from_fn(|| decoder.take().unwrap()).collect()
}

fn check<M: WireMessage>(fence: &str) {
    let page = page();
    assert!(
        messages::<M>(&page, fence).len() > 3,
        "the page has lost its examples"
    );
    for kind in M::KINDS {
        assert!(
            page.contains(&format!("`{kind}`")),
            "{kind} is not described"
        );
    }
}

#[test]
fn examples_of_workers_are_messages() {
    check::<WorkerMessage>("```json worker\n");
}

#[test]
fn examples_of_the_engine_are_messages() {
    check::<EngineMessage>("```json engine\n");
}

#[test]
fn numbers_of_the_page_are_the_limits() {
    let page = page();
    for (name, number) in [
        ("PROTOCOL", limits::PROTOCOL as usize),
        ("MESSAGE_BYTES_MAX", limits::MESSAGE_BYTES_MAX),
        ("ANSWERS_BYTES_MAX", limits::ANSWERS_BYTES_MAX),
        ("DEFINITIONS_MAX", limits::DEFINITIONS_MAX as usize),
        ("SLOTS_MAX", limits::SLOTS_MAX as usize),
        ("VALUE_BYTES_BELOW", limits::VALUE_BYTES_BELOW),
        (
            "DELIVERED_HANDLE_MIN",
            limits::DELIVERED_HANDLE_MIN as usize,
        ),
        ("CACHES_MAX", limits::CACHES_MAX),
        ("CHILDREN_MAX", limits::CHILDREN_MAX as usize),
        ("EXCEPTION_BYTES_MAX", limits::EXCEPTION_BYTES_MAX),
        ("TRACEBACK_CALLS_MAX", limits::TRACEBACK_CALLS_MAX),
    ] {
        assert!(
            page.contains(&format!("| `{name}` | {number} |")),
            "{name} = {number}"
        );
    }
}
