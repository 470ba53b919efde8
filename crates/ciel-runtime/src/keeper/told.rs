//! What those who run tasks tell the thread of kept results.
//!
//! Files of results get a name of their own while they are sure to be there. It does not know how
//! a task ran. Read next: `keeper`.

use std::time::Instant;

use bytes::Bytes;
use ciel_engine::ResultQuery;
use ciel_graph::{Assignment, Entry, Output};
use ciel_model::{Audit, Content, Descriptor, Digest, Keeping, Resolution};
use ciel_node::AttemptKey;
use ciel_ordered::{Extent, Piece, Sink};
use ciel_store::ObjectName;

use super::{SPARE, spare};
use crate::engine::Engine;
use crate::kept::{EndedTask, PRINTED_BYTES_MAX, Request, Segment, StagedContent, StagedOutput};
use crate::output::stored;

/// Says to the thread of kept results that a task begins, if it takes part and all that it is given
/// is there: what it reads as a stream may be not.
pub(crate) fn tell_begun(engine: &Engine, assignment: &Assignment) {
    let Entry::Start(inputs) = &assignment.entry else {
        return;
    };
    let is_whole = inputs.len() == assignment.descriptor.inputs.len();
    if assignment.descriptor.keeping == Keeping::Never || !is_whole {
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
        let query = ResultQuery {
            attempt: AttemptKey {
                task: assignment.task,
                number: assignment.attempt,
            },
            strand: assignment.strand,
            label: assignment.label.clone(),
            after: assignment.next_action,
            descriptor: assignment.descriptor.clone(),
            inputs,
        };
        engine.kept.send(Request::Begun(Box::new(query)));
    }
}

/// The digest of what a command printed, if that is compared with another run of it.
pub(crate) fn printed_digest(
    engine: &Engine,
    assignment: &Assignment,
    text: Option<&Bytes>,
) -> Option<Digest> {
    let is_checked = engine.settings.check && assignment.descriptor.purity.is_pure();
    text.filter(|_| is_checked).map(|text| Digest::of(text))
}

/// Has the result of a task kept that was watched, if its promise or `audit` allows that: nothing
/// is kept of a task that says nothing about itself and was seen to have an effect, or was not
/// watched. `written` is all that it wrote.
pub(crate) fn keep_watched(
    engine: &Engine,
    assignment: &Assignment,
    outputs: &[Output],
    (written, audit): (Option<Vec<Segment>>, Option<&Audit>),
) {
    let Some(written) = written else {
        return;
    };
    let is_harmless = audit.is_some_and(|audit| audit.effects.is_empty());
    let is_kept = is_harmless || has_promised(&assignment.descriptor);
    let staged = is_kept.then(|| staged(engine, assignment, outputs));
    let takes_part = is_kept && assignment.descriptor.keeping != Keeping::Never;
    let mut begun = None;
    if takes_part {
        let core = engine.lock();
        if core.is_too_deep(assignment.label.name) {
            return leave_watched(engine, assignment);
        }
        // The worker has taken what the assignment gave it, so the graph is asked.
        begun = core.engine().query_for(assignment.task);
    }
    let ended = EndedTask {
        attempt: AttemptKey {
            task: assignment.task,
            number: assignment.attempt,
        },
        begun,
        label: assignment.label.clone(),
        descriptor: assignment.descriptor.clone(),
        outputs: staged.flatten(),
        handed: None,
        written,
        is_harmless,
        read: audit.map_or(Vec::new(), |audit| audit.read.to_vec()),
        took_us: 0,
    };
    engine.kept.send(Request::Ended(Box::new(ended)));
}

/// Notes that a task has ended well whose result cannot be kept.
pub(crate) fn leave_watched(engine: &Engine, assignment: &Assignment) {
    let attempt = AttemptKey {
        task: assignment.task,
        number: assignment.attempt,
    };
    let name = assignment.label.name;
    engine.kept.send(Request::Unkept(attempt, name));
}

/// All that a process has written, in order; none if it is too much to be kept.
pub(crate) fn segments(
    engine: &Engine,
    text: Bytes,
    appended: &[(Sink, Option<Piece>)],
) -> Option<Vec<Segment>> {
    let mut segments = Vec::new();
    if !text.is_empty() {
        segments.push(Segment {
            after: 0,
            file: None,
            bytes: text,
        });
    }
    for (sink, piece) in appended {
        let bytes = match piece {
            None => Bytes::new(),
            Some(Piece::Bytes(bytes)) => Bytes::copy_from_slice(bytes),
            Some(Piece::Extent(extent)) => short(engine, *extent)?,
        };
        segments.push(Segment {
            after: 0,
            file: Some(engine.files.path_of(*sink)?.into()),
            bytes,
        });
    }
    let bytes: usize = segments.iter().map(|segment| segment.bytes.len()).sum();
    (bytes as u64 <= PRINTED_BYTES_MAX).then_some(segments)
}

/// What is on disk, if it is not too much to be kept.
fn short(engine: &Engine, extent: Extent) -> Option<Bytes> {
    if extent.length > PRINTED_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::with_capacity(extent.length as usize);
    let copied = engine.folder.spill().copy_to(stored(extent), &mut bytes);
    copied.ok().map(|()| bytes.into())
}

/// Has the result of a command kept, if the task takes part and nothing of it is too large.
pub(crate) fn keep_command(
    engine: &Engine,
    assignment: &Assignment,
    outputs: &[Output],
    written: Option<Vec<Segment>>,
    begun: Instant,
) {
    if assignment.descriptor.keeping == Keeping::Never {
        return;
    }
    let attempt = AttemptKey {
        task: assignment.task,
        number: assignment.attempt,
    };
    let request = match written {
        Some(written) => Request::Ended(Box::new(EndedTask {
            attempt,
            begun: None,
            label: assignment.label.clone(),
            descriptor: assignment.descriptor.clone(),
            outputs: staged(engine, assignment, outputs),
            handed: None,
            written,
            is_harmless: true,
            read: Vec::new(),
            took_us: begun.elapsed().as_micros() as u64,
        })),
        None => Request::Unkept(attempt, assignment.label.name),
    };
    engine.kept.send(request);
}

/// Whether its program says that nothing but its code and inputs matters.
pub(super) fn has_promised(descriptor: &Descriptor) -> bool {
    descriptor.purity.is_pure() || descriptor.options.keep == Some(true)
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
