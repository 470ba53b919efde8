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

/// What is kept of a script that ends well with these outputs, before it does.
pub(crate) fn ended_script(
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
pub(crate) fn keep_script(core: &mut Core, mut ended: Box<EndedTask>, outputs: &[Output]) {
    let name = ended.label.name;
    if core.is_too_deep(name) {
        return core.tell_ended_below(name);
    }
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
