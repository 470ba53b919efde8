//! Tasks in processes of their own: from an assignment to a commit or a failure.
//!
//! Each is one straight-line future on the input/output thread. Processes are started and ended
//! by the spawner; this module knows neither why a task runs nor what comes of it. Read next:
//! `start` (its request), `turn` (when it begins), `inputs` (by name), `spawning` (the spawner's
//! socket), `workspace` (a task's files), `pipes` (its standard error), `streams` (inputs and
//! outputs that are read while they are written).

use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ciel_engine::{Action, Attempt};
use ciel_graph::{Assignment, Output};
use ciel_model::{Audit, Digest, Failure, FailureKind, Form, Keeping, Value, limits};
use ciel_node::AttemptKey;
use ciel_ordered::{Piece, Sink};
use ciel_spawner::{Exit, Left, Report, Status};

use crate::command_failure::{self, Ended, Remains};
use crate::death;
use crate::engine::Engine;
use crate::executors::command::{Plan, Stdout};
use crate::executors::shell;
use crate::failures;
use crate::keeper;
use crate::kept::{self, Request};
use crate::largest::Maker;
use crate::objects;
use crate::ordered_files;
use crate::output;
use crate::pipes::Pipes;
use crate::plain_shell::as_by_shell;
use crate::spawning::{ProcessEvent, Spawning};
use crate::streams::{Carried, Misuse, Outlets, Reopening, misused, read_whole};
use crate::workspace::TaskWorkspace;

mod inputs;
mod refused;
mod start;
mod turn;

use inputs::{check_inputs, inputs_of};
use refused::{own, refused_start, too_large, warn_of_left};
use start::trouble;
pub(crate) use turn::Turn;
use turn::{Events, await_turn};

type Failed<T> = Result<T, Box<Failure>>;

/// How a process came to its end.
enum ProcessEnd {
    Exited {
        exit: Exit,
        left: Vec<Left>,
        left_count: u32,
    },
    Refused(ciel_spawner::Refusal),
    /// The spawner died, and the process with it.
    Lost,
    /// It took more memory than it declared, wrote more than there is room for, or misused a
    /// stream.
    Overdrawn(Box<Failure>),
}

impl ProcessEnd {
    fn is_success(&self) -> bool {
        matches!(self, ProcessEnd::Exited { exit, .. } if exit.status == Status::Code(0))
    }

    fn status(&mut self) -> Option<&mut Status> {
        match self {
            ProcessEnd::Exited { exit, .. } => Some(&mut exit.status),
            _ => None,
        }
    }
}

/// Runs one task in a process of its own, when its turn has come.
pub(crate) async fn run(
    engine: Arc<Engine>,
    spawning: Rc<Spawning>,
    assignment: Box<Assignment>,
    mut turn: Turn,
) {
    let is_gone = run_in_turn(&engine, &spawning, &assignment, &mut turn).await;
    if is_gone && turn.is_due() {
        let (mut now, key) = (Turn::now(), Attempt::new(&assignment).key());
        spawning.wait_no_more(key);
        run_in_turn(&engine, &spawning, &assignment, &mut now).await;
    } else if is_gone {
        turn.return_unbegun(&engine, &spawning, Attempt::new(&assignment).key());
    }
}

/// True if it was sent before its time and has not run; then there is nothing of it.
async fn run_in_turn(
    engine: &Arc<Engine>,
    spawning: &Rc<Spawning>,
    assignment: &Assignment,
    turn: &mut Turn,
) -> bool {
    let mut attempt = Attempt::new(assignment);
    let mut desk = TaskWorkspace::new(engine, assignment);
    let key = attempt.key();
    let mut begun = Instant::now();
    if turn.has_begun() {
        keeper::tell_begun(engine, assignment);
    }
    // The outputs stay open until the graph knows of the end.
    let mut outlets = Outlets::new(engine, key);
    let ends = (&mut desk, &mut outlets);
    let course = (&mut *turn, &mut begun);
    let ended = run_to_end(engine, spawning, assignment, course, ends).await;
    if !turn.has_begun() {
        return true;
    }
    if death::loses(&assignment.label) {
        return false;
    }
    // The key of a kept result is made of whole inputs.
    let takes_part = assignment.descriptor.keeping != Keeping::Never;
    let is_well = matches!(ended, Ok(Conclusion::Outputs { .. }));
    let is_kept = assignment.streams.is_empty() && is_well;
    if takes_part && !is_kept {
        engine.kept.send(match is_well {
            true => Request::Unkept(key, assignment.label.name),
            false => Request::Left(key),
        });
    }
    match ended {
        Ok(Conclusion::Outputs {
            outputs,
            written,
            text,
        }) => {
            let printed = keeper::printed_digest(engine, assignment, text.as_ref());
            if is_kept {
                let text = text.and_then(|text| keeper::segments(engine, text, &written.appended));
                keeper::keep_command(engine, assignment, &outputs, text, begun);
            }
            let attempt = (&mut attempt, &*turn);
            let written = (written, printed);
            commit((engine, spawning), assignment, attempt, outputs, written);
        }
        Ok(Conclusion::Lost(failure)) => engine.with(|core, now| {
            let event = attempt.left_with(attempt.lost(failure));
            turn.leave(core, now, spawning, (key, event));
        }),
        Ok(Conclusion::Stopped) => {
            engine.with(|core, now| turn.leave(core, now, spawning, (key, attempt.left())));
        }
        Err(failure) => {
            engine.heed_surroundings(&failure);
            let end = attempt.act(Action::Fail(*failure));
            engine.with(|core, now| turn.leave(core, now, spawning, (key, end.event)));
        }
    }
    false
}

