//! What threads of scripts tell the thread of kept results.
//!
//! A script has no effect of its own beside what it writes: all else is done by tasks that it
//! spawns. It does not know how a script runs. Read next: `told`.

use std::path::PathBuf;
use std::sync::Arc;

use ciel_graph::{Assignment, Output};
use ciel_model::{Content, Descriptor, Digest, FileRead, Form, Label};
use ciel_node::AttemptKey;
use ciel_skywriting::wire;

use super::told::staged;
use crate::core::Core;
use crate::engine::Engine;
use crate::kept::{EndedTask, Request, Segment};
use crate::objects;

/// A script that is about to end well.
pub(crate) enum EndedScript {
    /// What it gives has files, which have got names that outlive the task.
    Staged(Box<EndedTask>),
    /// What it gives has none; here is what it has written.
    Inline(Vec<Segment>),
}

impl EndedScript {
    /// That of a script which has written this and ends with these outputs, before it does.
    pub(crate) fn of(
        engine: &Engine,
        assignment: &Assignment,
        written: Vec<Segment>,
        outputs: &[Output],
    ) -> EndedScript {
        match outputs.iter().any(has_file) {
            true => EndedScript::Staged(ended_task(engine, assignment, written, outputs)),
            false => EndedScript::Inline(written),
        }
    }

    fn task(self, engine: &Engine, assignment: &Assignment, outputs: &[Output]) -> Box<EndedTask> {
        match self {
            EndedScript::Staged(task) => task,
            EndedScript::Inline(written) => ended_task(engine, assignment, written, outputs),
        }
    }
}

fn has_file(output: &Output) -> bool {
    matches!(output, Output::Value(value) if matches!(value.content, Content::File { .. }))
}

fn ended_task(
    engine: &Engine,
    assignment: &Assignment,
    written: Vec<Segment>,
    outputs: &[Output],
) -> Box<EndedTask> {
    // Functions in a value can be read by the program only that made them.
    let has_functions = outputs.iter().any(|output| has_functions(engine, output));
    let outputs = match has_functions {
        true => None,
        false => staged(engine, assignment, outputs),
    };
    Box::new(EndedTask {
        attempt: AttemptKey {
            task: assignment.task,
            number: assignment.attempt,
        },
        begun: None,
        label: assignment.label.clone(),
        descriptor: assignment.descriptor.clone(),
        outputs,
        handed: None,
        written,
        is_harmless: true,
        read: Vec::new(),
        took_us: 0,
    })
}

fn has_functions(engine: &Engine, output: &Output) -> bool {
    match output {
        Output::Value(value) if value.form == Form::Skywriting => {
            let bytes = objects::load(engine, &value.content);
            bytes.map_or(true, |bytes| wire::has_functions(&bytes))
        }
        _ => false,
    }
}

/// Has the result of a script kept that ends well right after this with these outputs.
pub(crate) fn keep_script(
    engine: &Engine,
    core: &mut Core,
    assignment: &Assignment,
    ended: EndedScript,
    outputs: &[Output],
) {
    let name = assignment.label.name;
    if core.is_too_deep(name) {
        return match ended {
            EndedScript::Inline(_) => core.tell_ended_below(assignment.task, name),
            // The names of its files go.
            EndedScript::Staged(task) => core.tell_kept(Request::Unkept(task.attempt, name)),
        };
    }
    let mut ended = ended.task(engine, assignment, outputs);
    if let [Output::Delegate(handle)] = outputs {
        ended.handed = core.graph().object_name(ended.attempt.task, *handle);
    }
    core.tell_begun(ended.attempt.task);
    core.tell_kept(Request::Ended(ended));
}

/// A task that ended in its first step, as far as it is kept with the one that spawned it.
pub(crate) struct Stepped {
    attempt: AttemptKey,
    label: Label,
    descriptor: Arc<Descriptor>,
}

impl Stepped {
    pub(crate) fn of(assignment: &Assignment) -> Stepped {
        Stepped {
            attempt: AttemptKey {
                task: assignment.task,
                number: assignment.attempt,
            },
            label: assignment.label.clone(),
            descriptor: assignment.descriptor.clone(),
        }
    }

    /// Says that it has read these files, which became its outputs in this order.
    pub(crate) fn tell(self, core: &Core, outputs: &[Output], read: &[PathBuf]) {
        let read = read.iter().zip(outputs);
        let read: Option<Vec<FileRead>> =
            read.map(|(path, output)| file_read(path, output)).collect();
        if let Some(read) = read.filter(|_| core.follows(self.label.name)) {
            core.tell_kept(Request::Ended(Box::new(EndedTask {
                attempt: self.attempt,
                begun: None,
                label: self.label,
                descriptor: self.descriptor,
                outputs: None,
                handed: None,
                written: Vec::new(),
                is_harmless: true,
                read,
                took_us: 0,
            })));
        }
    }
}

fn file_read(path: &PathBuf, output: &Output) -> Option<FileRead> {
    let Output::Value(value) = output else {
        return None;
    };
    let digest = match &value.content {
        Content::Inline(bytes) => Digest::of(bytes),
        Content::File { digest, .. } => (*digest)?,
    };
    Some(FileRead {
        path: std::path::absolute(path).ok()?.to_str()?.into(),
        length: value.content.length(),
        digest,
    })
}
