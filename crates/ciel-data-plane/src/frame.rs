//! Frames: what a server sends on an accepted connection.
//!
//! A header of 24 bytes, little-endian: kind (1), zeros (3), length of the payload (4), offset in
//! the stream (8), checksum of these 16 bytes and the payload (8, XXH3). The end of a connection is
//! never the end of a stream: only a frame is, and it says how long the stream is.
//!
//! Pure but for the reading and writing itself. Read next: `server`, `fetch`.

use std::io::{self, IoSlice, Read, Write};

use xxhash_rust::xxh3::Xxh3;

use crate::limits::FRAME_BYTES_MAX;

const HEADER_BYTES: usize = 24;

/// What a frame says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The payload stands at the offset.
    Data,
    /// The stream has as many bytes as the offset says: a true end.
    End,
    /// The producer is lost.
    Lost,
    /// Nothing new; the connection lives.
    Beat,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Data, Kind::End, Kind::Lost, Kind::Beat];

    fn number(self) -> u8 {
        match self {
            Kind::Data => 1,
            Kind::End => 2,
            Kind::Lost => 3,
            Kind::Beat => 4,
        }
    }
}

fn checksum(head: &[u8], payload: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(head);
    hasher.update(payload);
    hasher.digest()
}

/// Sends one frame.
///
/// # Errors
/// If the connection breaks.
pub(crate) fn send(mut to: impl Write, kind: Kind, offset: u64, payload: &[u8]) -> io::Result<()> {
    assert!(payload.len() <= FRAME_BYTES_MAX, "a payload over the limit");
    let mut header = [0; HEADER_BYTES];
    header[0] = kind.number();
    header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[8..16].copy_from_slice(&offset.to_le_bytes());
    let sum = checksum(&header[..16], payload);
    header[16..].copy_from_slice(&sum.to_le_bytes());
    let parts = &mut [IoSlice::new(&header), IoSlice::new(payload)];
    let sent = to.write_vectored(parts)?;
    if sent < HEADER_BYTES {
        to.write_all(&header[sent..])?;
    }
    to.write_all(&payload[sent.saturating_sub(HEADER_BYTES).min(payload.len())..])
}

/// Receives one frame; its payload replaces what is in `payload`.
///
/// # Errors
/// If the connection breaks, or brings something that is no frame.
pub(crate) fn receive(mut from: impl Read, payload: &mut Vec<u8>) -> io::Result<(Kind, u64)> {
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header)?;
    let number = |at: usize| {
        let bytes: [u8; 8] = header[at..at + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes)
    };
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| kind.number() == header[0]);
    let length = (number(0) >> 32) as usize;
    let (Some(kind), true) = (kind, length <= FRAME_BYTES_MAX) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    payload.resize(length, 0);
    from.read_exact(payload)?;
    if checksum(&header[..16], payload) != number(16) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok((kind, number(8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> Vec<u8> {
        let mut bytes = Vec::new();
        send(&mut bytes, Kind::Data, 77, b"payload").unwrap();
        bytes
    }

    #[test]
    fn frame_is_received_as_it_was_sent() {
        let mut payload = vec![1; 100];
        let frame = receive(&sent()[..], &mut payload).unwrap();
        assert_eq!((frame, &payload[..]), ((Kind::Data, 77), &b"payload"[..]));
    }

    #[test]
    fn frame_with_any_bit_changed_or_byte_missing_is_refused() {
        let whole = sent();
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(receive(&changed[..], &mut Vec::new()).is_err(), "bit {bit}");
        }
        for length in 0..whole.len() {
            assert!(
                receive(&whole[..length], &mut Vec::new()).is_err(),
                "{length} bytes"
            );
        }
    }
}
