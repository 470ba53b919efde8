//! The secret that the stores of one run share.
//!
//! It never crosses a connection: each side proves that it has it, by a keyed hash over what the
//! other side has chosen at random. It does not know the messages. Read next: `handshake`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// 32 secret bytes. They are not printed.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl Token {
    /// A token that nobody else has.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn random() -> io::Result<Token> {
        random_bytes().map(Token)
    }

    /// The token with these bytes, as another process of the run has passed them on.
    pub fn from_bytes(bytes: [u8; 32]) -> Token {
        Token(bytes)
    }

    /// The bytes, to be passed on in a way that others cannot read.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// What only an owner of the token can say about these parts. Two proofs are compared in
    /// constant time.
    pub(crate) fn proof(&self, parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

/// Random bytes of the system.
pub(crate) fn random_bytes<const COUNT: usize>() -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
