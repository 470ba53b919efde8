//! What tasks have in common, declared once for a connection: by the worker for tasks that it
//! spawns, by the engine for tasks that it starts there.
//!
//! It knows neither sockets nor the graph. Read next: `descriptor`, which makes tasks of
//! definitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use ciel_model::{
    CallOptions, CodeIdentity, Descriptor as Task, Digest, FunctionCode, Mode, Options, Purity,
    Reached, Refused, Resources, Site, Streams,
};
use ciel_protocol::limits::DEFINITIONS_MAX;
use ciel_protocol::wire::{self, Define};
use rustc_hash::FxHashMap;

use crate::callee::Callee;
use crate::limits::LABEL_CHARACTERS_MAX;

/// Tasks that a worker spawns.
pub(crate) struct Definition {
    pub(crate) callee: Arc<dyn Callee>,
    /// None if the executor is to make one of the arguments.
    pub(crate) label: Option<Arc<str>>,
    pub(crate) code: CodeIdentity,
    pub(crate) reached: Reached,
    /// Where the tasks are spawned.
    pub(crate) file: Arc<str>,
    pub(crate) outputs: u32,
    /// Outputs that are streams.
    pub(crate) streams: Streams,
    pub(crate) options: Arc<Options>,
    /// Whether equal calls share a result, if the worker declares it.
    pub(crate) pure: Option<bool>,
}

impl Definition {
    fn read(asked: &Define, callee: Arc<dyn Callee>, defaults: &Options) -> Definition {
        let (options, pure) = options(asked.options.as_ref(), defaults);
        let pieces = pieces(&asked.code);
        let label = plain_label(&asked.label);
        Definition {
            callee,
            label: (!label.is_empty()).then(|| label.into()),
            code: CodeIdentity::of(pieces.iter().take(1).cloned().collect()),
            reached: Reached::of(pieces),
            file: asked.file.as_str().into(),
            outputs: asked.outputs,
            streams: streams(asked),
            options: Arc::new(options),
            pure,
        }
    }
}

/// The outputs that a definition declares as streams, of those that there are.
fn streams(asked: &Define) -> Streams {
    let mut outputs = asked.streams.clone();
    outputs.retain(|output| *output < asked.outputs);
    outputs.sort_unstable();
    outputs.dedup();
    let mode = mode_of(asked.stream_mode());
    Streams {
        single_consumer: asked.single_consumer || mode == Some(Mode::Direct),
        outputs,
        mode,
        wishes: Vec::new(),
    }
}

/// A mode, if the message names one.
pub(crate) fn mode_of(named: wire::StreamMode) -> Option<Mode> {
    match named {
        wire::StreamMode::Unspecified => None,
        wire::StreamMode::NoStream => Some(Mode::NoStream),
        wire::StreamMode::Overlap => Some(Mode::Overlap),
        wire::StreamMode::IndirectFile => Some(Mode::IndirectFile),
        wire::StreamMode::IndirectPipe => Some(Mode::IndirectPipe),
        wire::StreamMode::IndirectTcp => Some(Mode::IndirectTcp),
        wire::StreamMode::Direct => Some(Mode::Direct),
    }
}

fn plain_label(label: &str) -> String {
    let plain = label.chars().filter(|c| !c.is_control());
    plain.take(LABEL_CHARACTERS_MAX).collect()
}

fn pieces(functions: &[wire::FunctionCode]) -> Vec<FunctionCode> {
    let function = |function: &wire::FunctionCode| FunctionCode {
        name: function.name.as_str().into(),
        place: function.site.as_ref().map_or_else(Site::default, site),
        digest: Digest::of(&function.digest),
    };
    functions.iter().map(function).collect()
}

fn site(site: &wire::Site) -> Site {
    Site {
        file: site.file.as_str().into(),
        line: site.line,
    }
}

/// The definitions of a worker, by their ids.
#[derive(Default)]
pub(crate) struct Received(Vec<Option<Definition>>);

impl Received {
    /// The worker declares tasks, which `callee` makes.
    ///
    /// # Errors
    /// The id is too large.
    pub(crate) fn add(
        &mut self,
        asked: &Define,
        callee: Arc<dyn Callee>,
        defaults: &Options,
    ) -> Result<(), String> {
        if asked.id >= DEFINITIONS_MAX {
            let id = asked.id;
            return Err(format!(
                "it sent the definition {id}; ids are below {DEFINITIONS_MAX}"
            ));
        }
        let index = asked.id as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(Definition::read(asked, callee, defaults));
        Ok(())
    }

    /// The definition of that id.
    pub(crate) fn find(&self, id: u32) -> Result<&Definition, Refused> {
        let found = self.0.get(id as usize).and_then(Option::as_ref);
        found.ok_or_else(|| {
            Refused::new(format!(
                "it named the definition {id}, which it did not send"
            ))
            .hint("a worker sends `define` before the first spawn that names it")
        })
    }
}

/// What tasks have in common that start in a worker.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    what: Arc<str>,
    options: Arc<Options>,
    outputs: u32,
    purity: Purity,
}

impl Key {
    /// Whether that is in common with the task; where both share it, that is seen at once.
    fn is_of(&self, task: &Task) -> bool {
        self.what == task.what
            && self.options == task.options
            && self.outputs == task.outputs
            && self.purity == task.purity
    }
}

