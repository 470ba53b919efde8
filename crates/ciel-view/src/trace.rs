//! A run as a trace that Perfetto and `chrome://tracing` open: the fold of moments into lines of
//! the Trace Event Format, in its form as an array.
//!
//! Each slot for scripts, each slot for commands and each worker is a row; a task is a slice on the
//! row where it runs, cut where it waits. A wait is a slice of its own among the waits. An arrow
//! leads from the spawn of a task to its start. The array is closed at the end; one that is not,
//! because the process was killed, can be opened too. It does not know where lines go. Read next:
//! `row`, then `line`.

mod line;
mod row;

use std::collections::HashMap;
use std::io::{self, Write};

use ciel_graph::{Happening, Moment};
use ciel_model::{Micros, Name};

use self::line::{Arguments, Line, Phase, Row, WAITS};
use self::row::Rows;
pub use self::row::Spot;

/// Bytes of a trace.
pub const TRACE_BYTES_MAX: u64 = 128 << 20;

/// The beginning of every trace, by which one is recognised.
pub const BEGINNING: &str = "[\n{\"name\":\"ciel run\"";

/// Tasks that have not started whose spawns are remembered; others get no arrow.
const PENDING_MAX: usize = 100_000;

/// Bytes that are kept free for the end of each slice.
const END_BYTES: u64 = 256;

/// A task before it starts, or before it resumes.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Where and when it was spawned, if its parent had a row then.
    spawned: Option<(Row, Micros)>,
    ready: Option<Micros>,
}

/// Writes the trace of one run.
#[derive(Debug)]
pub struct Tracer<W> {
    out: W,
    bytes: u64,
    bytes_max: u64,
    rows: Rows,
    running: HashMap<Name, Row>,
    /// Tasks that wait for references, by label.
    waiting: HashMap<Name, String>,
    pending: HashMap<Name, Pending>,
    /// The last task that handed over, and where: its successor is spawned next.
    handed_over: Option<(Name, Row)>,
    arrows: u64,
    last: Micros,
    is_full: bool,
}

impl<W: Write> Tracer<W> {
    /// Begins a trace of at most so many bytes.
    ///
    /// # Errors
    /// Those of `out`; so with all that follow.
    pub fn begin(out: W, bytes_max: u64, run: &str, command: &[String]) -> io::Result<Tracer<W>> {
        let mut tracer = Tracer {
            out,
            bytes: 0,
            bytes_max,
            rows: Rows::default(),
            running: HashMap::new(),
            waiting: HashMap::new(),
            pending: HashMap::new(),
            handed_over: None,
            arrows: 0,
            last: 0,
            is_full: false,
        };
        let mut first = Line::new("ciel run", Phase::Instant, WAITS, 0);
        first.arguments = Some(Arguments {
            run: Some(run.to_string()),
            command: Some(command.join(" ")),
            ..Arguments::default()
        });
        tracer.write(&first)?;
        tracer.write(&row::heading_of_waits())?;
        Ok(tracer)
    }

    /// Something happened; `spot` is where the task has its place then, if it has one.
    ///
    /// # Errors
    /// As [`Tracer::begin`].
    pub fn happened(&mut self, happening: &Happening, spot: Option<Spot>) -> io::Result<()> {
        if self.is_full {
            return Ok(());
        }
        // Threads that take turns at the machines may have looked at the clock the other way round.
        let at = happening.at.max(self.last);
        self.last = at;
        match happening.moment {
            Moment::Spawned => self.on_spawned(at, happening),
            Moment::Ready => self.on_ready(at, happening),
            Moment::Started | Moment::Resumed => {
                self.end_wait(at, happening.label.name)?;
                self.on_started(at, happening, spot.unwrap_or(Spot::Script))?;
            }
            Moment::Suspended => {
                self.end_slice(at, happening.label.name, None)?;
                self.begin_wait(at, happening)?;
            }
            Moment::Woken => {
                self.end_wait(at, happening.label.name)?;
                self.on_ready(at, happening);
            }
            Moment::TailSpawned => {
                let name = happening.label.name;
                self.handed_over = self.running.get(&name).map(|row| (name, *row));
                self.end(at, happening, None)?;
            }
            Moment::Kept | Moment::Known | Moment::Duplicated | Moment::Overtaken => {}
            Moment::Held => self.end_slice(at, happening.label.name, None)?,
            Moment::Finished => self.end(at, happening, None)?,
            Moment::Retried
            | Moment::Lost
            | Moment::RolledBack
            | Moment::StreamLost
            | Moment::Reopened
            | Moment::FileLost
            | Moment::Failed
            | Moment::Cancelled => {
                self.end(at, happening, Some(happening.moment.words()))?;
            }
        }
        match self.bytes + self.reserve() > self.bytes_max {
            true => self.fill(),
            false => Ok(()),
        }
    }

    /// The number of transitions that were left out, because too many happened at once.
    ///
    /// # Errors
    /// As [`Tracer::begin`].
    pub fn missed(&mut self, count: u64) -> io::Result<()> {
        if self.is_full {
            return Ok(());
        }
        self.close_all(self.last)?;
        self.say(&format!("{count} events are missing"))
    }

    /// The run ended.
    ///
    /// # Errors
    /// As [`Tracer::begin`].
    pub fn finish(&mut self, at: Micros) -> io::Result<()> {
        self.close_all(at.max(self.last))?;
        self.out.write_all(b"\n]\n")?;
        self.out.flush()
    }

