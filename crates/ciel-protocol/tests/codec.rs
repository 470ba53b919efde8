//! The codec cuts streams of bytes into messages, whatever the bytes are and however they are cut.

use ciel_protocol::wire::{EngineMessage, Hello, Log, Ping, WorkerMessage};
use ciel_protocol::{DecodeError, Decoder, EncodeError, Framing, WireMessage, encode, limits};
use proptest::prelude::*;

const FRAMINGS: [Framing; 2] = [Framing::JsonLines, Framing::LengthPrefixed];

fn hello() -> WorkerMessage {
    WorkerMessage::connection(Hello {
        protocol: limits::PROTOCOL,
        ..Hello::default()
    })
}

fn log(text: &str) -> WorkerMessage {
    WorkerMessage::about(
        7,
        Log {
            message: text.into(),
            ..Log::default()
        },
    )
}

fn take_all<M: WireMessage>(decoder: &mut Decoder<M>) -> Result<Vec<M>, DecodeError> {
    let mut messages = Vec::new();
    loop {
        let is_announced = decoder.has_message();
        let taken = decoder.take();
        assert_eq!(is_announced, !matches!(taken, Ok(None)));
        match taken? {
            Some(message) => messages.push(message),
            None => return Ok(messages),
        }
    }
}

fn decode(bytes: &[u8]) -> Result<Vec<WorkerMessage>, DecodeError> {
    let mut decoder = Decoder::new();
    decoder.push(bytes);
    take_all(&mut decoder)
}

#[test]
fn first_byte_decides_the_framing() {
    for framing in FRAMINGS {
        let mut decoder = Decoder::<WorkerMessage>::new();
        assert_eq!(decoder.framing(), None);
        decoder.push(&encode(&hello(), framing).unwrap()[..1]);
        assert_eq!(decoder.take(), Ok(None));
        assert_eq!(decoder.framing(), Some(framing));
    }
}

#[test]
fn framing_given_beforehand_is_kept() {
    let mut decoder = Decoder::<WorkerMessage>::with_framing(Framing::LengthPrefixed);
    decoder.push(b"{\"pong\":{}}\n");
    assert!(matches!(decoder.take(), Err(DecodeError::Garbage { .. })));
}

#[test]
fn blank_lines_and_carriage_returns_are_skipped() {
    let messages = decode(b"{\"pong\":{}}\r\n\n  \n{ \"pong\": {\"nonce\": 0} }\n").unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0], messages[1]);
}

#[test]
fn foreign_talk_at_the_beginning_is_garbage() {
    let error = decode(b"Traceback (most recent call last):\n").unwrap_err();
    assert_eq!(error.code(), "garbage");
    assert!(error.to_string().contains("Traceback"), "{error}");
}

#[test]
fn foreign_talk_later_is_told_as_what_it_is() {
    let mut bytes = encode(&hello(), Framing::JsonLines).unwrap().to_vec();
    bytes.extend_from_slice(b"Segmentation fault\n");
    let error = decode(&bytes).unwrap_err();
    assert_eq!(error.code(), "malformed-message");
    assert!(error.to_string().contains("Segmentation fault"), "{error}");
}

#[test]
fn misspelt_field_in_json_is_named() {
    let error = decode(b"{\"exit\":{\"outptus\":[]}}\n").unwrap_err();
    assert!(error.to_string().contains("outptus"), "{error}");
}

#[test]
fn message_without_a_kind_is_unknown() {
    for bytes in [&b"{}\n"[..], &[0, 0, 0, 0], &[0, 0, 0, 3, 0xfa, 0x3f, 0]] {
        assert_eq!(decode(bytes).unwrap_err().code(), "unknown-message");
    }
}

#[test]
fn line_that_is_not_text_says_where() {
    assert_eq!(
        decode(b"{\"\xff\"}\n"),
        Err(DecodeError::NotUtf8 { valid: 2 })
    );
}

#[test]
fn announced_length_over_the_limit_is_refused_before_it_comes() {
    let mut bytes = encode(&hello(), Framing::LengthPrefixed).unwrap().to_vec();
    bytes.extend_from_slice(&(limits::MESSAGE_BYTES_MAX as u32 + 1).to_be_bytes());
    assert_eq!(decode(&bytes).unwrap_err().code(), "message-too-long");
}

