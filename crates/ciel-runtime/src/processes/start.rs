//! What a process is started with: its inputs, command line, environment and streams.
//!
//! It does not know how the process runs. Read next: `streams`, for inputs that are still written.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use ciel_graph::{Assignment, Entry};
use ciel_model::{Content, Failure, FailureKind, Form, Handle, Label, Purity, Value, limits};
use ciel_spawner::{self as message, Start};
use rustc_hash::FxHashMap;
use rustix::pipe::{PipeFlags, pipe_with};

use super::{Failed, inputs};
use crate::engine::Engine;
use crate::error::hint_of_limit;
use crate::executors::Launch;
use crate::executors::command::{Plan, Stdout};
use crate::failures;
use crate::pipes::Pipes;
use crate::streams::{Attached, Inlet, Joined, Named, Part, Reopening, attach};
use crate::workspace::TaskWorkspace;

/// The inputs of a process.
pub(super) struct Taken {
    /// By index; what is still written is empty here.
    pub(super) values: Vec<Value<Handle>>,
    /// Inputs that it reads while they are written, by index.
    streams: Vec<(usize, Inlet)>,
    /// Those that it reads one behind the other on its standard input.
    joined: Option<Joined>,
}

impl Taken {
    /// The numbers of descriptors by which the process reads its streams. That of its standard
    /// input is not asked for.
    pub(super) fn descriptors(&self) -> FxHashMap<usize, i32> {
        let numbers = limits::STREAM_DESCRIPTOR_FIRST..;
        let streams = self.streams.iter().map(|(input, _)| *input);
        streams.zip(numbers).collect()
    }

    /// The reading ends of the streams: that of standard input, if a stream is in it, and all
    /// others with the numbers that they have in the process.
    ///
    /// # Errors
    /// The failure of the task if the system refuses a pipe, or an input cannot be read.
    pub(super) fn reading_ends(
        &mut self,
        task: &Label,
        stdin: &[usize],
        desk: &mut TaskWorkspace<'_>,
    ) -> Failed<Ends> {
        let refused = |error| trouble(task, "cannot read a stream", &error);
        let mut ends = Ends::default();
        if let [_, _, ..] = stdin {
            ends.stdin = self.join(task, stdin, desk)?;
        }
        let numbers = self.descriptors();
        for (input, inlet) in &mut self.streams {
            match stdin {
                [only] if only == input => ends.stdin = inlet.descriptor.take(),
                several if several.contains(input) => {}
                _ => {
                    let end = inlet.opened_by_path().map_err(refused)?;
                    ends.named.push((*input, numbers[input], end));
                }
            }
        }
        Ok(ends)
    }

    /// Watches the ends that the process opens by path.
    pub(super) fn watch(&self, engine: &Engine, assignment: &Assignment, ends: &Ends) -> Reopening {
        let may_rerun = assignment.descriptor.purity != Purity::Impure;
        let scratch = engine.folder.scratch();
        let named = ends.named.iter().map(|(input, _, end)| {
            let name = inputs::name_of(assignment, *input);
            let mut streams = self.streams.iter();
            let is_stored = streams.any(|(other, inlet)| other == input && inlet.is_stored());
            let named = Named {
                name: name.unwrap_or_else(|| (input + 1).to_string()),
                restarts: may_rerun && is_stored,
            };
            (named, end)
        });
        Reopening::watch(scratch, named)
    }

    /// The end of a pipe with several inputs one behind the other; none if no stream is among them.
    fn join(
        &mut self,
        task: &Label,
        stdin: &[usize],
        desk: &mut TaskWorkspace<'_>,
    ) -> Failed<Option<OwnedFd>> {
        let refused = |error| trouble(task, "cannot read a stream", &error);
        if !self.streams.iter().any(|(input, _)| stdin.contains(input)) {
            return Ok(None);
        }
        let mut parts = Vec::with_capacity(stdin.len());
        for index in stdin {
            let mut streams = self.streams.iter_mut();
            parts.push(match streams.find(|(input, _)| input == index) {
                Some((_, inlet)) => Part::stream(inlet).map_err(refused)?,
                None => Part::whole(desk.taken(*index)?),
            });
        }
        let (joined, end) = Joined::begin(parts).map_err(refused)?;
        self.joined = Some(joined);
        Ok(Some(end))
    }
}

/// The reading ends of the streams of a process.
#[derive(Default)]
pub(super) struct Ends {
    pub(super) stdin: Option<OwnedFd>,
    /// With their inputs, and their numbers in the process.
    pub(super) named: Vec<(usize, i32, OwnedFd)>,
}

impl Ends {
    /// Has the process start with them; they come after `count` other descriptors.
    pub(super) fn give_to(&self, start: &mut Start, count: usize) {
        let mut places = count as u32..;
        let stdin = self.stdin.iter().zip(&mut places);
        stdin.for_each(|(_, place)| start.stdin = message::Input::Fd(place));
        let named = self.named.iter().zip(places);
        let named = named.map(|((_, number, _), place)| (*number, place));
        start.descriptors.extend(named);
    }

    /// All of them, in their order in the request.
    pub(super) fn iter(&self) -> impl Iterator<Item = &OwnedFd> {
        self.stdin
            .iter()
            .chain(self.named.iter().map(|(_, _, end)| end))
    }
}

