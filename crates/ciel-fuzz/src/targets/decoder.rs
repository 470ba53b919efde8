//! The decoder of the executor protocol: what a worker may send.
//!
//! How the bytes are cut must not matter, and what was decoded can be encoded and decoded again.

use ciel_protocol::wire::{EngineMessage, WorkerMessage};
use ciel_protocol::{Decoder, EncodeError, Framing, WireMessage, encode};

use super::{files_below, in_repository};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "decoder",
    corpus,
    read,
    answers_min: 50,
};

/// The golden messages of both sides, in both framings.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    for path in files_below(&in_repository("protocol/vectors")) {
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read(&path).expect("a vector can be read");
        let vector: serde_json::Value = serde_json::from_slice(&text).expect("a vector is JSON");
        corpus.push(format!("{}\n", vector["message"]).into_bytes());
        let digits = vector["bytes"].as_str().expect("a vector has bytes");
        corpus.push(from_hexadecimal(digits));
    }
    corpus
}

fn from_hexadecimal(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2);
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
    pairs.map(byte).collect()
}

fn read(input: &[u8]) -> String {
    let sent = decoded::<WorkerMessage>(input);
    let received = decoded::<EngineMessage>(input);
    format!("{sent} {received}")
}

/// The kinds of the messages, and the error that follows them.
fn decoded<M: WireMessage + PartialEq>(input: &[u8]) -> String {
    let whole = decoded_in_pieces::<M>(input, input.len().max(1));
    let bytes = decoded_in_pieces::<M>(input, 1);
    assert!(whole == bytes, "the cuts between the bytes matter");
    let (messages, error) = whole;
    for message in &messages {
        for framing in [Framing::LengthPrefixed, Framing::JsonLines] {
            let encoded = match encode(message, framing) {
                Err(EncodeError::NotInJson { .. }) if framing == Framing::JsonLines => continue,
                encoded => encoded.expect("what was decoded can be encoded"),
            };
            let (again, error) = decoded_in_pieces::<M>(&encoded, encoded.len());
            assert!(error.is_empty(), "{error}: {message:?} as {framing:?}");
            assert!(again == [message.clone()], "{message:?} as {framing:?}");
        }
    }
    let kinds = messages.iter().filter_map(WireMessage::kind_name);
    let kinds: Vec<&str> = kinds.collect();
    format!("{} {error}", kinds.join("+"))
}

/// What is decoded, and the code of the error that ends it; none for a whole stream.
fn decoded_in_pieces<M: WireMessage>(input: &[u8], bytes: usize) -> (Vec<M>, String) {
    let mut decoder = Decoder::new();
    let mut messages = Vec::new();
    for piece in input.chunks(bytes) {
        decoder.push(piece);
        loop {
            match decoder.take() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, error.code().to_string()),
            }
        }
    }
    let end = decoder.finish();
    (
        messages,
        end.err()
            .map_or(String::new(), |error| error.code().to_string()),
    )
}
