//! The host of a running script: what its machine asks for becomes actions of an attempt.
//!
//! The actions are gathered in program order, and submitted when the stretch is over. It does not
//! know threads or turns. Read next: `scripts`, which runs the machines.

use ciel_engine::{Action, At, Attempt, Event};
use ciel_model::{ActionKey, Form, Handle, Label, Name, RecentKinds, Value, limits};
use ciel_ordered::Sink;
use ciel_skywriting::host::{
    Handle as ScriptHandle, Host, Keeping, NoPackage, RefusedFile, SpawnRequest, Work,
};
use ciel_skywriting::machine::Machine;
use rustc_hash::FxHashMap;

use crate::engine::Engine;
use crate::largest::Maker;
use crate::objects;
use crate::ordered_files;
use crate::script::{self, Earlier, Script, assigned};
use crate::settings::Package;
use crate::translate;
use crate::user_files;

/// What a script did since its last report, in program order.
pub(crate) enum Act {
    Step(Event),
    /// After so many actions.
    Print(u64, Vec<u8>),
    /// To an ordered file, after so many actions.
    Append(u64, Sink, Vec<u8>),
}

/// Spawns of a script, the latest ones, among which the task that made an object is looked for.
const MAKERS_MAX: u64 = 1024;

/// Outputs of each of them that are looked at.
const MAKER_OUTPUTS_MAX: u64 = 4;

/// The surroundings of one script for one stretch of running.
pub(crate) struct ScriptHost<'a> {
    engine: &'a Engine,
    latest: &'a mut RecentKinds,
    origin: &'a [u8],
    /// What the script did in this stretch.
    pub(crate) acts: Vec<Act>,
    /// How many tasks were spawned in this stretch.
    pub(crate) spawned: u32,
    label: &'a Label,
    constructed: &'a mut (u64, u32),
    attempt: &'a mut Attempt,
    earlier: Option<&'a mut Earlier>,
    packages: &'a mut Option<Box<FxHashMap<String, ScriptHandle>>>,
}

/// The machine of a script, for how many instructions it has kept what it keeps, and the host for
/// one stretch of running. `latest` has the kinds of the latest calls without options.
pub(crate) fn host_of<'a>(
    engine: &'a Engine,
    latest: &'a mut RecentKinds,
    script: &'a mut Script,
) -> (&'a mut Machine, &'a mut u32, ScriptHost<'a>) {
    let host = ScriptHost {
        engine,
        latest,
        origin: &script.origin,
        acts: Vec::new(),
        spawned: 0,
        label: &assigned(&script.assignment).label,
        constructed: &mut script.constructed,
        attempt: &mut script.attempt,
        earlier: script::earlier_in(&mut script.past),
        packages: &mut script.packages,
    };
    (&mut script.machine, &mut script.kept_for, host)
}

