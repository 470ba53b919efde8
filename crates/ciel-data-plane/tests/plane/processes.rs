//! The sides of a stream as processes of their own, which are killed or end by themselves.
//!
//! A side is this test program once more, with one test in it: the one that starts the side, which
//! begins with [`Sides::play`]. A side that is to die kills itself with `SIGKILL` when so many
//! bytes are through it, and so at the same byte each time.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use ciel_data_plane::{
    Fetch, GrowingReader, GrowingWriter, Progress, Ring, Server, StreamFault, Token,
};
use rustix::process::{Pid, Signal, getpid, kill_process};
use tempfile::TempDir;

use crate::bytes::{read, write};
use crate::wiring::Source;

/// Tells a copy of this program which side it plays.
const SIDE: &str = "CIEL_TEST_SIDE";

/// Exit codes of a consumer that got no end: the stream is not stored, or another fault.
pub const NOT_STORED: i32 = 3;
const FAULT: i32 = 4;

/// A growing object in files that any process can open.
pub struct Object(TempDir);

impl Object {
    pub fn new() -> Object {
        let object = Object(tempfile::tempdir().unwrap());
        File::create(object.path("bytes")).unwrap();
        Progress::create(&object.path("progress")).unwrap();
        object
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn words(&self) -> Vec<String> {
        let word = |name| self.path(name).to_str().unwrap().to_owned();
        vec![word("bytes"), word("progress")]
    }

    pub fn progress(&self) -> Progress {
        Progress::open(&self.path("progress")).unwrap()
    }

    pub fn writer(&self) -> GrowingWriter {
        writer(&self.words())
    }

    pub fn reader(&self) -> GrowingReader {
        reader(&self.words())
    }
}

fn writer(words: &[String]) -> GrowingWriter {
    let file = OpenOptions::new().write(true).open(&words[0]).unwrap();
    GrowingWriter::new(file, progress(&words[1]))
}

fn reader(words: &[String]) -> GrowingReader {
    GrowingReader::new(File::open(&words[0]).unwrap(), progress(&words[1]))
}

fn progress(path: &str) -> Arc<Progress> {
    Arc::new(Progress::open(path.as_ref()).unwrap())
}

fn ring(path: &str) -> Ring {
    let mut options = OpenOptions::new();
    Ring::from_file(options.read(true).write(true).open(path).unwrap()).unwrap()
}

/// The sides that one test starts.
#[derive(Clone, Copy)]
pub struct Sides(pub &'static str);

impl Sides {
    /// Plays the side that this process is; false in the test itself.
    pub fn play(self) -> bool {
        let Ok(side) = std::env::var(SIDE) else {
            return false;
        };
        let words: Vec<String> = side.lines().map(str::to_owned).collect();
        play(&words);
        true
    }

    /// A side with these words.
    pub fn command(self, words: &[String]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "--nocapture", self.0])
            .env(SIDE, words.join("\n"))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// A consumer that kills itself when it has read `dies_at` bytes, or else reads all, which are
    /// `length`.
    pub fn consumer(self, source: &[String], dies_at: Option<u64>, length: u64) -> Command {
        let dies_at = dies_at.map_or("never".to_owned(), |bytes| bytes.to_string());
        let numbers = [dies_at, length.to_string()];
        self.command(&[&["consume".to_owned()], &numbers[..], source].concat())
    }

    /// A producer that kills itself when it has written so many bytes.
    pub fn producer(self, kind: &str, place: &[String], dies_at: u64) -> Child {
        let words = [kind.to_owned(), dies_at.to_string()];
        self.command(&[&words[..], place].concat()).spawn().unwrap()
    }

    /// A data plane that serves an object as `stream`, and where it listens.
    pub fn server(self, object: &Object, token: &Token) -> (Child, SocketAddr) {
        let words = [vec!["serve".to_owned(), digits(token)], object.words()].concat();
        let mut command = self.command(&words);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let told = lines.map_while(Result::ok);
        let mut addresses = told.filter_map(|line| line.strip_prefix("at ")?.parse().ok());
        let address = addresses.next().expect("it listens");
        (child, address)
    }
}

/// Waits for a process that kills itself.
pub fn await_killed(mut child: Child) {
    let status = child.wait().unwrap();
    assert!(is_killed(status), "{status}");
}

/// Whether a process was killed by `SIGKILL`.
pub fn is_killed(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::KILL.as_raw())
}

/// A token as a word.
pub fn digits(token: &Token) -> String {
    token.bytes().map(|byte| format!("{byte:02x}")).concat()
}

fn token(digits: &str) -> Token {
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
    Token::from_bytes(std::array::from_fn(byte))
}

fn play(words: &[String]) {
    match words[0].as_str() {
        "consume" => {
            let dies_at = words[1].parse().ok();
            consume(opened(&words[3..]), dies_at, words[2].parse().unwrap());
        }
        "write" => produce(&mut writer(&words[2..]), &words[1]),
        "fill" => produce(&mut ring(&words[2]).writer().unwrap(), &words[1]),
        "serve" => serve(token(&words[1]), reader(&words[2..])),
        other => panic!("no side is {other}"),
    }
}

fn opened(source: &[String]) -> Box<dyn Read> {
    match source[0].as_str() {
        "file" => Box::new(reader(&source[1..])),
        "pipe" => Box::new(io::stdin()),
        "ring" => match ring(&source[1]).reader() {
            Some(reader) => Box::new(reader),
            None => std::process::exit(NOT_STORED),
        },
        "fetch" => {
            let address = source[1].parse().unwrap();
            Box::new(Fetch::new(address, token(&source[2]), "stream"))
        }
        other => panic!("no source is {other}"),
    }
}

fn consume(from: impl Read, dies_at: Option<u64>, length: u64) {
    let (bytes, end) = read(
        &mut from.take(dies_at.unwrap_or(u64::MAX)),
        0,
        u64::MAX,
        5_000,
    );
    match (end, dies_at) {
        (Ok(()), Some(dies_at)) => {
            assert_eq!(bytes, dies_at);
            die();
        }
        (Ok(()), None) => assert_eq!(bytes, length),
        (Err(error), _) => std::process::exit(match StreamFault::of(&error) {
            Some(StreamFault::NotStored { .. }) => NOT_STORED,
            _ => FAULT,
        }),
    }
}

fn produce(to: &mut dyn Write, dies_at: &str) {
    write(to, dies_at.parse().unwrap(), || 7_001).unwrap();
    die();
}

/// Dies in the middle of everything, as by `kill -9`.
fn die() {
    let own: Pid = getpid();
    kill_process(own, Signal::KILL).unwrap();
    unreachable!("it is dead");
}

/// Serves until it is killed.
fn serve(token: Token, object: GrowingReader) {
    let address = "127.0.0.1:0".parse().unwrap();
    let source = Arc::new(Source::Object(object));
    let server = Server::start(address, token, source).unwrap();
    println!("at {}", server.address());
    loop {
        std::thread::park();
    }
}
