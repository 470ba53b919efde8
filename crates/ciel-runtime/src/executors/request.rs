//! From a call, as a program makes it, to the task that the graph takes.
//!
//! Every way to spawn ends here. It does not know who calls. Read next: `translate` for scripts,
//! `workers` for the executor protocol.

use std::sync::Arc;

use bytes::Bytes;
use ciel_model::{
    Class, CodeIdentity, Descriptor, Input, InputMode, Keeping, Options, Payload, Purity, Reached,
    Refused, Site, Streams, TaskKind,
};
use ciel_workers::{Callee, SpawnCall};
use serde_json::Value;

use super::{Executor, Replay};
use crate::keep_rule::KeepRule;

/// A call, as its program makes it.
pub(crate) struct Request {
    pub(crate) label: Arc<str>,
    /// As the executor understands it; it names inputs by index.
    pub(crate) payload: Bytes,
    /// The code that it runs.
    pub(crate) code: CodeIdentity,
    /// All code that it may reach.
    pub(crate) reached: Reached,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: u32,
    /// Those that the caller declares as streams, rather than its arguments.
    pub(crate) streams: Streams,
    /// The arguments; null for a call that is not one of an executor by name.
    pub(crate) arguments: Value,
    pub(crate) options: Arc<Options>,
    /// Whether equal calls share one result, if the program declares it.
    pub(crate) pure: Option<bool>,
    pub(crate) site: Site,
}

impl Request {
    /// The task, in a run that is recorded or not and keeps results by that rule.
    pub(crate) fn descriptor(
        self,
        executor: &dyn Executor,
        recorded: bool,
        rule: KeepRule,
    ) -> Arc<Descriptor> {
        let keeping = rule.of_task(
            executor.is_keepable(&self.reached, &self.arguments),
            self.outputs,
            (self.options.keep, self.pure),
        );
        let replayable = match executor.replay() {
            Replay::Never => false,
            Replay::IfUseful => recorded || self.options.retries > 0,
            Replay::Always => true,
        };
        let purity = Purity::of(self.pure, executor.is_pure());
        let streams = match self.streams == Streams::default() {
            true => executor.streams(&self.arguments, self.outputs),
            false => self.streams,
        };
        let options = executor.options(self.options);
        let class = executor.launch().class(&options);
        let inputs = with_streams(
            self.inputs,
            executor.stream_inputs(&self.arguments),
            &options,
        );
        let kind = TaskKind {
            executor: executor.name().clone(),
            what: self.label,
            code: self.code,
            reached: self.reached,
            outputs: self.outputs,
            options: release_early(options, &class),
            class,
            site: self.site,
            // Bytes that are not stored have one reader, so nobody shares them.
            purity: match streams.single_consumer {
                true => purity.unshared(),
                false => purity,
            },
            replayable,
            keeping: match streams.single_consumer {
                true => Keeping::Never,
                false => keeping,
            },
            streams: streams.into(),
        };
        Arc::new(Descriptor {
            payload: Payload::new(self.payload),
            inputs,
            kind: Arc::new(kind),
        })
    }
}

/// The inputs of which those at `streams` may be read while they are written. The task then commits
/// after their producers, so it is not one whose output goes out before.
fn with_streams(mut inputs: Vec<Input>, streams: Vec<usize>, options: &Options) -> Vec<Input> {
    for index in streams.into_iter().filter(|_| !options.live) {
        if let Some(input) = inputs.get_mut(index) {
            input.mode = InputMode::Stream;
        }
    }
    inputs
}

/// What scripts and workers write goes out as soon as its turn has come: they are replayed from
/// facts, so they write the same again. A process commits its output whole unless it is declared
/// live.
pub(crate) fn release_early(options: Arc<Options>, class: &Class) -> Arc<Options> {
    if *class == Class::Process || options.live {
        return options;
    }
    match options == Options::shared_default() {
        true => Options::shared_live(),
        false => Arc::new(Options {
            live: true,
            ..(*options).clone()
        }),
    }
}

/// An executor, as workers spawn its tasks in a run that is recorded or not.
pub(crate) struct Called {
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) recorded: bool,
    pub(crate) keep_rule: KeepRule,
}

impl Callee for Called {
    fn task(&self, call: SpawnCall) -> Result<Arc<Descriptor>, Refused> {
        let executor = &*self.executor;
        let arguments = executor.validate(&call.payload)?;
        let from_arguments = || executor.label_of(&arguments).map(Arc::from);
        let label = call.label.or_else(from_arguments);
        let inputs = call.inputs.into_iter().map(|(handle, asked)| Input {
            handle,
            mode: executor.input_mode(Some(asked)),
        });
        let request = Request {
            payload: executor.payload(call.payload, &arguments),
            code: call.code,
            reached: call.reached,
            label: label.unwrap_or_else(|| executor.name().clone()),
            inputs: inputs.collect(),
            outputs: call.outputs,
            streams: call.streams,
            arguments,
            options: call.options,
            pure: call.pure,
            site: call.site,
        };
        Ok(request.descriptor(executor, self.recorded, self.keep_rule))
    }
}