impl Host for ScriptHost<'_> {
    fn keeping(&mut self, action: u64) -> Keeping {
        let was_spawned = self.earlier.as_deref_mut().is_some_and(|earlier| {
            while earlier
                .spawned
                .front()
                .is_some_and(|before| *before < action)
            {
                earlier.spawned.pop_front();
            }
            earlier.spawned.front() == Some(&action)
        });
        if was_spawned || self.engine.settings.serial {
            return Keeping::Promoted;
        }
        match self.attempt.repeats(ActionKey::action(action)) {
            true => Keeping::Sealed,
            false => Keeping::Kept,
        }
    }

    fn has_idle_thread(&self) -> bool {
        self.engine.is_thread_idle()
    }

    fn spawn(&mut self, request: SpawnRequest) {
        self.spawned += 1;
        self.comes_to(request.action);
        let is_plain = matches!(request.work, Work::Call(_)) && request.options.is_null();
        let descriptor = match is_plain {
            true => translate::plain_call(self.engine, self.origin, self.latest, request),
            false => translate::descriptor(self.engine, self.origin, request),
        };
        let act = self.attempt.act(Action::Spawn {
            at: At::Action,
            first: None,
            descriptor,
        });
        self.acts.push(Act::Step(act.event));
    }

    fn construct(
        &mut self,
        action: u64,
        bytes: Vec<u8>,
        references: Vec<ScriptHandle>,
    ) -> Result<(), String> {
        self.comes_to(action);
        if self.constructed.0 != action {
            *self.constructed = (action, 0);
        }
        let part = self.constructed.1;
        self.constructed.1 += 1;
        let name = || self.label.name.construct(action).construct(part.into());
        let content = objects::keep(self.engine, &Maker::Task(self.label), name, bytes.into());
        let content = content.map_err(|error| {
            error.heed(self.engine);
            error.to_string()
        })?;
        self.make(Value {
            form: Form::Skywriting,
            content,
            references: script::handles(&references),
        });
        Ok(())
    }

    fn print(&mut self, actions: u64, line: &str) {
        self.comes_to(actions);
        if let Some(Act::Print(_, bytes)) = self.acts.last_mut() {
            bytes.extend_from_slice(line.as_bytes());
            return bytes.push(b'\n');
        }
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.acts.push(Act::Print(self.attempt.write(), bytes));
    }

    fn append(&mut self, actions: u64, path: &str, text: &str) -> Result<(), RefusedFile> {
        self.comes_to(actions);
        let sink = ordered_files::sink_of(self.engine, path);
        let sink = sink.map_err(|error| RefusedFile {
            message: error.to_string(),
            hint: error.hint(None),
        })?;
        if let Some(Act::Append(_, last, bytes)) = self.acts.last_mut()
            && *last == sink
        {
            bytes.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let (after, bytes) = (self.attempt.write(), text.as_bytes().to_vec());
        self.acts.push(Act::Append(after, sink, bytes));
        Ok(())
    }

    fn package(&mut self, action: u64, name: &str) -> Result<ScriptHandle, NoPackage> {
        self.comes_to(action);
        if let Some(handle) = self.packages.as_ref().and_then(|known| known.get(name)) {
            return Ok(*handle);
        }
        let given = self.engine.settings.packages.get(name);
        let given = given.ok_or(NoPackage::Unknown)?;
        // Nothing is constructed unless all can be read: the script counts its handles.
        let values = given.files().iter().map(|path| {
            user_files::bring_in(self.engine, path)
                .map_err(|error| NoPackage::Unusable(format!("{path:?}: {error}")))
        });
        let values: Vec<Value<Handle>> = values.collect::<Result<_, _>>()?;
        let index = match given {
            Package::File(_) => None,
            Package::Index(paths) => Some(user_files::index_of(self.engine, paths)),
        };
        let unusable = |error: std::io::Error| NoPackage::Unusable(error.to_string());
        let index = index.transpose().map_err(unusable)?;
        let files: Vec<Handle> = values.into_iter().map(|value| self.make(value)).collect();
        let package = match index {
            None => files[0],
            Some(index) => self.make(Value {
                references: files,
                ..index
            }),
        };
        let package = ScriptHandle(package.0);
        let known = self.packages.get_or_insert_default();
        known.insert(name.to_string(), package);
        Ok(package)
    }

    fn maker(&self, object: &str) -> Option<String> {
        let object: Name = object.parse().ok()?;
        let actions = self.attempt.actions();
        let latest = (actions.saturating_sub(MAKERS_MAX)..actions).rev();
        let mut tasks = latest.map(|action| self.label.name.spawn(action));
        let made = |task: &Name| (0..MAKER_OUTPUTS_MAX).any(|index| task.output(index) == object);
        tasks.find(made).map(|task| format!("{task:?}"))
    }
}

impl ScriptHost<'_> {
    /// Whether it has written so much in this stretch that it is to ask for room, if it has to.
    pub(crate) fn has_written_much(&self) -> bool {
        let written = self.acts.iter().map(|act| match act {
            Act::Print(_, bytes) | Act::Append(_, _, bytes) => bytes.len(),
            Act::Step(_) => 0,
        });
        self.engine.settings.output_bound().is_some()
            && written.sum::<usize>() >= limits::ASKED_AFTER_BYTES
    }

    /// Whether it has spawned so much in this stretch that it is to look whether it has to pause.
    pub(crate) fn has_spawned_many(&self) -> bool {
        let bound = self.engine.settings.children_bound();
        bound.is_some_and(|bound| self.spawned >= bound.min(limits::ASKED_AFTER_SPAWNS))
    }

    /// The machine has counted so many actions, those that it keeps among them.
    fn comes_to(&mut self, actions: u64) {
        let reached = self.attempt.reach(actions);
        reached.expect("a machine counts its actions upwards, and bounds them");
    }

    /// Makes an object of the script's. Gives its handle.
    fn make(&mut self, value: Value<Handle>) -> Handle {
        let act = self.attempt.act(Action::Construct {
            at: At::Part,
            handle: None,
            value,
        });
        self.acts.push(Act::Step(act.event));
        act.first.expect("a construction has a handle")
    }
}