/// What comes of a process.
enum Conclusion {
    Outputs {
        outputs: Vec<Output>,
        written: Written,
        /// The bytes printed, if the result is to be kept and they are not too many.
        text: Option<Bytes>,
    },
    Lost(Failure),
    /// The process is not needed any more.
    Stopped,
}

/// What a process has written beside its outputs.
struct Written {
    printed: Printed,
    /// To ordered files; none to one that it only could have written to.
    appended: Vec<(Sink, Option<Piece>)>,
}

/// What a process has printed.
enum Printed {
    Nothing,
    /// It went out while the process ran.
    Already,
    /// It is released now.
    Piece(Piece),
}

fn commit(
    (engine, spawning): (&Engine, &Spawning),
    assignment: &Assignment,
    (attempt, turn): (&mut Attempt, &Turn),
    outputs: Vec<Output>,
    (written, printed): (Written, Option<Digest>),
) {
    engine.with(|core, now| {
        match written.printed {
            Printed::Nothing => {}
            Printed::Already => {
                attempt.write();
            }
            Printed::Piece(_) if core.is_stopping(attempt.key()) => {}
            Printed::Piece(piece) => {
                // A process runs once more only when nothing of it was committed, so nothing
                // differs.
                let (strand, label) = (assignment.strand, &assignment.label);
                let _ = core.write(strand, label, attempt.write(), piece);
            }
        }
        if !core.is_stopping(attempt.key()) {
            for (sink, piece) in written.appended {
                let Some(piece) = piece else { continue };
                let (strand, label) = (assignment.strand, &assignment.label);
                let _ = core.write_file(strand, label, attempt.write(), (sink, piece));
            }
        }
        let audit = printed.map(Audit::of_printed);
        let end = attempt.act(Action::Finish(outputs)).audited(audit);
        turn.leave(core, now, spawning, (attempt.key(), end.event));
    });
    output::spill_excess(engine);
}

