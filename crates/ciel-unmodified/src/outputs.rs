//! The outputs of a command: each stream with the sink that it leaves through.
//!
//! Bytes of the process at the frontier pass at once; all others wait in the order, beyond a bound
//! on disk. It does not know where bytes come from. Read next: `order`, `sink`.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustc_hash::FxHashMap;
use rustix::io::Errno;

use crate::error::UnmodifiedError;
use crate::limits::TRANSFER_BYTES_MAX;
use crate::listener::Call;
use crate::order::{MarkKey, ProcessKey, ProcessOrder, Released, StreamKey};
use crate::sink::Sink;
use crate::spill::SpillFile;

/// What happens when a mark is reached.
#[derive(Debug)]
pub(crate) enum Turn {
    /// The file is opened, as the process did at that point.
    Open(Opening),
    /// A call that waits may happen.
    Proceed(Call),
}

/// How an ordered file is opened.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    /// Its absolute path.
    pub(crate) path: PathBuf,
    /// Whether it is created if it is missing, and with which mode.
    pub(crate) created_with: Option<u32>,
    /// Whether what it holds is dropped.
    pub(crate) is_emptied: bool,
}

/// Whether somebody reads what leaves through a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Present,
    /// It has gone, and writers are yet to be told.
    Leaving,
    /// What is written is dropped.
    Gone,
}

/// All streams.
#[derive(Debug)]
pub(crate) struct Outputs {
    pub(crate) order: ProcessOrder,
    sinks: Vec<Sink>,
    readers: Vec<Reader>,
    turns: FxHashMap<MarkKey, Turn>,
    marks: u64,
    spill: SpillFile,
}

/// What a release has brought.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Calls whose turn has come.
    pub(crate) calls: Vec<Call>,
    /// The reader of the stream has just gone.
    pub(crate) has_broken: bool,
}

impl Outputs {
    /// No stream yet; what waits is held in this folder beyond the bound.
    pub(crate) fn new(folder: PathBuf) -> Outputs {
        Outputs {
            order: ProcessOrder::new(),
            sinks: Vec::new(),
            readers: Vec::new(),
            turns: FxHashMap::default(),
            marks: 0,
            spill: SpillFile::in_folder(folder),
        }
    }

    /// Adds a stream that leaves through this sink.
    pub(crate) fn add(&mut self, sink: Sink) -> StreamKey {
        self.sinks.push(sink);
        self.readers.push(Reader::Present);
        self.order.add_stream()
    }

    /// All streams.
    pub(crate) fn streams(&self) -> impl Iterator<Item = StreamKey> + use<> {
        (0..self.sinks.len()).map(StreamKey)
    }

    /// The stream's sink.
    pub(crate) fn sink(&self, stream: StreamKey) -> &Sink {
        &self.sinks[stream.0]
    }

    /// Takes bytes that the process has written.
    pub(crate) fn write(
        &mut self,
        process: ProcessKey,
        stream: StreamKey,
        bytes: &[u8],
    ) -> Result<(), UnmodifiedError> {
        let has_reader = self.has_reader(stream);
        let sink = &mut self.sinks[stream.0];
        let is_next = self.order.is_leftmost(process, stream);
        if !is_next || sink.is_behind() || !has_reader {
            self.order.write(process, stream, bytes.to_vec());
            return Ok(());
        }
        let result = sink.give(bytes);
        self.judge(stream, result)
    }

    /// Leaves a point in the output of the process; its turn comes when all before it has left.
    pub(crate) fn await_turn(&mut self, process: ProcessKey, stream: StreamKey, turn: Turn) {
        let mark = MarkKey(self.marks);
        self.marks += 1;
        self.turns.insert(mark, turn);
        self.order.mark(process, stream, mark);
    }

    /// Writes what is next in serial order, as far as the sink takes it.
    pub(crate) fn release(&mut self, stream: StreamKey) -> Result<Progress, UnmodifiedError> {
        let mut progress = Progress::default();
        let flushed = self.sinks[stream.0].flush();
        self.judge(stream, flushed)?;
        while !self.sinks[stream.0].is_behind() {
            let Some(next) = self.order.take(stream, TRANSFER_BYTES_MAX as u64) else {
                break;
            };
            let bytes = match next {
                Released::Bytes(bytes) => bytes,
                Released::Spilled(extent) => {
                    let taken = self.spill.take(extent);
                    taken.map_err(|error| self.spill_failed(error))?
                }
                Released::Mark(mark) => {
                    self.reach(stream, mark, &mut progress)?;
                    continue;
                }
            };
            if self.has_reader(stream) {
                let result = self.sinks[stream.0].give(&bytes);
                self.judge(stream, result)?;
            }
        }
        self.spill_excess(stream)?;
        if self.readers[stream.0] == Reader::Leaving {
            self.readers[stream.0] = Reader::Gone;
            progress.has_broken = true;
        }
        Ok(progress)
    }

    fn has_reader(&self, stream: StreamKey) -> bool {
        self.readers[stream.0] == Reader::Present
    }

    fn reach(
        &mut self,
        stream: StreamKey,
        mark: MarkKey,
        progress: &mut Progress,
    ) -> Result<(), UnmodifiedError> {
        let turn = self.turns.remove(&mark);
        match turn.expect("a mark is reached once") {
            Turn::Proceed(call) => progress.calls.push(call),
            Turn::Open(opening) => {
                let sink = &mut self.sinks[stream.0];
                let reopened = open(&opening).and_then(|file| sink.reopen(file));
                self.judge(stream, reopened)?;
            }
        }
        Ok(())
    }

    /// Moves what is beyond the bound to disk.
    fn spill_excess(&mut self, stream: StreamKey) -> Result<(), UnmodifiedError> {
        for spill in self.order.excess(stream) {
            let offset = self.spill.append(&spill.bytes);
            let offset = offset.map_err(|error| self.spill_failed(error))?;
            let length = spill.bytes.len() as u64;
            self.order.spilled(stream, spill.ticket, offset, length);
        }
        Ok(())
    }

    /// A reader that has gone is not an error: writers are told as they are without a supervisor.
    fn judge(&mut self, stream: StreamKey, result: io::Result<()>) -> Result<(), UnmodifiedError> {
        let sink = &self.sinks[stream.0];
        match result {
            Ok(()) => Ok(()),
            Err(error) if error.raw_os_error() == Some(Errno::PIPE.raw_os_error()) => {
                self.readers[stream.0] = Reader::Leaving;
                self.sinks[stream.0] = Sink::closed("a closed output");
                Ok(())
            }
            Err(error) => Err(UnmodifiedError::Output {
                output: sink.name().to_owned(),
                bytes: sink.written(),
                error,
            }),
        }
    }

    fn spill_failed(&self, error: io::Error) -> UnmodifiedError {
        UnmodifiedError::Spill {
            folder: self.spill.folder().to_owned(),
            error,
        }
    }

    /// Where to wait for room, if a stream's sink is behind.
    pub(crate) fn wants_room(&self, stream: StreamKey) -> Option<BorrowedFd<'_>> {
        let sink = self.sink(stream);
        sink.fd().filter(|_| sink.is_behind())
    }
}

fn open(opening: &Opening) -> io::Result<OwnedFd> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options.append(true).create(opening.created_with.is_some());
    options.mode(opening.created_with.unwrap_or(0));
    let file = options.open(&opening.path)?;
    if opening.is_emptied && file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file.into())
}
