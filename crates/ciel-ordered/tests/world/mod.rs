//! Random programs of strands, the serial interpreter that says what they print, and a runner
//! that performs them in a random order with crashes, failed attempts and spills.

use ciel_ordered::{
    After, Chunk, Extent, OrderedError, OrderedStream, Piece, Sink, Spill, StrandKey,
};

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % bound.max(1)
    }

    pub fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub fn sink(&mut self) -> Sink {
        Sink(self.below(3) as u32)
    }

    pub fn text(&mut self, length_max: usize) -> Vec<u8> {
        let length = self.below(length_max + 1);
        (0..length).map(|_| b'a' + self.below(26) as u8).collect()
    }
}

#[derive(Debug, Clone)]
pub enum Event {
    Write(Sink, Vec<u8>),
    Spawn(usize),
    Mark,
    Hold,
    Commit,
    Release,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    Close,
    Discard(After),
}

#[derive(Debug)]
pub struct Plan {
    pub events: Vec<Event>,
    pub end: End,
}

#[derive(Debug)]
pub struct Program {
    pub plans: Vec<Plan>,
    pub roots: Vec<usize>,
}

impl Program {
    /// A forest of about `size` strands; `stops` allows strands at which the output stops.
    pub fn random(random: &mut Random, size: usize, stops: bool) -> Program {
        let mut program = Program {
            plans: Vec::new(),
            roots: Vec::new(),
        };
        for _ in 0..1 + random.below(3) {
            let root = program.add_strand(random, size, stops);
            program.roots.push(root);
        }
        program
    }

    fn add_strand(&mut self, random: &mut Random, size: usize, stops: bool) -> usize {
        let index = self.plans.len();
        let end = match random.below(30) {
            0 if stops => End::Discard(After::Stop),
            1 if stops => End::Discard(After::Skip),
            _ => End::Close,
        };
        self.plans.push(Plan {
            events: Vec::new(),
            end,
        });
        for _ in 0..random.below(9) {
            let event = match random.below(16) {
                0..=6 => Event::Write(random.sink(), random.text(300)),
                7..=11 if self.plans.len() < size => {
                    Event::Spawn(self.add_strand(random, size, stops))
                }
                12..=13 => Event::Mark,
                14 => Event::Hold,
                15 => match random.one_in(2) {
                    true => Event::Commit,
                    false => Event::Release,
                },
                _ => Event::Write(random.sink(), random.text(5)),
            };
            self.plans[index].events.push(event);
        }
        index
    }

    /// The events that stand when the strand ends: a discarded held strand loses what it has not
    /// committed.
    fn lasting_events(&self, strand: usize) -> &[Event] {
        let Plan { events, end, .. } = &self.plans[strand];
        let (mut held, mut committed) = (false, 0);
        for (index, event) in events.iter().enumerate() {
            match event {
                Event::Hold if !held => (held, committed) = (true, index),
                Event::Commit => committed = index,
                Event::Release => (held, committed) = (false, index),
                Event::Hold | Event::Write(..) | Event::Spawn(_) | Event::Mark => {}
            }
        }
        if held && *end != End::Close {
            &events[..committed]
        } else {
            events
        }
    }

    /// The output of a strand by definition; returns whether the output continues after it.
    pub fn interpret(&self, strand: usize, output: &mut Vec<(Sink, u8)>) -> bool {
        for event in self.lasting_events(strand) {
            match event {
                Event::Write(sink, bytes) => output.extend(of(*sink, bytes)),
                Event::Spawn(child) => {
                    if !self.interpret(*child, output) {
                        return false;
                    }
                }
                Event::Mark | Event::Hold | Event::Commit | Event::Release => {}
            }
        }
        self.plans[strand].end != End::Discard(After::Stop)
    }