async fn run_to_end(
    engine: &Arc<Engine>,
    spawning: &Rc<Spawning>,
    assignment: &Assignment,
    (turn, begun): (&mut Turn, &mut Instant),
    (desk, outlets): (&mut TaskWorkspace<'_>, &mut Outlets),
) -> Failed<Conclusion> {
    let attempt = outlets.attempt();
    let Some(mut taken) = start::take_inputs(engine, assignment)? else {
        return Ok(Conclusion::Stopped);
    };
    desk.lay_out(std::mem::take(&mut taken.values));
    desk.set_descriptors(taken.descriptors());
    let plan = start::plan(engine, assignment, desk)?;
    let sinks = sinks_of(engine, assignment, &plan)?;
    let streams = taken.reading_ends(&assignment.label, &plan.stdin, desk)?;
    let stdin = match &streams.stdin {
        None => desk.standard_input(&plan.stdin).await?,
        Some(_) => None,
    };
    inputs::unpack(assignment, desk).await?;
    outlets.make(assignment, &plan.stdout, desk)?;
    if engine.lock().is_stopping(attempt) {
        return Ok(Conclusion::Stopped);
    }
    let mut start = start::request(assignment, &plan, stdin, desk)?;
    let shell = spawning.shell.as_ref();
    let is_direct = shell.is_some_and(|shell| shell.skip(&plan, &mut start));
    start.waits = !turn.has_begun();
    start.passes_on = turn::passes_on(assignment, desk)?;
    let (mut pipes, writers) = start::open_pipes(engine, assignment, &plan, desk, &mut start)?;
    streams.give_to(&mut start, writers.len());
    let reopening = taken.watch(engine, assignment, &streams);
    let ends = writers.iter().chain(streams.iter());
    let borrowed: Vec<_> = ends.map(AsFd::as_fd).collect();
    let events = spawning
        .start(attempt, start, &borrowed)
        .map_err(|error| trouble(&assignment.label, "cannot reach the spawner", &error))?;
    drop(streams);
    outlets.tell_opened();
    let mut events = Events::new(events);
    if !await_turn(engine, spawning, assignment, (turn, begun), &mut events).await {
        return Ok(Conclusion::Stopped);
    }
    let running = (&mut events, &mut pipes, turn, (&*outlets, &reopening));
    let ended = watch(engine, spawning, assignment, attempt, running).await;
    let mut ended = ended.and_then(|ended| judge(engine, assignment, ended, (outlets, &reopening)));
    // Not before: that the last writer has gone would be news of its own.
    drop(writers);
    let status = ended.as_mut().and_then(ProcessEnd::status);
    let words = status.filter(|_| is_direct).and_then(as_by_shell);
    pipes.drain(engine, assignment, words);
    let is_well = ended.as_ref().is_some_and(ProcessEnd::is_success);
    let carried = outlets.end(&assignment.label, is_well).await?;
    drop(taken);
    if ended.as_ref().is_some_and(ProcessEnd::is_success) {
        desk.pack().await?;
    }
    if let Some(failure) = pipes.trouble(&assignment.label).filter(|_| ended.is_some()) {
        return Err(Box::new(failure));
    }
    let mut concluded = conclude(engine, assignment, &plan, (desk, &carried), &pipes, ended)?;
    if let Conclusion::Outputs { written, .. } = &mut concluded {
        for (index, sink) in sinks.into_iter().enumerate() {
            let piece = desk.take_appended(index)?;
            written.appended.push((sink, piece));
        }
    }
    Ok(concluded)
}

/// The ordered files of a process, which are opened before it starts.
fn sinks_of(engine: &Engine, assignment: &Assignment, plan: &Plan) -> Failed<Vec<Sink>> {
    let sink = |path: &String| ordered_files::sink_for(engine, assignment, path);
    plan.appends.iter().map(sink).collect()
}

/// The end of a process that has exited, unless it has read an output that is a stream, or opened
/// an input again that is one; none if its task restarts.
fn judge(
    engine: &Engine,
    assignment: &Assignment,
    ended: ProcessEnd,
    (outlets, reopening): (&Outlets, &Reopening),
) -> Option<ProcessEnd> {
    let has_exited = matches!(ended, ProcessEnd::Exited { .. });
    let misread = outlets.misread_by_now(&assignment.label).map(Misuse::Fails);
    let misused = misread.or_else(|| reopening.found_by_now(&assignment.label));
    match misused.filter(|_| has_exited) {
        None => Some(ended),
        Some(Misuse::Fails(failure)) => Some(ProcessEnd::Overdrawn(failure)),
        Some(Misuse::ReadsWhole) => {
            read_whole(engine, assignment);
            None
        }
    }
}

/// What is told of a process, what it prints, its turn, and its streams.
type Running<'a> = (
    &'a mut Events,
    &'a mut Pipes,
    &'a mut Turn,
    (&'a Outlets, &'a Reopening),
);

