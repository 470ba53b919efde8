//! Descriptors as they are written and shown: flat, as sharing is a matter of memory alone.
//!
//! Read next: `usual`, for the options among them.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Descriptor as Task, TaskKind, usual};
use crate::code::{CodeIdentity, Reached, Site};
use crate::payload::Payload;
use crate::rare::Rare;
use crate::stream::Streams;
use crate::task::{Class, Input, Keeping, Options, Purity};

/// Its name and its fields are what is shown.
#[derive(Serialize, Debug)]
pub(super) struct Descriptor<'a> {
    executor: &'a Arc<str>,
    class: &'a Class,
    what: &'a Arc<str>,
    payload: &'a Payload,
    code: &'a CodeIdentity,
    reached: &'a Reached,
    inputs: &'a Vec<Input>,
    outputs: u32,
    streams: &'a Rare<Streams>,
    #[serde(serialize_with = "usual::serialize")]
    options: &'a Arc<Options>,
    site: &'a Site,
    purity: Purity,
    replayable: bool,
    keeping: Keeping,
}

#[derive(Deserialize)]
#[serde(rename = "Descriptor")]
struct Read {
    executor: Arc<str>,
    class: Class,
    what: Arc<str>,
    payload: Payload,
    code: CodeIdentity,
    reached: Reached,
    inputs: Vec<Input>,
    outputs: u32,
    streams: Rare<Streams>,
    #[serde(deserialize_with = "usual::deserialize")]
    options: Arc<Options>,
    site: Site,
    purity: Purity,
    replayable: bool,
    keeping: Keeping,
}

impl Descriptor<'_> {
    pub(super) fn of(task: &Task) -> Descriptor<'_> {
        let kind = &*task.kind;
        Descriptor {
            executor: &kind.executor,
            class: &kind.class,
            what: &kind.what,
            payload: &task.payload,
            code: &kind.code,
            reached: &kind.reached,
            inputs: &task.inputs,
            outputs: kind.outputs,
            streams: &kind.streams,
            options: &kind.options,
            site: &kind.site,
            purity: kind.purity,
            replayable: kind.replayable,
            keeping: kind.keeping,
        }
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Task, D::Error> {
    let read = Read::deserialize(deserializer)?;
    let kind = TaskKind {
        executor: read.executor,
        class: read.class,
        what: read.what,
        code: read.code,
        reached: read.reached,
        outputs: read.outputs,
        streams: read.streams,
        options: read.options,
        site: read.site,
        purity: read.purity,
        replayable: read.replayable,
        keeping: read.keeping,
    };
    Ok(Task {
        payload: read.payload,
        inputs: read.inputs,
        kind: Arc::new(kind),
    })
}