    pub fn expected(&self) -> Vec<(Sink, u8)> {
        let mut output = Vec::new();
        for root in &self.roots {
            self.interpret(*root, &mut output);
        }
        output
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stage {
    Unborn,
    Running,
    Ended,
}

#[derive(Debug, Clone)]
pub struct Runner {
    pub stage: Stage,
    pub next: usize,
    pub mark: usize,
    pub held: bool,
}

/// Performs a program on a stream and keeps what came out.
pub struct World {
    pub program: Program,
    pub stream: OrderedStream,
    pub random: Random,
    pub runners: Vec<Runner>,
    pub blob: Vec<u8>,
    pub spills: Vec<Spill>,
    /// Each byte with its sink, in the order of release.
    pub output: Vec<(Sink, u8)>,
}

/// Bytes with their sink.
fn of(sink: Sink, bytes: &[u8]) -> impl Iterator<Item = (Sink, u8)> {
    bytes.iter().map(move |byte| (sink, *byte))
}

fn key(strand: usize) -> StrandKey {
    StrandKey(strand as u64 * 7 + 1)
}

impl World {
    pub fn new(seed: u64, size: usize, stops: bool) -> World {
        let mut random = Random(seed);
        let program = Program::random(&mut random, size, stops);
        let unborn = Runner {
            stage: Stage::Unborn,
            next: 0,
            mark: 0,
            held: false,
        };
        let mut runners = vec![unborn; program.plans.len()];
        let mut stream = OrderedStream::new();
        for root in &program.roots {
            stream.open_root(key(*root)).unwrap();
            runners[*root].stage = Stage::Running;
        }
        let (blob, spills, output) = Default::default();
        World {
            program,
            stream,
            random,
            runners,
            blob,
            spills,
            output,
        }
    }

    /// Performs everything in a random order; the output is a prefix at every instant.
    pub fn run(&mut self) {
        let expected = self.program.expected();
        loop {
            let running: Vec<usize> = (0..self.runners.len())
                .filter(|strand| self.runners[*strand].stage == Stage::Running)
                .collect();
            if running.is_empty() {
                break;
            }
            let strand = running[self.random.below(running.len())];
            match self.step(strand) {
                Ok(()) => {}
                Err(OrderedError::Unknown { .. }) if self.stream.stopped_at().is_some() => {
                    self.runners[strand].stage = Stage::Ended;
                }
                Err(error) => panic!("{error} in {:?}", self.program.plans[strand]),
            }
            self.disturb();
            self.stream.check_all();
            assert!(expected.starts_with(&self.output), "not a prefix");
        }
        self.finish_spills();
        while self.take(1000) {}
        assert_eq!(self.output, expected);
    }

    fn step(&mut self, strand: usize) -> Result<(), OrderedError> {
        let runner = self.runners[strand].clone();
        if self.random.one_in(12) {
            return self.run_again(strand);
        }
        if runner.held && self.random.one_in(8) {
            return self.roll_back(strand);
        }
        match self.program.plans[strand].events.get(runner.next).cloned() {
            Some(event) => {
                self.stream.reach(key(strand), runner.next as u64)?;
                self.runners[strand].next += 1;
                self.perform(strand, event)
            }
            None => self.end(strand),
        }
    }

    fn perform(&mut self, strand: usize, event: Event) -> Result<(), OrderedError> {
        let next = self.runners[strand].next;
        match event {
            Event::Write(sink, bytes) => return self.write(strand, sink, bytes),
            Event::Spawn(child) => {
                self.stream.spawn(key(strand), key(child))?;
                if self.runners[child].stage == Stage::Unborn {
                    self.runners[child].stage = Stage::Running;
                }
                return Ok(());
            }
            Event::Mark if self.runners[strand].held => return Ok(()),
            Event::Mark => self.stream.mark(key(strand))?,
            Event::Hold if self.runners[strand].held => return Ok(()),
            Event::Hold => self.stream.hold(key(strand))?,
            Event::Commit => self.stream.commit(key(strand))?,
            Event::Release => self.stream.release(key(strand))?,
        }
        match event {
            Event::Hold => self.runners[strand].held = true,
            Event::Release => self.runners[strand].held = false,
            _ => {}
        }
        self.runners[strand].mark = next;
        Ok(())
    }

    fn write(&mut self, strand: usize, sink: Sink, bytes: Vec<u8>) -> Result<(), OrderedError> {
        let (left, right) = bytes.split_at(self.random.below(bytes.len() + 1));
        for part in [left, right] {
            let piece = match self.random.one_in(6) {
                true => Piece::Extent(self.store(part)),
                false => Piece::Bytes(part.to_vec()),
            };
            self.stream.write_to(key(strand), sink, piece)?;
        }
        Ok(())
    }

    fn end(&mut self, strand: usize) -> Result<(), OrderedError> {
        self.runners[strand].stage = Stage::Ended;
        match self.program.plans[strand].end {
            End::Discard(after) => {
                if self.runners[strand].held {
                    self.give_up_beneath(strand, self.runners[strand].mark, Stage::Ended);
                }
                self.stream.discard(key(strand), after)
            }
            End::Close if self.random.one_in(2) => {
                self.stream.commit(key(strand))?;
                self.stream.close(key(strand))
            }
            End::Close => {
                self.stream.close(key(strand))?;
                match self.stream.commit(key(strand)) {
                    Err(OrderedError::Unknown { .. }) => Ok(()),
                    other => other,
                }
            }
        }
    }

    /// From its mark; perhaps what it did from some event on is undone.
    fn run_again(&mut self, strand: usize) -> Result<(), OrderedError> {
        let Runner { mark, next, .. } = self.runners[strand];
        self.runners[strand].next = mark;
        let least = mark.max(self.stream.rollback_min(key(strand)) as usize);
        if least > next || self.random.one_in(2) {
            return self.stream.roll_back(key(strand), u64::MAX);
        }
        let to = least + self.random.below(next - least + 1);
        self.give_up_beneath(strand, to, Stage::Unborn);
        self.stream.roll_back(key(strand), to as u64)
    }

    fn roll_back(&mut self, strand: usize) -> Result<(), OrderedError> {
        let mark = self.runners[strand].mark;
        self.runners[strand].next = mark;
        self.give_up_beneath(strand, mark, Stage::Unborn);
        self.stream.withdraw(key(strand))
    }

    /// Descendants spawned from event `from` on lose their places.
    fn give_up_beneath(&mut self, strand: usize, from: usize, stage: Stage) {
        let mut strands = Vec::new();
        let add_children = |events: &[Event], strands: &mut Vec<usize>| {
            strands.extend(events.iter().filter_map(|event| match event {
                Event::Spawn(child) => Some(*child),
                _ => None,
            }));
        };
        add_children(&self.program.plans[strand].events[from..], &mut strands);
        while let Some(dropped) = strands.pop() {
            self.runners[dropped] = Runner {
                stage,
                next: 0,
                mark: 0,
                held: false,
            };
            add_children(&self.program.plans[dropped].events, &mut strands);
        }
    }

    fn disturb(&mut self) {
        if self.random.one_in(3) {
            let limit = 1 + self.random.below(400) as u64;
            self.take(limit);
        }
        if self.random.one_in(5) {
            let wanted = self.random.below(600) as u64;
            let spills = self.stream.spillable(wanted);
            self.spills.extend(spills);
        }
        if self.random.one_in(4) {
            self.finish_spills();
        }
    }

    fn finish_spills(&mut self) {
        for spill in std::mem::take(&mut self.spills) {
            let outcome = match self.random.one_in(4) {
                true => self.stream.put_back(spill),
                false => {
                    let extent = self.store(&spill.bytes);
                    self.stream.replace(spill.ticket, extent)
                }
            };
            assert!(matches!(outcome, Ok(()) | Err(OrderedError::UnknownTicket)));
        }
    }

    fn store(&mut self, bytes: &[u8]) -> Extent {
        let extent = Extent {
            blob: 0,
            offset: self.blob.len() as u64,
            length: bytes.len() as u64,
        };
        self.blob.extend(bytes);
        extent
    }

    fn take(&mut self, limit: u64) -> bool {
        let Some(Chunk { sink, piece, .. }) = self.stream.take_ready(limit) else {
            return false;
        };
        assert!(piece.length() <= limit && piece.length() > 0);
        self.output.extend(of(sink, &self.read(&piece)));
        true
    }

    fn read(&self, piece: &Piece) -> Vec<u8> {
        match piece {
            Piece::Bytes(bytes) => bytes.clone(),
            Piece::Extent(extent) => self.read_extent(*extent),
        }
    }

    fn read_extent(&self, extent: Extent) -> Vec<u8> {
        self.blob[extent.offset as usize..(extent.offset + extent.length) as usize].to_vec()
    }
}