/// Waits for the end of a process; passes on its standard error and minds its memory.
async fn watch(
    engine: &Engine,
    spawning: &Rc<Spawning>,
    assignment: &Assignment,
    attempt: AttemptKey,
    (events, pipes, turn, streams): Running<'_>,
) -> Option<ProcessEnd> {
    let limit = assignment.memory_limit();
    let mut sample = tokio::time::interval(Duration::from_millis(limits::MEMORY_SAMPLE_MS));
    let mut stopped = false;
    let mut ending = None;
    let mut pid = None;
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(ProcessEvent::Report(Report::Started { pid: started, .. })) => {
                    pid = Some(started);
                    engine.lock().pids.insert(attempt.task, started);
                }
                Some(ProcessEvent::Report(Report::Passed { .. } | Report::Withdrawn { .. })) => {}
                Some(ProcessEvent::Began) => {}
                Some(ProcessEvent::Followed(next)) => turn.is_followed(next),
                Some(ProcessEvent::Report(Report::Refused { refusal, .. })) => {
                    return Some(ProcessEnd::Refused(refusal));
                }
                Some(ProcessEvent::Report(Report::Exited { exit, left, left_count, .. })) => {
                    let mut core = engine.lock();
                    core.spent(attempt.task, exit.user_us + exit.system_us);
                    core.history.process_ended(&assignment.label, exit.resident_bytes_max);
                    drop(core);
                    let exited = ProcessEnd::Exited { exit, left, left_count };
                    return (!stopped).then(|| ending.unwrap_or(exited));
                }
                Some(ProcessEvent::Stop) => {
                    stopped = true;
                    pipes.free();
                    spawning.stop(attempt);
                }
                Some(ProcessEvent::ReadOn) => pipes.read_on(),
                Some(ProcessEvent::NoRoom(overdrawn)) => {
                    if let Some(no_room) = own(&overdrawn, assignment) {
                        let failure = Box::new(no_room.failure(&assignment.label));
                        ending.get_or_insert(ProcessEnd::Overdrawn(failure));
                        spawning.kill(attempt);
                    }
                }
                Some(ProcessEvent::Lost) | None => {
                    engine.lock().spent(attempt.task, 0);
                    return if stopped { None } else { Some(ProcessEnd::Lost) };
                }
            },
            () = pipes.read(engine, assignment) => {}
            misuse = misused(streams, pid, &assignment.label), if ending.is_none() => match misuse {
                Misuse::Fails(failure) => {
                    ending = Some(ProcessEnd::Overdrawn(failure));
                    spawning.kill(attempt);
                }
                Misuse::ReadsWhole => read_whole(engine, assignment),
            },
            _ = sample.tick(), if limit.is_some() && pid.is_some() && ending.is_none() => {
                let bytes = pid.map_or(0, |pid| ciel_spawner::resident_anonymous(&[pid])[0]);
                if limit.is_some_and(|limit| bytes > limit) {
                    ending = Some(ProcessEnd::Overdrawn(too_large(assignment, bytes)));
                    spawning.kill(attempt);
                }
            }
        }
    }
}