/// Takes the inputs of a process; none if it is to start again, because a producer has done so.
pub(super) fn take_inputs(engine: &Arc<Engine>, assignment: &Assignment) -> Failed<Option<Taken>> {
    let Entry::Start(known) = &assignment.entry else {
        unreachable!("a process has only one turn");
    };
    let known_values = failures::values_of(assignment, known)?;
    let known = known.iter().map(|(handle, _)| handle.0 as usize);
    let mut values: Vec<(usize, Value<Handle>)> = known.zip(known_values).collect();
    let mut streams = Vec::new();
    for stream in &assignment.streams {
        let index = stream.input.0 as usize;
        match attach(engine, assignment, *stream)? {
            Attached::Stream(inlet) => {
                streams.push((index, inlet));
                values.push((index, nothing()));
            }
            Attached::Value(value) => values.push((index, value)),
            Attached::Gone => return Ok(None),
        }
    }
    values.sort_by_key(|(index, _)| *index);
    let values = values.into_iter().map(|(_, value)| value).collect();
    Ok(Some(Taken {
        values,
        streams,
        joined: None,
    }))
}

/// In place of a value that is not there yet.
fn nothing() -> Value<Handle> {
    Value {
        form: Form::Bytes,
        content: Content::Inline(Bytes::new()),
        references: Vec::new(),
    }
}

pub(super) fn plan(
    engine: &Engine,
    assignment: &Assignment,
    desk: &mut TaskWorkspace<'_>,
) -> Failed<Plan> {
    let executor = engine.registry.find(&assignment.descriptor.executor);
    let Launch::Command(line) = executor.launch() else {
        unreachable!("the class of a task comes from its executor");
    };
    let arguments = serde_json::from_slice(&assignment.descriptor.payload)
        .expect("payloads of processes are written by the engine");
    line.plan(&arguments, assignment.descriptor.outputs, desk)
        .map_err(|refused| desk.refused(refused))
}

pub(super) fn trouble(label: &Label, what: &str, error: &std::io::Error) -> Box<Failure> {
    let message = format!("{what}: {error}");
    let failure = Failure::new(FailureKind::TaskError, label.clone(), message);
    Box::new(match hint_of_limit(error) {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    })
}

pub(super) fn request(
    assignment: &Assignment,
    plan: &Plan,
    stdin: Option<std::path::PathBuf>,
    desk: &mut TaskWorkspace<'_>,
) -> Failed<Start> {
    let words = plan.outer.iter().chain(&plan.program);
    let program = words
        .map(|word| crate::workspace::c_string(word.as_ref()))
        .collect();
    let task = format!("{}.{}", assignment.label.name, assignment.attempt.0);
    let mut start = Start::new(0, &task, program);
    start.environment = message::Environment::Additions(environment(assignment, plan));
    start.stdin = match stdin {
        Some(path) => message::Input::Path(crate::workspace::c_string(path.as_os_str())),
        None => message::Input::Null,
    };
    let stdout = match plan.stdout {
        Stdout::Output(index) => desk.output_path(index)?,
        Stdout::Printed => desk.printed_path()?,
    };
    desk.prepare(&stdout);
    start.stdout = message::Output::Path(crate::workspace::c_string(stdout.as_os_str()));
    start.stderr = message::Output::Fd(0);
    let folder = plan.folder.as_ref();
    start.folder = folder.map(|folder| crate::workspace::c_string(folder.as_os_str()));
    Ok(start)
}

/// The reading ends of the pipes of a process, and the writing ends that go to it by their numbers
/// in `start`. Where output that waits is bounded, what it prints and appends comes through pipes.
pub(super) fn open_pipes(
    engine: &Engine,
    assignment: &Assignment,
    plan: &Plan,
    desk: &mut TaskWorkspace<'_>,
    start: &mut Start,
) -> Failed<(Pipes, Vec<OwnedFd>)> {
    let label = &assignment.label;
    let refused = |error: std::io::Error| trouble(label, "cannot create a pipe", &error);
    let prints = plan.stdout == Stdout::Printed;
    let live = assignment.descriptor.options.live && prints;
    let (mut pipes, mut writers) = Pipes::open(engine, label, live).map_err(refused)?;
    if live {
        start.stdout = message::Output::Fd(1);
    } else if prints && let Some(file) = desk.stored_output()? {
        let (reader, writer) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| refused(error.into()))?;
        start.stdout = message::Output::Fd(writers.len() as u32);
        writers.push(writer);
        pipes.store(reader, file).map_err(refused)?;
    }
    for (ends, file) in desk.take_appending() {
        pipes.store(ends, file).map_err(refused)?;
    }
    Ok((pipes, writers))
}

fn environment(assignment: &Assignment, plan: &Plan) -> Vec<std::ffi::CString> {
    let mut entries = vec![format!("CIEL_TASK={}", assignment.label)];
    let cores = assignment
        .descriptor
        .options
        .resources
        .millicores
        .div_ceil(1000)
        .max(1);
    if cores > 1 {
        for name in crate::layout::THREAD_VARIABLES {
            if std::env::var_os(name).is_none() {
                entries.push(format!("{name}={cores}"));
            }
        }
    }
    let own = entries
        .into_iter()
        .map(|entry| crate::workspace::c_string(entry.as_ref()));
    let planned = plan.environment.iter().map(|(name, value)| {
        let mut entry = std::ffi::OsString::from(format!("{name}="));
        entry.push(value);
        crate::workspace::c_string(&entry)
    });
    own.chain(planned).collect()
}
