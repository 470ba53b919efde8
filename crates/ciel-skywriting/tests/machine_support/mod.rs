//! A small scheduler in memory, so that whole programs with spawns run inside the tests.
//!
//! It knows no engine: tasks are run one after the other in an order that the test chooses, and
//! may be saved and loaded at every point where they wait.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod takes;
mod world;

pub use world::World;

use ciel_skywriting::code::Code;
use ciel_skywriting::diagnostic::Diagnostic;
use ciel_skywriting::front::{self, Loader};
use ciel_skywriting::host::Thrown;
use ciel_skywriting::machine::{Role, ScriptEnvironment};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Compiles a script, which must be without static errors.
pub fn compile(source: &str) -> Arc<Code> {
    let program = front::check("test.sw", source.as_bytes(), &mut NoFiles)
        .unwrap_or_else(|problems| panic!("{problems}\nin:\n{source}"));
    Arc::new(Code::compile(&program))
}

struct NoFiles;

impl Loader for NoFiles {
    fn load(&mut self, name: &str, _from: &str) -> Result<(String, Vec<u8>), String> {
        Err(format!("there is no file {name}"))
    }
}

/// What a program did.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The result, or kind and message of the failure.
    pub result: Result<serde_json::Value, Thrown>,
    /// Where it failed.
    pub place: Option<Diagnostic>,
    /// The lines of all tasks in serial order.
    pub output: Vec<String>,
    /// Calls of `Host::spawn`.
    pub spawns: usize,
}

impl Outcome {
    /// The result of a program that ended well.
    pub fn value(&self) -> &serde_json::Value {
        match &self.result {
            Ok(value) => value,
            Err(thrown) => panic!("the program failed: {thrown:?} at {:?}", self.place),
        }
    }

    /// The failure of a program that failed.
    pub fn thrown(&self) -> &Thrown {
        self.result
            .as_ref()
            .expect_err("the program should have failed")
    }
}

/// Which spawned functions are tasks at once; the machine keeps the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promotes {
    /// All of them.
    Always,
    /// Those that have to be.
    Never,
    /// By chance, and now and then when the fuel is used up.
    Seed(u64),
}

/// How a program is run.
#[derive(Debug, Clone)]
pub struct Plan {
    pub surroundings: ScriptEnvironment,
    /// Runs the task that was spawned last first.
    pub newest_first: bool,
    /// Saves and loads each task whenever it waits.
    pub reload: bool,
    /// Renumbers references whenever it may.
    pub compact: bool,
    /// Which spawned functions are tasks at once.
    pub promotes: Promotes,
    /// Instructions at a time.
    pub fuel: u64,
    /// Gives up after so many turns.
    pub turns_max: usize,
}

impl Default for Plan {
    fn default() -> Plan {
        let surroundings = ScriptEnvironment {
            role: Role::Job,
            ..ScriptEnvironment::default()
        };
        Plan {
            surroundings,
            newest_first: false,
            reload: false,
            compact: false,
            promotes: Promotes::Always,
            fuel: 1_000_000,
            turns_max: 1_000_000,
        }
    }
}

/// Runs a program in spawn order.
pub fn run(source: &str) -> Outcome {
    run_as(source, &Plan::default())
}

/// Runs a program as planned. However many of its functions the machine keeps, and whenever it
/// promotes them, the outcome is the same but for the number of spawns.
pub fn run_as(source: &str, plan: &Plan) -> Outcome {
    let code = compile(source);
    let outcome = World::new(code.clone(), plan.clone()).run();
    let seeds = (0..6).map(Promotes::Seed);
    for promotes in std::iter::once(Promotes::Never).chain(seeds) {
        let fuel = match promotes {
            Promotes::Seed(seed) => plan.fuel.min(1 << (4 * seed + 3)),
            Promotes::Always | Promotes::Never => plan.fuel,
        };
        let other = Plan {
            promotes,
            fuel,
            ..plan.clone()
        };
        let kept = World::new(code.clone(), other).run();
        let spawns = outcome.spawns;
        assert_eq!(
            Outcome { spawns, ..kept },
            outcome,
            "{promotes:?} of\n{source}"
        );
    }
    outcome
}

/// The result of a program that ends well.
pub fn value(source: &str) -> serde_json::Value {
    run(source).value().clone()
}

/// The failure of a program that does not.
pub fn failure(source: &str) -> Thrown {
    run(source).thrown().clone()
}

/// The environment of most tests.
pub fn surroundings() -> ScriptEnvironment {
    ScriptEnvironment {
        argv: vec!["first".into(), "second".into()],
        env: BTreeMap::from([("HOME".to_owned(), "/home".to_owned())]).into(),
        role: Role::Job,
        ..ScriptEnvironment::default()
    }
}

/// `return expression;`
pub fn eval(expression: &str) -> serde_json::Value {
    value(&format!("return {expression};"))
}

/// Kind and message of `return expression;`
pub fn fails(expression: &str) -> (String, String) {
    let thrown = failure(&format!("return {expression};"));
    (thrown.kind, thrown.message)
}

#[track_caller]
pub fn assert_fails(expression: &str, kind: &str, message: &str) {
    let (found_kind, found_message) = fails(expression);
    assert_eq!(
        (found_kind.as_str(), found_message.as_str()),
        (kind, message),
        "{expression}"
    );
}