fn conclude(
    engine: &Engine,
    assignment: &Assignment,
    plan: &Plan,
    (desk, carried): (&mut TaskWorkspace<'_>, &[(u32, Carried)]),
    pipes: &Pipes,
    ended: Option<ProcessEnd>,
) -> Failed<Conclusion> {
    let label = &assignment.label;
    let Some(ended) = ended else {
        if assignment.descriptor.options.timeout_us.is_some() {
            let words = described(assignment, plan, desk, pipes);
            engine.lock().stopped_commands.note(label, words);
        }
        return Ok(Conclusion::Stopped);
    };
    let status = match ended {
        ProcessEnd::Exited {
            exit,
            left,
            left_count,
        } => {
            warn_of_left(engine, label, &left, left_count);
            exit.status
        }
        ProcessEnd::Lost => {
            let message = "the spawner, which watched its process, died";
            let failure = Failure::new(FailureKind::WorkerLost, label.clone(), message);
            return Ok(Conclusion::Lost(failure));
        }
        ProcessEnd::Refused(refusal) => return Err(Box::new(refused_start(label, &refusal))),
        ProcessEnd::Overdrawn(failure) => {
            let remains = remains(assignment, plan, desk, pipes);
            return Err(Box::new(command_failure::ended_early(
                *failure, plan, remains,
            )));
        }
    };
    check_inputs(assignment, desk)?;
    if status != Status::Code(0) {
        let ended = Ended::badly(plan, status);
        return Err(Box::new(failed(assignment, plan, desk, pipes, ended)));
    }
    if let Some(told) = pipes.differs() {
        return Err(Box::new(failures::differs(assignment, told)));
    }
    if let Some(fault) = output_fault(assignment, plan, desk)? {
        return Err(Box::new(failed(assignment, plan, desk, pipes, fault)));
    }
    let outputs = gather(engine, assignment, desk, carried)?;
    let text = printed_text(plan, desk, pipes);
    let printed = match plan.stdout {
        Stdout::Printed if assignment.descriptor.options.lazy => {
            desk.keep_printed(&plan.stdout);
            Printed::Nothing
        }
        Stdout::Printed if pipes.has_printed() => Printed::Already,
        Stdout::Printed => desk
            .take_printed()?
            .map_or(Printed::Nothing, Printed::Piece),
        Stdout::Output(_) => Printed::Nothing,
    };
    let appended = Vec::new();
    let written = Written { printed, appended };
    Ok(Conclusion::Outputs {
        outputs,
        written,
        text,
    })
}

/// The bytes printed, as far as they can be kept with the result.
fn printed_text(plan: &Plan, desk: &TaskWorkspace<'_>, pipes: &Pipes) -> Option<Bytes> {
    match plan.stdout {
        Stdout::Printed if pipes.has_printed() => None,
        Stdout::Printed => desk.printed_bytes(kept::PRINTED_BYTES_MAX),
        Stdout::Output(_) => Some(Bytes::new()),
    }
}

/// The first output that the command has not written as it must.
fn output_fault(
    assignment: &Assignment,
    plan: &Plan,
    desk: &TaskWorkspace<'_>,
) -> Failed<Option<Ended>> {
    for index in 0..assignment.descriptor.outputs {
        let path = desk.output_path(index)?;
        let (what, hint) = match std::fs::symlink_metadata(&path) {
            Ok(found) if !found.is_dir() => continue,
            Ok(_) => (
                "is a folder",
                "an output is a file; for a folder write a slash behind its name: {out/}",
            ),
            Err(_) if plan.written.is_some() && !shell::is_strict(plan) => (
                "is missing",
                "a command must write each of its outputs; it succeeds if its last part does, \
                 unless its shell is \"strict\"",
            ),
            Err(_) => (
                "is missing",
                "a task must write each of its outputs, if only as an empty file",
            ),
        };
        let what = format!("its {} {what}", shown_output(assignment, index));
        return Ok(Some(Ended::Incomplete { what, hint }));
    }
    Ok(None)
}

/// An output by its name, or by its number if it has none.
fn shown_output(assignment: &Assignment, index: u32) -> String {
    match arguments_of(assignment)["outputs"].get(index as usize) {
        Some(serde_json::Value::String(name)) => format!("output {name:?}"),
        _ => format!("output {} of {}", index + 1, assignment.descriptor.outputs),
    }
}

fn gather(
    engine: &Engine,
    assignment: &Assignment,
    desk: &mut TaskWorkspace<'_>,
    carried: &[(u32, Carried)],
) -> Failed<Vec<Output>> {
    let label = &assignment.label;
    let count = assignment.descriptor.outputs;
    let mut outputs = Vec::with_capacity(count as usize);
    for index in 0..count {
        let carried = carried.iter().find(|(carried, _)| *carried == index);
        let path = match carried {
            Some((_, Carried::Passed)) => {
                outputs.push(Output::Passed);
                continue;
            }
            Some((_, Carried::Stored(path))) => path.clone(),
            None => desk.output_path(index)?,
        };
        let name = label.name.output(u64::from(index));
        let content = objects::adopt(engine, &Maker::Task(label), name, &path)
            .map_err(|trouble| Box::new(trouble.failure(engine, label)))?;
        outputs.push(Output::Value(Value {
            form: Form::Bytes,
            content,
            references: Vec::new(),
        }));
    }
    Ok(outputs)
}

/// The failure of a command that ended badly, with what it left. Its inputs are as they were.
fn failed(
    assignment: &Assignment,
    plan: &Plan,
    desk: &TaskWorkspace<'_>,
    pipes: &Pipes,
    ended: Ended,
) -> Failure {
    let remains = remains(assignment, plan, desk, pipes);
    command_failure::failure(&assignment.label, plan, ended, remains)
}

fn remains(
    assignment: &Assignment,
    plan: &Plan,
    desk: &TaskWorkspace<'_>,
    pipes: &Pipes,
) -> Remains {
    let printed = desk.keep_printed(&plan.stdout);
    Remains {
        inputs: inputs_of(assignment, desk),
        writes_streams: !assignment.descriptor.streams.outputs.is_empty(),
        stdout: pipes.output_end().unwrap_or(printed),
        stderr: pipes.errors.end(),
    }
}

/// What a command that was ended was, as the report of its failure shows it.
fn described(
    assignment: &Assignment,
    plan: &Plan,
    desk: &TaskWorkspace<'_>,
    pipes: &Pipes,
) -> String {
    let inputs = inputs_of(assignment, desk);
    command_failure::description(plan, &inputs, &pipes.errors.end())
}

fn arguments_of(assignment: &Assignment) -> serde_json::Value {
    serde_json::from_slice(&assignment.descriptor.payload)
        .expect("payloads of processes are written by the engine")
}
