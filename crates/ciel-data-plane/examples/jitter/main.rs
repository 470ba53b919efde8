//! The producer and the consumer of ciel-programming-models §7.3, in every mode, as processes.
//!
//! `jitter [BYTES …]` prints a row for each mode, within one store and between two (two folders,
//! TCP on the loopback between them): mode, stores, bytes and seconds, with tabs between them.
//! `plot.py` makes a picture of the rows. The consumer counts what it gets and discards it.
//!
//! It shows how the parts of the data plane are put together; it does not know tasks. Read next:
//! `roles`, the two programs.

mod roles;

use std::error::Error;
use std::fs::File;
use std::io::{self, PipeWriter, Read};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use ciel_data_plane::{
    Catalogue, Fetch, Found, GrowingReader, GrowingWriter, Progress, Ring, Server, Stop, Token,
    push,
};
use ciel_streams::Mode;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The bytes of a stream unless they are named: 64 MiB, the first point of the paper's figure.
const BYTES: u64 = 64 << 20;

/// Bytes of the ring of a direct stream.
const RING_BYTES: usize = 4 << 20;

fn main() -> ExitCode {
    match play() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("jitter: {error}");
            ExitCode::FAILURE
        }
    }
}

fn play() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("role", rest)) = arguments
        .split_first()
        .map(|(first, rest)| (&**first, rest))
    {
        return roles::play(rest);
    }
    let size = |text: &String| {
        let bytes = text.parse::<u64>();
        bytes.map_err(|error| format!("{text:?} is not a number of bytes: {error}"))
    };
    let mut sizes = arguments
        .iter()
        .map(size)
        .collect::<Result<Vec<u64>, _>>()?;
    if sizes.is_empty() {
        sizes.push(BYTES);
    }
    println!("mode\tstores\tbytes\tseconds");
    for bytes in sizes {
        for mode in Mode::ALL {
            for stores in [1, 2] {
                let start = Instant::now();
                let counted = run(mode, stores, bytes)?;
                let seconds = start.elapsed().as_secs_f64();
                if counted != bytes {
                    return Err(format!("{mode}: {counted} of {bytes} bytes arrived").into());
                }
                println!("{mode}\t{stores}\t{bytes}\t{seconds:.6}");
            }
        }
    }
    Ok(())
}

/// A growing object in a folder.
struct Object {
    file: PathBuf,
    progress: PathBuf,
}

impl Object {
    fn create(folder: &Path, name: &str) -> io::Result<Object> {
        let object = Object {
            file: folder.join(name),
            progress: folder.join(format!("{name}.progress")),
        };
        File::create(&object.file)?;
        Progress::create(&object.progress)?;
        Ok(object)
    }

    fn reader(&self) -> io::Result<GrowingReader> {
        let progress = Arc::new(Progress::open(&self.progress)?);
        Ok(GrowingReader::new(File::open(&self.file)?, progress))
    }

    fn writer(&self) -> io::Result<GrowingWriter> {
        let progress = Arc::new(Progress::open(&self.progress)?);
        let file = File::options().write(true).open(&self.file)?;
        Ok(GrowingWriter::new(file, progress))
    }

    fn role(&self, role: &str) -> Command {
        let mut command = program(role);
        command.arg(&self.file).arg(&self.progress);
        command
    }
}

/// This program in one of its roles.
fn program(role: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["role", role])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// Runs the pair once and returns what the consumer has counted.
fn run(mode: Mode, stores: u32, bytes: u64) -> Outcome<u64> {
    let folder = tempfile::tempdir()?;
    if mode == Mode::Direct {
        return direct(stores, bytes);
    }
    let original = Object::create(folder.path(), "original")?;
    let producer = original.role("write").arg(bytes.to_string()).spawn()?;
    let whole = |producer: Child| ended_well(producer, "producer").map(drop);
    if !mode.follows_production() {
        whole(producer)?;
        return read(mode, stores, folder.path(), &original);
    }
    let counted = read(mode, stores, folder.path(), &original);
    whole(producer)?;
    counted
}

