//! Every golden vector gives its message, and every message its bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use ciel_protocol::wire::{EngineMessage, WorkerMessage};
use ciel_protocol::{Decoder, Framing, WireMessage, encode};
use serde_json::Value;

fn vectors(sender: &str) -> Vec<(String, Value)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../protocol/vectors");
    let mut vectors = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let vector: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            vectors.push((path.display().to_string(), vector));
        }
    }
    vectors.retain(|(_, vector)| vector["sender"] == sender);
    vectors
}

fn from_hexadecimal(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn decode_one<M: WireMessage>(bytes: &[u8]) -> M {
    let mut decoder = Decoder::new();
    decoder.push(bytes);
    let message = decoder.take().unwrap().expect("a whole message");
    decoder.finish().unwrap();
    message
}

fn check<M: WireMessage>(sender: &str) {
    let mut kinds = BTreeSet::new();
    for (name, vector) in vectors(sender) {
        let bytes = from_hexadecimal(vector["bytes"].as_str().unwrap());
        let message: M = decode_one(&bytes);
        let line = format!("{}\n", vector["message"]);
        assert_eq!(message, decode_one(line.as_bytes()), "{name}");
        assert_eq!(
            encode(&message, Framing::LengthPrefixed).unwrap(),
            bytes,
            "{name}"
        );
        let json = encode(&message, Framing::JsonLines).unwrap();
        assert_eq!(message, decode_one(&json), "{name}");
        kinds.insert(message.kind_name().unwrap());
    }
    assert_eq!(kinds, M::KINDS.iter().copied().collect());
}

#[test]
fn vectors_of_workers_cover_every_kind_and_hold() {
    check::<WorkerMessage>("worker");
}

#[test]
fn vectors_of_the_engine_cover_every_kind_and_hold() {
    check::<EngineMessage>("engine");
}