/// The definitions that a worker has of the engine.
#[derive(Default)]
pub(crate) struct Sent {
    ids: FxHashMap<Key, u32>,
    /// That of the latest task: most tasks are like the one before.
    last: Option<(Key, u32)>,
}

impl Sent {
    /// The id of a task's definition, and the definition if the worker does not have it.
    pub(crate) fn id_of(&mut self, task: &Task) -> (u32, Option<Define>) {
        let last = self.last.as_ref().filter(|(key, _)| key.is_of(task));
        if let Some((_, id)) = last {
            return (*id, None);
        }
        let (key, id, define) = self.find(task);
        self.last = Some((key, id));
        (id, define)
    }

    fn find(&mut self, task: &Task) -> (Key, u32, Option<Define>) {
        let key = Key {
            what: task.what.clone(),
            options: task.options.clone(),
            outputs: task.outputs,
            purity: task.purity,
        };
        if let Some(id) = self.ids.get(&key) {
            return (key, *id, None);
        }
        if self.ids.len() >= DEFINITIONS_MAX as usize {
            self.ids.clear();
        }
        let id = self.ids.len() as u32;
        let define = Define {
            id,
            label: task.what.to_string(),
            outputs: task.outputs,
            options: Some(options_sent(&task.options, task.purity)),
            ..Define::default()
        };
        self.ids.insert(key.clone(), id);
        (key, id, Some(define))
    }
}

/// What a definition asks for, and whether equal calls share a result, if it declares that.
fn options(asked: Option<&wire::Options>, defaults: &Options) -> (Options, Option<bool>) {
    let Some(asked) = asked else {
        return (defaults.clone(), None);
    };
    let mut options = CallOptions {
        retries: asked.retries,
        timeout_us: asked.timeout_ms.map(|limit| limit.saturating_mul(1000)),
        lazy: asked.lazy,
        live: asked.live,
        keep: match asked.keep() {
            wire::Retention::Unspecified => None,
            wire::Retention::Keep => Some(true),
            wire::Retention::Never => Some(false),
        },
        ..CallOptions::default()
    };
    for (name, amount) in &asked.resources {
        let small = u32::try_from(*amount).unwrap_or(u32::MAX);
        match name.as_str() {
            "cores" => options.millicores = Some(small),
            "memory" => options.memory_bytes = Some(*amount),
            other => drop(options.others.insert(other.into(), small)),
        }
    }
    let pure = match asked.purity() {
        wire::Purity::Unspecified => None,
        wire::Purity::Pure => Some(true),
        wire::Purity::Impure => Some(false),
    };
    (options.over(defaults.clone()), pure)
}

/// The options of a task, as its worker receives them.
fn options_sent(options: &Options, purity: Purity) -> wire::Options {
    let Resources {
        millicores,
        memory_bytes,
        others,
    } = &options.resources;
    let mut resources = BTreeMap::from([("cores".to_string(), u64::from(*millicores))]);
    resources.extend(memory_bytes.map(|bytes| ("memory".to_string(), bytes)));
    let named = |(name, amount): (&Arc<str>, &u32)| (name.to_string(), u64::from(*amount));
    resources.extend(others.iter().map(named));
    wire::Options {
        resources,
        retries: Some(options.retries),
        timeout_ms: options.timeout_us.map(|limit| limit.div_ceil(1000)),
        lazy: options.lazy,
        purity: match purity {
            Purity::Declared => wire::Purity::Pure.into(),
            Purity::Assumed | Purity::Unsaid => wire::Purity::Unspecified.into(),
            Purity::Impure => wire::Purity::Impure.into(),
        },
        live: options.live,
        keep: match options.keep {
            None => wire::Retention::Unspecified.into(),
            Some(true) => wire::Retention::Keep.into(),
            Some(false) => wire::Retention::Never.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use ciel_model::{Class, Descriptor};

    use super::*;

    fn task(what: &str) -> Task {
        Descriptor::plain("e", Class::Process, what, Vec::new())
    }

    #[test]
    fn equal_tasks_are_defined_once() {
        let mut sent = Sent::default();
        let (first, define) = sent.id_of(&task("a"));
        assert_eq!(define.map(|define| define.label), Some("a".to_string()));
        assert_eq!(sent.id_of(&task("a")), (first, None));
        let (other, define) = sent.id_of(&task("b"));
        assert!(other != first && define.is_some());
    }

    #[test]
    fn ids_of_definitions_stay_below_their_limit() {
        let mut sent = Sent::default();
        for number in 0..=DEFINITIONS_MAX {
            let (id, define) = sent.id_of(&task(&number.to_string()));
            assert!(id < DEFINITIONS_MAX && define.is_some());
        }
        let (_, again) = sent.id_of(&task("0"));
        assert!(again.is_some(), "its id stands for something else now");
    }

    #[test]
    fn label_is_one_line_that_people_can_read() {
        assert_eq!(plain_label("f\n\u{7}g"), "fg");
        assert_eq!(plain_label(&"x".repeat(100)).len(), LABEL_CHARACTERS_MAX);
    }
}
