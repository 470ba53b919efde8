//! The first messages of a connection: who is there, and what is wanted.
//!
//! 1. Server: `CIELDATA`, the number of the protocol (4 bytes), 16 random bytes.
//! 2. Client: length of what follows but the last 40 bytes (2), 16 random bytes, the first byte
//!    that it wants (8), the name of the object; then its proof (32).
//! 3. Server: the answer (1), its proof (32).
//!
//! Each message ends with its XXH3 checksum (8), so that damage on the way is a broken connection
//! and not a refusal. Proofs are keyed hashes over both sides' random bytes, so neither the token
//! nor anything that could be repeated crosses the connection. What follows is checked, not secret.

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::xxh3_64;

use crate::limits::NAME_BYTES_MAX;
use crate::token::{Token, random_bytes};

const MAGIC: &[u8; 8] = b"CIELDATA";
const PROTOCOL: u32 = 1;
const NONCE_BYTES: usize = 16;
const PROOF_BYTES: usize = 32;
const FIXED_BYTES: usize = NONCE_BYTES + 8;

/// What a client wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// The object.
    pub(crate) name: String,
    /// The first byte.
    pub(crate) from: u64,
}

/// What a server says to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Frames of an object follow; a broken connection can be resumed.
    Stored,
    /// Frames of a direct stream follow, once.
    Direct,
    /// The token is another one.
    TokenRefused,
    /// There is no such object.
    NoSuchObject,
    /// The stream was direct and has been taken.
    NotStored,
    /// Too many connections.
    Busy,
}

impl Answer {
    const ALL: [Answer; 6] = [
        Answer::Stored,
        Answer::Direct,
        Answer::TokenRefused,
        Answer::NoSuchObject,
        Answer::NotStored,
        Answer::Busy,
    ];
}

/// A client that has shown its proof, or not; to be answered.
pub(crate) struct Asked {
    /// What it wants; none if its token is another one.
    pub(crate) request: Option<Request>,
    nonces: [[u8; NONCE_BYTES]; 2],
}

/// The server's half, up to the answer.
///
/// # Errors
/// If the connection breaks, or its other side is no client.
pub(crate) fn ask(mut stream: impl Read + Write, token: &Token) -> io::Result<Asked> {
    let nonce: [u8; NONCE_BYTES] = random_bytes()?;
    send(&mut stream, &[MAGIC, &PROTOCOL.to_le_bytes(), &nonce])?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let length = usize::from(u16::from_le_bytes(length));
    if !(FIXED_BYTES..=FIXED_BYTES + NAME_BYTES_MAX).contains(&length) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let message = receive(&mut stream, length + PROOF_BYTES)?;
    let (body, proof) = message.split_at(length);
    let (client_nonce, rest) = body.split_first_chunk().expect("the length is checked");
    let (from, name) = rest.split_first_chunk().expect("the length is checked");
    let is_ours = token.proof(&[b"client", &nonce, body]) == as_proof(proof);
    let request = is_ours.then(|| Request {
        name: String::from_utf8_lossy(name).into_owned(),
        from: u64::from_le_bytes(*from),
    });
    Ok(Asked {
        request,
        nonces: [nonce, *client_nonce],
    })
}

/// The server's answer.
///
/// # Errors
/// If the connection breaks.
pub(crate) fn answer(
    stream: impl Write,
    token: &Token,
    asked: &Asked,
    answer: Answer,
) -> io::Result<()> {
    let number = [answer as u8];
    let proof = token.proof(&[b"server", &asked.nonces[0], &asked.nonces[1], &number]);
    send(stream, &[&number, proof.as_bytes()])
}

/// The client's half. A server whose proof is wrong counts as one that refuses the token.
///
/// # Errors
/// If the connection breaks, or its other side is no server.
pub(crate) fn request(
    mut stream: impl Read + Write,
    token: &Token,
    request: &Request,
) -> io::Result<Answer> {
    let greeting = receive(&mut stream, MAGIC.len() + 4 + NONCE_BYTES)?;
    let (head, server_nonce) = greeting.split_at(MAGIC.len() + 4);
    if head[..MAGIC.len()] != MAGIC[..] || head[MAGIC.len()..] != PROTOCOL.to_le_bytes() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let nonce: [u8; NONCE_BYTES] = random_bytes()?;
    let body = [
        &nonce[..],
        &request.from.to_le_bytes(),
        request.name.as_bytes(),
    ]
    .concat();
    let length = (body.len() as u16).to_le_bytes();
    let proof = token.proof(&[b"client", server_nonce, &body]);
    stream.write_all(&length)?;
    send(&mut stream, &[&body, proof.as_bytes()])?;
    let message = receive(&mut stream, 1 + PROOF_BYTES)?;
    let (number, proof) = message.split_at(1);
    let is_ours = token.proof(&[b"server", server_nonce, &nonce, number]) == as_proof(proof);
    let known = Answer::ALL
        .into_iter()
        .find(|answer| *answer as u8 == number[0]);
    Ok(known.filter(|_| is_ours).unwrap_or(Answer::TokenRefused))
}

fn as_proof(bytes: &[u8]) -> blake3::Hash {
    let bytes: [u8; PROOF_BYTES] = bytes.try_into().expect("a proof's length");
    bytes.into()
}

fn send(mut to: impl Write, parts: &[&[u8]]) -> io::Result<()> {
    let mut message = parts.concat();
    let sum = xxh3_64(&message);
    message.extend_from_slice(&sum.to_le_bytes());
    to.write_all(&message)
}

fn receive(mut from: impl Read, bytes: usize) -> io::Result<Vec<u8>> {
    let mut message = vec![0; bytes + 8];
    from.read_exact(&mut message)?;
    let sum = message.split_off(bytes);
    if xxh3_64(&message).to_le_bytes()[..] != sum[..] {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(message)
}
