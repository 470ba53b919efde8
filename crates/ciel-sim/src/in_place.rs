//! Children that run in place: the outputs of a spawn without an event for the graph.
//!
//! A child runs here as a call does, if it can end without waiting, failing or requesting anything;
//! else it is spawned. Whether it is tried depends on seed and position only, so a replayed strand
//! makes the same choice. Read next: `script`, which does so at its spawns.

use std::collections::BTreeSet;
use std::sync::Arc;

use ciel_model::{Failure, Handle, Name};

use crate::program::{Act, Definition, Kind, Needs, Scenario, saw, start_of};
use crate::random::Random;

/// A reference as a script has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Local {
    /// The graph knows it by this handle.
    Told(Handle),
    /// An output of a child that ran in place, or what such a child made.
    Here(u64, Vec<Local>),
    /// The script has released it.
    Gone,
}

impl Local {
    /// Visits every handle in it.
    pub(crate) fn each_handle(&mut self, visit: &mut impl FnMut(&mut Handle)) {
        match self {
            Local::Told(handle) => visit(handle),
            Local::Here(_, inside) => {
                for local in inside {
                    local.each_handle(visit);
                }
            }
            Local::Gone => {}
        }
    }
}

/// What a script knows of a reference.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// Its value, and the references in it.
    Ready(u64, Vec<Local>),
    /// Its failure.
    Failed(Arc<Failure>),
}

impl Known {
    /// The references in it.
    pub(crate) fn inside_mut(&mut self) -> impl Iterator<Item = &mut Local> {
        match self {
            Known::Ready(_, inside) => inside.iter_mut(),
            Known::Failed(_) => [].iter_mut(),
        }
    }

    /// Whether it was made in place, and names what was made there, too. The script keeps it
    /// whatever it hears, since a replay knows it by that as well.
    pub(crate) fn is_from_here(&self) -> bool {
        let is_here = |inside: &Local| matches!(inside, Local::Here(..));
        matches!(self, Known::Ready(_, inside) if inside.iter().any(is_here))
    }
}

/// What a child gave that ran in place.
#[derive(Debug)]
pub(crate) struct Given {
    /// What it wrote.
    pub(crate) text: String,
    pub(crate) outputs: Vec<Local>,
}

/// The children in place of one script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    /// In a replay, the action from which on there are none.
    until: Option<u64>,
    /// Handles that they were given: a replay may have to spawn them.
    given: BTreeSet<Handle>,
}

impl Calls {
    /// In a replay there are those again that were before that action.
    pub(crate) fn repeat(&mut self, until: u64) {
        self.until = Some(until);
    }

    /// Whether the child that a task spawns as that action is to run in place, if it can.
    pub(crate) fn is_next(
        &self,
        scenario: &Scenario,
        task: Name,
        action: u64,
        has_spawned: bool,
    ) -> bool {
        let place = (task.0 >> 64) as u64 ^ action.rotate_left(20);
        match self.until {
            None => scenario.in_place && Random::new(scenario.seed ^ place).one_in(2),
            Some(until) => action < until && !has_spawned,
        }
    }

    /// Whether one of them was given that handle.
    pub(crate) fn has(&self, handle: Handle) -> bool {
        self.given.contains(&handle)
    }

    /// Runs a child; nothing if it has to be spawned.
    pub(crate) fn call(
        &mut self,
        scenario: &Scenario,
        definition: usize,
        given: Vec<Local>,
    ) -> Option<Given> {
        let mut handles = given.clone();
        let made = call(scenario, definition, given)?;
        for local in &mut handles {
            local.each_handle(&mut |handle| self.given.extend([*handle]));
        }
        Some(made)
    }
}

fn call(scenario: &Scenario, definition: usize, given: Vec<Local>) -> Option<Given> {
    let task = &scenario.tasks[definition];
    if !can_be_called(task, &given) {
        return None;
    }
    let mut call = Call {
        seen: start_of(definition),
        locals: given,
        text: String::new(),
    };
    let count = task.outputs.max(1) as usize;
    for act in &task.acts {
        if let Some(outputs) = call.act(scenario, act, count)? {
            return Some(call.end(outputs));
        }
    }
    let outputs = call.outputs(&[], count);
    Some(call.end(outputs))
}

fn can_be_called(task: &Definition, given: &[Local]) -> bool {
    let here = given.iter().all(|local| matches!(local, Local::Here(..)));
    let plain = !task.lazy && !task.timeout && task.retries == 0;
    plain
        && (task.kind == Kind::Thread || task.cores == 1)
        && (task.needs == Needs::Nothing || here)
}

/// Those of `which` that a script has.
pub(crate) fn pick(locals: &[Local], which: &[usize]) -> Vec<Local> {
    let found = which.iter().filter_map(|local| locals.get(*local));
    let found = found.filter(|local| **local != Local::Gone);
    found.cloned().collect()
}

struct Call {
    seen: u64,
    locals: Vec<Local>,
    text: String,
}

impl Call {
    /// The outputs, if that ends it; nothing if it cannot be done here.
    fn act(&mut self, scenario: &Scenario, act: &Act, count: usize) -> Option<Option<Vec<Local>>> {
        match act {
            Act::Print(text) => self.text.push_str(text),
            Act::Pause(_) | Act::Straggle(_) => {}
            Act::Spawn(definition, given) => {
                let given = call(scenario, *definition, self.pick(given))?;
                self.text.push_str(&given.text);
                self.locals.extend(given.outputs);
            }
            Act::Get(local) | Act::Catch(local) => match self.locals.get(*local).cloned() {
                Some(Local::Here(number, inside)) => {
                    self.seen = saw(self.seen, number);
                    self.locals.extend(inside);
                }
                Some(Local::Told(_)) => return None,
                Some(Local::Gone) | None => {}
            },
            Act::Construct(inside) => {
                let made = Local::Here(self.seen, self.pick(inside));
                self.locals.push(made);
            }
            Act::Release(which) => {
                for local in which {
                    if let Some(released) = self.locals.get_mut(*local) {
                        *released = Local::Gone;
                    }
                }
            }
            Act::Return(inside) => return Some(Some(self.outputs(inside, count))),
            Act::First(..)
            | Act::Rest(_)
            | Act::Cancel(_)
            | Act::Watch(_)
            | Act::Publish(_)
            | Act::Ask
            | Act::Flake(_)
            | Act::Fail(_)
            | Act::Hang
            | Act::Delegate(_)
            | Act::Tail(..) => return None,
        }
        Some(None)
    }

    fn pick(&self, which: &[usize]) -> Vec<Local> {
        pick(&self.locals, which)
    }

    fn outputs(&self, inside: &[usize], count: usize) -> Vec<Local> {
        vec![Local::Here(self.seen, self.pick(inside)); count]
    }

    fn end(self, outputs: Vec<Local>) -> Given {
        Given {
            text: self.text,
            outputs,
        }
    }
}
