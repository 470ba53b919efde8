//! The two programs: one makes bytes, the other counts them.
//!
//! A role is named in the arguments, followed by where its stream is. It does not know the mode.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use ciel_data_plane::{Fetch, GrowingReader, GrowingWriter, Progress, Ring, Token};

use crate::Outcome;

/// The variable with the token, which must not stand in arguments that others can read.
pub const TOKEN: &str = "JITTER_TOKEN";

const PIECE_BYTES: usize = 256 << 10;

/// Plays the role that the arguments name.
pub fn play(arguments: &[String]) -> Outcome<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["write", file, progress, bytes] => {
            let file = File::options().write(true).open(file)?;
            let mut writer = GrowingWriter::new(file, opened(progress)?);
            make(&mut writer, bytes.parse()?)?;
            writer.commit();
            Ok(())
        }
        ["fill", ring, bytes] => {
            let mut writer = shared(ring)?.writer().ok_or("the ring has a producer")?;
            make(&mut writer, bytes.parse()?)?;
            writer.end();
            Ok(())
        }
        ["read", file, progress] => count(&mut GrowingReader::new(
            File::open(file)?,
            opened(progress)?,
        )),
        ["drain", ring] => count(&mut shared(ring)?.reader().ok_or("the ring has a consumer")?),
        ["count"] => count(&mut io::stdin().lock()),
        ["fetch", address] => count(&mut Fetch::new(address.parse()?, token()?, "stream")),
        _ => Err(format!("no role is {arguments:?}").into()),
    }
}

fn opened(progress: &str) -> io::Result<Arc<Progress>> {
    Progress::open(Path::new(progress)).map(Arc::new)
}

fn shared(ring: &str) -> io::Result<Ring> {
    Ring::from_file(File::options().read(true).write(true).open(ring)?)
}

fn token() -> Outcome<Token> {
    let digits = std::env::var(TOKEN)?;
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        let pair = digits.get(at..at + 2).ok_or("the token is too short")?;
        *byte = u8::from_str_radix(pair, 16)?;
    }
    Ok(Token::from_bytes(bytes))
}

fn make(to: &mut impl Write, bytes: u64) -> io::Result<()> {
    let piece: Vec<u8> = (0..PIECE_BYTES).map(|at| at as u8).collect();
    let mut rest = bytes;
    while rest > 0 {
        let count = rest.min(piece.len() as u64) as usize;
        to.write_all(&piece[..count])?;
        rest -= count as u64;
    }
    Ok(())
}

fn count(from: &mut impl Read) -> Outcome<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    let mut bytes = 0;
    loop {
        match from.read(&mut buffer)? {
            0 => break,
            count => bytes += count as u64,
        }
    }
    println!("{bytes}");
    Ok(())
}