#[test]
fn endless_line_is_refused() {
    let mut decoder = Decoder::<WorkerMessage>::new();
    decoder.push(b"{");
    let spaces = vec![b' '; 1 << 20];
    let refused = (0..=64).find_map(|_| {
        decoder.push(&spaces);
        decoder.take().err()
    });
    assert_eq!(refused.unwrap().code(), "message-too-long");
}

#[test]
fn message_over_the_limit_is_not_encoded() {
    let long = log(&"x".repeat(limits::MESSAGE_BYTES_MAX));
    for framing in FRAMINGS {
        assert!(matches!(
            encode(&long, framing),
            Err(EncodeError::TooLong { .. })
        ));
    }
}

#[test]
fn end_inside_a_message_is_truncated() {
    for framing in FRAMINGS {
        let bytes = encode(&hello(), framing).unwrap();
        let mut decoder = Decoder::<WorkerMessage>::new();
        decoder.push(&bytes);
        decoder.push(&bytes[..3]);
        assert_eq!(take_all(&mut decoder).unwrap().len(), 1);
        assert_eq!(decoder.finish(), Err(DecodeError::Truncated { bytes: 3 }));
    }
}

#[test]
fn end_between_messages_is_an_end() {
    let mut decoder = Decoder::<WorkerMessage>::new();
    decoder.push(&encode(&hello(), Framing::JsonLines).unwrap());
    take_all(&mut decoder).unwrap();
    assert_eq!(decoder.finish(), Ok(()));
}

#[test]
fn decoder_that_has_failed_stays_failed() {
    let mut decoder = Decoder::<EngineMessage>::new();
    decoder.push(b"{}\n");
    let error = decoder.take().unwrap_err();
    let ping = EngineMessage::connection(Ping::default());
    decoder.push(&encode(&ping, Framing::JsonLines).unwrap());
    assert_eq!(decoder.take(), Err(error.clone()));
    assert_eq!(decoder.finish(), Err(error));
}

fn push_in_pieces(bytes: &[u8], cuts: &[usize]) -> Result<Vec<WorkerMessage>, DecodeError> {
    let mut decoder = Decoder::new();
    let mut messages = Vec::new();
    let mut rest = bytes;
    for cut in cuts.iter().cycle() {
        let (piece, behind) = rest.split_at((*cut).min(rest.len()));
        decoder.push(piece);
        messages.extend(take_all(&mut decoder)?);
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
    decoder.finish().map(|()| messages)
}

#[test]
fn unknown_number_of_an_enumeration_is_refused_in_json_and_passed_on_in_bytes() {
    // It was decoded, as Protocol Buffers ask for, and writing it as JSON ended the process. Found
    // by changing messages at random.
    let mut decoder = Decoder::new();
    decoder.push(b"\x00\x00\x00\x11\x08\x03z\r\x08M\x12\tslow disk");
    let message: WorkerMessage = decoder.take().unwrap().expect("a whole message");
    let refused = encode(&message, Framing::JsonLines).unwrap_err();
    assert_eq!(refused.code(), "not-in-json");
    assert!(refused.to_string().contains("77"), "{refused}");
    let bytes = encode(&message, Framing::LengthPrefixed).unwrap();
    let mut again = Decoder::new();
    again.push(&bytes);
    assert_eq!(again.take(), Ok(Some(message)));
}

proptest! {
    #[test]
    fn messages_survive_any_cuts(
        texts in proptest::collection::vec(".{0,40}", 1..6),
        cuts in proptest::collection::vec(1_usize..50, 1..8),
    ) {
        let messages: Vec<WorkerMessage> = texts.iter().map(|text| log(text)).collect();
        for framing in FRAMINGS {
            let bytes: Vec<u8> =
                messages.iter().flat_map(|message| encode(message, framing).unwrap()).collect();
            prop_assert_eq!(push_in_pieces(&bytes, &cuts).unwrap(), messages.clone());
        }
    }

    #[test]
    fn random_bytes_never_panic(
        start in prop_oneof![Just(&b""[..]), Just(&b"{"[..]), Just(&[0, 0, 0, 9][..])],
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        cuts in proptest::collection::vec(1_usize..50, 1..8),
    ) {
        let _ = push_in_pieces(&[start, &bytes].concat(), &cuts);
    }

    #[test]
    fn damaged_messages_never_panic(place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        for framing in FRAMINGS {
            let mut bytes = encode(&log("a text"), framing).unwrap().to_vec();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            let _ = push_in_pieces(&bytes, &[bytes.len()]);
        }
    }
}
