//! The pure machine: a tree of processes, and for each stream the order of what they write.
//!
//! The order, exactly: the output of a process is what it writes, in its own order, with the whole
//! output of each child at the point where the child was started; that is the output of the same
//! program if it waited for each child at once. Beside bytes a process can leave a [`MarkKey`]: the
//! caller gets it back when everything before it has been taken.
//!
//! It does not know pipes, process ids or calls of the system. It keeps the tree of processes that
//! may still write, so that a stream can begin late. Read next: `supervisor`, its caller.

use std::collections::BTreeMap;

use ciel_ordered::{Extent, OrderedError, OrderedStream, Piece, Spill, StrandKey, Ticket};

/// Names a process in the order of starts; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey(pub u64);

/// The process that was given to [`ProcessOrder::new`].
pub const ROOT: ProcessKey = ProcessKey(0);

/// Names a stream: its index in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamKey(pub usize);

/// A point in the output of a process; its meaning is the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MarkKey(pub u64);

/// The blob of extents that stand for marks; spilled bytes are in blob 0.
const MARKS: u64 = 1;

/// What comes next in the serial order of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Released {
    /// Bytes that were in memory.
    Bytes(Vec<u8>),
    /// Bytes that the caller has spilled.
    Spilled(Extent),
    /// A point that a process has marked.
    Mark(MarkKey),
}

#[derive(Debug)]
struct Process {
    parent: Option<ProcessKey>,
    /// In the order of their starts; only those that are still in the tree.
    children: Vec<ProcessKey>,
    has_ended: bool,
    /// Streams to which something can still write in this process's place.
    attached: Vec<StreamKey>,
}

#[derive(Debug, Default)]
struct Stream {
    order: OrderedStream,
    /// Nothing has been done since the last byte was taken.
    is_settled: bool,
}

/// The processes of one command and their streams.
#[derive(Debug)]
pub struct ProcessOrder {
    processes: BTreeMap<ProcessKey, Process>,
    streams: Vec<Stream>,
    started: u64,
}

impl ProcessOrder {
    /// The tree with its root only, and no stream.
    pub fn new() -> ProcessOrder {
        let root = Process {
            parent: None,
            children: Vec::new(),
            has_ended: false,
            attached: Vec::new(),
        };
        ProcessOrder {
            processes: BTreeMap::from([(ROOT, root)]),
            streams: Vec::new(),
            started: 1,
        }
    }

    /// Adds a stream. Processes that have ended have written nothing to it; what a process writes
    /// to it from now on is behind the children that it has.
    pub fn add_stream(&mut self) -> StreamKey {
        let mut order = OrderedStream::new();
        expect(order.open_root(strand(ROOT)));
        let mut rest = vec![ROOT];
        while let Some(parent) = rest.pop() {
            let Some(process) = self.processes.get(&parent) else {
                // Only the root can be missing: all processes have ended.
                expect(order.close(strand(parent)));
                continue;
            };
            for child in &process.children {
                expect(order.spawn(strand(parent), strand(*child)));
            }
            rest.extend(&process.children);
            if process.has_ended {
                expect(order.close(strand(parent)));
            }
        }
        self.streams.push(Stream {
            order,
            is_settled: false,
        });
        StreamKey(self.streams.len() - 1)
    }

    /// The parent starts a child here.
    ///
    /// # Panics
    /// If the parent has ended.
    pub fn start(&mut self, parent: ProcessKey) -> ProcessKey {
        let child = ProcessKey(self.started);
        self.started += 1;
        let process = self.processes.get_mut(&parent);
        let process = process.expect("only a live process starts another");
        assert!(
            !process.has_ended,
            "{parent:?} has ended and starts nothing"
        );
        process.children.push(child);
        let entry = Process {
            parent: Some(parent),
            children: Vec::new(),
            has_ended: false,
            attached: Vec::new(),
        };
        self.processes.insert(child, entry);
        for stream in &mut self.streams {
            expect(stream.order.spawn(strand(parent), strand(child)));
            stream.is_settled = false;
        }
        child
    }

    /// Something can write to this stream in the place of the process, until it is detached.
    pub fn attach(&mut self, process: ProcessKey, stream: StreamKey) {
        let entry = self.processes.get_mut(&process);
        let attached = &mut entry.expect("a live process is attached").attached;
        if !attached.contains(&stream) {
            attached.push(stream);
        }
    }

    /// Nothing can write to this stream in the place of the process any more, unless it lives and
    /// is attached again.
    pub fn detach(&mut self, process: ProcessKey, stream: StreamKey) {
        let Some(entry) = self.processes.get_mut(&process) else {
            return;
        };
        let before = entry.attached.len();
        entry.attached.retain(|attached| *attached != stream);
        if entry.has_ended && entry.attached.len() < before {
            self.close(process, stream);
        }
        self.prune(process);
    }