    /// Hands all lines on.
    ///
    /// # Errors
    /// As [`Tracer::begin`].
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn on_spawned(&mut self, at: Micros, happening: &Happening) {
        let parent = happening.parent.and_then(|parent| {
            let successor = self.handed_over.filter(|(name, _)| *name == parent);
            let row = self.running.get(&parent).copied();
            row.or(successor.map(|(_, row)| row))
        });
        if self.pending.len() < PENDING_MAX {
            let spawned = parent.map(|row| (row, at));
            let pending = Pending {
                spawned,
                ready: None,
            };
            self.pending.insert(happening.label.name, pending);
        }
    }

    fn on_ready(&mut self, at: Micros, happening: &Happening) {
        if self.pending.len() < PENDING_MAX {
            let pending = self.pending.entry(happening.label.name).or_default();
            pending.ready = Some(at);
        }
    }

    fn on_started(&mut self, at: Micros, happening: &Happening, spot: Spot) -> io::Result<()> {
        let Happening { label, attempt, .. } = happening;
        let pending = self.pending.remove(&label.name).unwrap_or_default();
        let (row, heading) = self.rows.take(spot);
        for line in heading {
            self.write(&line)?;
        }
        let mut slice = Line::new(&label.what, Phase::Begin, row, at);
        slice.category = Some("task");
        slice.arguments = Some(Arguments {
            task: Some(label.to_string()),
            executor: Some(happening.executor.to_string()),
            attempt: Some(attempt.0 + 1),
            queued_us: pending.ready.map(|ready| at - ready),
            ..Arguments::default()
        });
        self.write(&slice)?;
        if let Some((from, spawned)) = pending.spawned {
            self.arrow(from, spawned, row, at)?;
        }
        let before = self.running.insert(label.name, row);
        before.map_or(Ok(()), |row| self.end_row(at, row, None))
    }

    fn arrow(&mut self, from: Row, spawned: Micros, to: Row, started: Micros) -> io::Result<()> {
        self.arrows += 1;
        for (phase, row, at) in [
            (Phase::ArrowBegin, from, spawned),
            (Phase::ArrowEnd, to, started),
        ] {
            let mut line = Line::new("spawn", phase, row, at);
            line.category = Some("spawn");
            line.id = Some(self.arrows.to_string());
            self.write(&line)?;
        }
        Ok(())
    }

    fn end(&mut self, at: Micros, happening: &Happening, why: Option<&str>) -> io::Result<()> {
        let name = happening.label.name;
        self.pending.remove(&name);
        self.end_wait(at, name)?;
        self.end_slice(at, name, why)
    }

    fn end_slice(&mut self, at: Micros, name: Name, why: Option<&str>) -> io::Result<()> {
        let row = self.running.remove(&name);
        row.map_or(Ok(()), |row| self.end_row(at, row, why))
    }

    fn end_row(&mut self, at: Micros, row: Row, why: Option<&str>) -> io::Result<()> {
        self.rows.free(row);
        let mut line = Line::new("", Phase::End, row, at);
        line.arguments = why.map(|why| Arguments {
            ended: Some(why.to_string()),
            ..Arguments::default()
        });
        self.write(&line)
    }

    fn begin_wait(&mut self, at: Micros, happening: &Happening) -> io::Result<()> {
        let (name, label) = (happening.label.name, happening.label.to_string());
        self.write(&wait_line(Phase::WaitBegin, at, name, &label))?;
        self.waiting.insert(name, label);
        Ok(())
    }

    fn end_wait(&mut self, at: Micros, name: Name) -> io::Result<()> {
        let label = self.waiting.remove(&name);
        label.map_or(Ok(()), |label| {
            self.write(&wait_line(Phase::WaitEnd, at, name, &label))
        })
    }

    /// Bytes that the ends of all slices may take.
    fn reserve(&self) -> u64 {
        (self.running.len() + self.waiting.len() + 2) as u64 * END_BYTES
    }

    /// There is no room for more.
    fn fill(&mut self) -> io::Result<()> {
        self.close_all(self.last)?;
        self.say("the trace is full; later events are missing")?;
        self.pending = HashMap::new();
        self.is_full = true;
        Ok(())
    }

    fn close_all(&mut self, at: Micros) -> io::Result<()> {
        let mut rows: Vec<(Name, Row)> = self.running.drain().collect();
        rows.sort();
        for (_, row) in rows {
            self.end_row(at, row, None)?;
        }
        let mut waits: Vec<(Name, String)> = self.waiting.drain().collect();
        waits.sort();
        for (name, label) in waits {
            self.write(&wait_line(Phase::WaitEnd, at, name, &label))?;
        }
        Ok(())
    }

    fn say(&mut self, what: &str) -> io::Result<()> {
        self.write(&Line::new(what, Phase::Instant, WAITS, self.last))
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = match self.bytes {
            0 => b"[\n".to_vec(),
            _ => b",\n".to_vec(),
        };
        line.append_to(&mut bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(&bytes)
    }
}

fn wait_line(phase: Phase, at: Micros, name: Name, label: &str) -> Line {
    let mut line = Line::new(label, phase, WAITS, at);
    line.category = Some("wait");
    line.id = Some(name.to_string());
    line
}