/// The consumer's side of a stored stream.
fn read(mode: Mode, stores: u32, folder: &Path, original: &Object) -> Outcome<u64> {
    if stores == 1 && mode != Mode::IndirectTcp {
        return consume(mode, original);
    }
    let (server, token) = serve(Found::Stored(original.reader()?))?;
    if mode == Mode::IndirectTcp {
        return count(fetching(server.address(), &token).spawn()?);
    }
    let copy = Object::create(folder, "copy")?;
    let mut writer = copy.writer()?;
    let mut fetch = Fetch::new(server.address(), token, "stream");
    let transfer = std::thread::spawn(move || {
        io::copy(&mut fetch, &mut writer)?;
        Ok(writer.commit())
    });
    if !mode.follows_transfer() {
        join(transfer)?;
        return consume(mode, &copy);
    }
    let counted = consume(mode, &copy)?;
    join(transfer)?;
    Ok(counted)
}

fn consume(mode: Mode, object: &Object) -> Outcome<u64> {
    if mode != Mode::IndirectPipe {
        return count(object.role("read").spawn()?);
    }
    let (read_end, write_end): (_, PipeWriter) = io::pipe()?;
    let consumer = program("count").stdin(read_end).spawn()?;
    let (reader, stop) = (object.reader()?, Stop::new()?);
    let pusher = std::thread::spawn(move || push(reader, write_end, &stop));
    let counted = count(consumer)?;
    // Only now is it known that the end of the pipe was that of the stream.
    join(pusher)?;
    Ok(counted)
}

fn direct(stores: u32, bytes: u64) -> Outcome<u64> {
    let ring = Ring::create(RING_BYTES)?;
    let descriptor = ring.descriptor().as_raw_fd();
    let path = format!("/proc/{}/fd/{descriptor}", std::process::id());
    let producer = program("fill").args([&path, &bytes.to_string()]).spawn()?;
    let counted = if stores == 1 {
        count(program("drain").arg(&path).spawn()?)?
    } else {
        let reader = ring.reader().ok_or("the ring is new")?;
        let (server, token) = serve(Found::Direct(Box::new(reader)))?;
        count(fetching(server.address(), &token).spawn()?)?
    };
    ended_well(producer, "producer")?;
    Ok(counted)
}

fn fetching(address: SocketAddr, token: &Token) -> Command {
    let mut command = program("fetch");
    let secret = token.bytes().map(|byte| format!("{byte:02x}")).concat();
    command.arg(address.to_string()).env(roles::TOKEN, secret);
    command
}

/// A store that has one stream.
struct Store(Mutex<Option<Found>>);

impl Catalogue for Store {
    fn find(&self, _name: &str) -> Found {
        let found = self.0.lock().ok().and_then(|mut stream| stream.take());
        found.unwrap_or(Found::Nothing)
    }
}

fn serve(found: Found) -> Outcome<(Server, Token)> {
    let token = Token::random()?;
    let store = Arc::new(Store(Mutex::new(Some(found))));
    let server = Server::start("127.0.0.1:0".parse()?, token.clone(), store)?;
    Ok((server, token))
}

fn join<T>(thread: JoinHandle<io::Result<T>>) -> Outcome<T> {
    Ok(thread.join().map_err(|_| "a thread panicked")??)
}

fn ended_well(mut process: Child, name: &str) -> Outcome<String> {
    let mut said = String::new();
    if let Some(output) = &mut process.stdout {
        output.read_to_string(&mut said)?;
    }
    let status = process.wait()?;
    match status.success() {
        true => Ok(said),
        false => Err(format!("the {name} ended with {status}").into()),
    }
}

fn count(consumer: Child) -> Outcome<u64> {
    Ok(ended_well(consumer, "consumer")?.trim().parse()?)
}
