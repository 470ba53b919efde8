//! Values in files, in some scenarios: where their bytes are decides where tasks run.
//!
//! A file has a length of its own, and its digest is the value, so nothing has to be stored. Here
//! is counted what has to be moved: what a task takes that was not at its site. It does not know
//! how a site is chosen. Read next: `sites`.

use std::collections::{BTreeMap, BTreeSet};

use ciel_engine::Event;
use ciel_engine::message::{SiteKey, ToHome};
use ciel_graph::{self as graph, Entry, Output, Step};
use ciel_model::{Content, Digest, Handle, Name, Resolution, Value};
use ciel_node::WorkerKey;

use super::machine::Machine;
use super::{Common, SitesMet};

/// A file has fewer bytes.
const FILE_BYTES: u128 = 1 << 20;

/// Files of which a worker keeps something.
const KEPT: usize = 4;

/// Whether values are in files in a scenario.
fn makes_files(seed: u64) -> bool {
    seed % 4 < 2
}

/// Puts the values that a task makes into files.
pub(super) fn put_into_files(seed: u64, task: Name, event: &mut graph::Event) {
    if !makes_files(seed) {
        return;
    }
    match event {
        graph::Event::TaskFinished { outputs, .. } => {
            for (index, output) in (0..).zip(outputs) {
                if let Output::Value(value) = output {
                    put_into_file(task.output(index), value);
                }
            }
        }
        graph::Event::TaskStepped { step, .. } => match step {
            Step::Construct { at, value, .. } => {
                put_into_file(
                    task.construct(at.action)
                        .argument(at.part.unwrap_or(0).into()),
                    value,
                );
            }
            Step::Publish { index, value, .. } => {
                put_into_file(task.output(u64::from(*index)), value);
            }
            _ => {}
        },
        _ => {}
    }
}

fn put_into_file(name: Name, value: &mut Value<Handle>) {
    if let Content::Inline(bytes) = &value.content {
        let number: [u8; 8] = bytes[..].try_into().expect("values are eight bytes");
        value.content = Content::File {
            name,
            length: 1 + (name.0 % FILE_BYTES) as u64,
            digest: Some(Digest(u64::from_be_bytes(number).into())),
        };
    }
}

fn value_of(output: &Output) -> Option<&Value<Handle>> {
    match output {
        Output::Value(value) => Some(value),
        _ => None,
    }
}

/// The files that an attempt takes when it begins, with their lengths.
pub(super) fn taken(entry: &Entry) -> Vec<(Name, u64)> {
    let (Entry::Start(given) | Entry::Replay { inputs: given, .. }) = entry else {
        return Vec::new();
    };
    let files = given.iter().filter_map(|(_, resolution)| match resolution {
        Resolution::Ready { value, .. } => value.content.file(),
        Resolution::Future | Resolution::Failed(_) => None,
    });
    files.map(|(name, file)| (name, file.length)).collect()
}

/// Which sites have which files.
#[derive(Debug, Default)]
pub(super) struct Files(BTreeMap<Name, BTreeSet<SiteKey>>);

impl Files {
    /// An attempt of a site has made files.
    pub(super) fn note_made(&mut self, site: SiteKey, message: &ToHome) {
        let (ToHome::Acted(event) | ToHome::SpawnedBegun(event)) = message else {
            return;
        };
        let values: Vec<&Value<Handle>> = match event {
            graph::Event::TaskFinished { outputs, .. } => {
                outputs.iter().filter_map(value_of).collect()
            }
            graph::Event::TaskStepped {
                step: Step::Construct { value, .. } | Step::Publish { value, .. },
                ..
            } => vec![value],
            _ => Vec::new(),
        };
        for (name, _) in values.iter().filter_map(|value| value.content.file()) {
            self.0.entry(name).or_default().insert(site);
        }
    }

    /// An attempt begins at a site, which has all that it takes from then on.
    pub(super) fn note_begun(&mut self, site: SiteKey, entry: &Entry, met: &mut SitesMet) {
        for (name, length) in taken(entry) {
            match self.0.entry(name).or_default().insert(site) {
                true => met.moved_bytes += length,
                false => met.near_bytes += length,
            }
        }
    }

    /// A site is gone with what it had.
    pub(super) fn lose(&mut self, site: SiteKey) {
        for sites in self.0.values_mut() {
            sites.remove(&site);
        }
    }
}

impl Machine {
    /// A worker keeps something of what its task takes, and nothing of the oldest others any more.
    pub(super) fn keep_caches(
        &mut self,
        common: &mut Common<'_>,
        worker: WorkerKey,
        held: Vec<(Name, u64)>,
    ) {
        if held.is_empty() || common.random.one_in(2) || !self.workers.contains_key(&worker) {
            return;
        }
        let kept = self.caches.entry(worker).or_default();
        let news = held.into_iter().filter(|(name, _)| !kept.contains(name));
        let held: Vec<(Name, u64)> = news.take(KEPT).collect();
        kept.extend(held.iter().map(|(name, _)| *name));
        let dropped = kept.drain(..kept.len().saturating_sub(KEPT)).collect();
        self.submit(
            common,
            Event::WorkerCaches {
                worker,
                held,
                dropped,
            },
        );
    }
}

impl Common<'_> {
    /// The event of an attempt as its site hears it.
    pub(super) fn with_files(&self, task: Name, mut event: graph::Event) -> graph::Event {
        put_into_files(self.scenario.seed, task, &mut event);
        event
    }
}