    /// The process has ended, or was never there. What is still attached to it may yet write.
    pub fn end(&mut self, process: ProcessKey) {
        let Some(entry) = self.processes.get_mut(&process) else {
            return;
        };
        entry.has_ended = true;
        let attached = entry.attached.clone();
        for stream in (0..self.streams.len()).map(StreamKey) {
            if !attached.contains(&stream) {
                self.close(process, stream);
            }
        }
        self.prune(process);
    }

    /// Bytes that were written in the place of the process.
    ///
    /// # Panics
    /// If the process is not attached to the stream.
    pub fn write(&mut self, process: ProcessKey, stream: StreamKey, bytes: Vec<u8>) {
        self.push(process, stream, Piece::Bytes(bytes));
    }

    /// Leaves a mark behind what the process has written and started.
    ///
    /// # Panics
    /// If the process has ended.
    pub fn mark(&mut self, process: ProcessKey, stream: StreamKey, mark: MarkKey) {
        let extent = Extent {
            blob: MARKS,
            offset: mark.0,
            length: 1,
        };
        self.push(process, stream, Piece::Extent(extent));
    }

    /// What comes next in serial order, at most `limit` bytes; none if that is not known yet.
    pub fn take(&mut self, stream: StreamKey, limit: u64) -> Option<Released> {
        let stream = &mut self.streams[stream.0];
        let Some(chunk) = stream.order.take_ready(limit) else {
            stream.is_settled = true;
            return None;
        };
        Some(match chunk.piece {
            Piece::Bytes(bytes) => Released::Bytes(bytes),
            Piece::Extent(extent) if extent.blob == MARKS => Released::Mark(MarkKey(extent.offset)),
            Piece::Extent(extent) => Released::Spilled(extent),
        })
    }

    /// Whether the next bytes of this process are the next bytes of the stream. The caller may then
    /// pass them on without [`write`](Self::write).
    pub fn is_leftmost(&self, process: ProcessKey, stream: StreamKey) -> bool {
        let stream = &self.streams[stream.0];
        stream.is_settled && stream.order.frontier() == Some(strand(process))
    }

    /// Whether the frontier of the stream is at this process.
    pub fn is_at_frontier(&self, process: ProcessKey, stream: StreamKey) -> bool {
        self.streams[stream.0].order.frontier() == Some(strand(process))
    }

    /// Whether everything of the stream has been taken and nothing can follow.
    pub fn is_done(&self, stream: StreamKey) -> bool {
        self.streams[stream.0].order.frontier().is_none()
    }

    /// Bytes in memory that are not taken, in all streams.
    pub fn held_bytes(&self) -> u64 {
        let held = self.streams.iter().map(|stream| stream.order.held_bytes());
        held.sum()
    }

    /// Pieces that should leave memory now, those needed last first.
    pub fn excess(&mut self, stream: StreamKey) -> Vec<Spill> {
        let order = &mut self.streams[stream.0].order;
        match order.excess_bytes() {
            0 => Vec::new(),
            bytes => order.spillable(bytes),
        }
    }

    /// The bytes of a ticket lie at this offset of the caller's file.
    pub fn spilled(&mut self, stream: StreamKey, ticket: Ticket, offset: u64, length: u64) {
        let extent = Extent {
            blob: 0,
            offset,
            length,
        };
        expect(self.streams[stream.0].order.replace(ticket, extent));
    }

    /// Whether the process has ended.
    pub fn has_ended(&self, process: ProcessKey) -> bool {
        let entry = self.processes.get(&process);
        entry.is_none_or(|entry| entry.has_ended)
    }

    /// How many processes may still write or start others.
    pub fn process_count(&self) -> usize {
        self.processes.len()
    }

    fn push(&mut self, process: ProcessKey, stream: StreamKey, piece: Piece) {
        let stream = &mut self.streams[stream.0];
        expect(stream.order.write(strand(process), piece));
        stream.is_settled = false;
    }

    fn close(&mut self, process: ProcessKey, stream: StreamKey) {
        let stream = &mut self.streams[stream.0];
        expect(stream.order.close(strand(process)));
        stream.is_settled = false;
    }

    /// Removes what can neither write nor has children that can.
    fn prune(&mut self, process: ProcessKey) {
        let mut next = Some(process);
        while let Some(key) = next {
            let Some(entry) = self.processes.get(&key) else {
                return;
            };
            if !entry.has_ended || !entry.attached.is_empty() || !entry.children.is_empty() {
                return;
            }
            next = entry.parent;
            self.processes.remove(&key);
            if let Some(parent) = next.and_then(|parent| self.processes.get_mut(&parent)) {
                let at = parent.children.binary_search(&key);
                parent
                    .children
                    .remove(at.expect("a child is in its parent's list"));
            }
        }
    }
}

impl Default for ProcessOrder {
    fn default() -> ProcessOrder {
        ProcessOrder::new()
    }
}

fn strand(process: ProcessKey) -> StrandKey {
    StrandKey(process.0)
}

/// The tree admits an act before the stream sees it.
fn expect(result: Result<(), OrderedError>) {
    result.expect("an open process has a place in every stream");
}
