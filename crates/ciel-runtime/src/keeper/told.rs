//! What those who run tasks tell the thread of kept results.
//!
//! Files of results get a name of their own while they are sure to be there. It does not know how
//! a task ran. Read next: `keeper`.

use ciel_engine::ResultQuery;
use ciel_graph::{Assignment, Entry, Output};
use ciel_model::{Audit, Content, Keeping, Resolution};
use ciel_node::AttemptKey;
use ciel_store::ObjectName;

use super::{SPARE, spare};
use crate::engine::Engine;
use crate::kept::{EndedTask, Request, StagedContent, StagedOutput, send};

/// Says to the thread of kept results that a task begins, if it takes part.
pub(crate) fn tell_begun(engine: &Engine, assignment: &Assignment) {
    let Entry::Start(inputs) = &assignment.entry else {
        return;
    };
    if assignment.descriptor.keeping == Keeping::Never {
        return;
    }
    let plain = |resolution: &Resolution| match resolution {
        Resolution::Ready { value, .. } if value.references.is_empty() => {
            Some((value.form.clone(), value.content.clone()))
        }
        _ => None,
    };
    let inputs: Option<Vec<_>> = inputs.iter().map(|(_, given)| plain(given)).collect();
    if let Some(inputs) = inputs {
        send(
            &engine.kept,
            Request::Begun(Box::new(ResultQuery {
                attempt: AttemptKey {
                    task: assignment.task,
                    number: assignment.attempt,
                },
                strand: assignment.strand,
                label: assignment.label.clone(),
                after: assignment.next_action,
                descriptor: assignment.descriptor.clone(),
                inputs,
            })),
        );
    }
}

/// Has the result of a task kept that was watched, if its promise or `audit` allows that: nothing
/// is kept of a task that says nothing about itself and was seen to have an effect, or was not
/// watched. `text` is what it printed.
pub(crate) fn keep_watched(
    engine: &Engine,
    assignment: &Assignment,
    outputs: &[Output],
    (text, audit): (Option<Vec<u8>>, Option<&Audit>),
) {
    let descriptor = &assignment.descriptor;
    let has_promised = descriptor.pure || descriptor.options.keep == Some(true);
    let is_harmless = audit.is_some_and(|audit| audit.effects.is_empty());
    let Some(text) = text.filter(|_| has_promised || is_harmless) else {
        return;
    };
    if engine.lock().graph().has_spawned(assignment.task) {
        return;
    }
    let Some(outputs) = staged(engine, assignment, outputs) else {
        return;
    };
    tell_begun(engine, assignment);
    let ended = EndedTask {
        attempt: AttemptKey {
            task: assignment.task,
            number: assignment.attempt,
        },
        outputs,
        printed: text.into(),
        read: audit.map_or(Vec::new(), |audit| audit.read.to_vec()),
        took_us: 0,
    };
    send(&engine.kept, Request::Ended(Box::new(ended)));
}

/// What a task gave, with names of its files that outlive their use in the run; none if a file
/// cannot have one, or an output contains references.
pub(crate) fn staged(
    engine: &Engine,
    assignment: &Assignment,
    outputs: &[Output],
) -> Option<Vec<StagedOutput>> {
    let outputs = outputs.iter().enumerate();
    outputs
        .map(|(index, output)| {
            let Output::Value(value) = output else {
                return None;
            };
            if !value.references.is_empty() {
                return None;
            }
            let content = match &value.content {
                Content::Inline(bytes) => StagedContent::Inline(bytes.clone()),
                Content::File {
                    name,
                    length,
                    digest,
                } => {
                    let from = engine.objects.share(ObjectName(name.0)).ok()?;
                    let (task, purpose) = (assignment.label.name.0, spare(index));
                    let scratch = engine.folder.scratch();
                    let path = scratch.link(&from, task, SPARE, &purpose).ok()?;
                    StagedContent::File {
                        path,
                        length: *length,
                        digest: *digest,
                    }
                }
            };
            let form = value.form.clone();
            Some(StagedOutput { form, content })
        })
        .collect()
}
