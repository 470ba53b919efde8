//! Who is killed.
//!
//! It knows processes by their parents and command lines only. Read first: `support`.

use crate::support::random::Random;
use crate::support::{Live, Place, command_of, kill, parent_of, until_true};

/// Words in the command line of a worker of Python.
const WORKER: &str = "ciel.worker";

/// Who is killed.
#[derive(Clone, Copy, Debug)]
pub enum Victim {
    /// The process of the command.
    Engine,
    /// That and, right after it, its spawner.
    EngineAndSpawner,
    /// These and all tasks.
    Everybody,
    /// The spawner; the engine lives.
    Spawner,
    /// A worker.
    Worker,
    /// The first process of a command, or one that is about to become a worker.
    Command,
    /// A child of a command.
    Grandchild,
}

/// Those whose death costs no task an attempt.
pub const HARMLESS: [Victim; 5] = [
    Victim::Engine,
    Victim::EngineAndSpawner,
    Victim::Everybody,
    Victim::Spawner,
    Victim::Worker,
];

/// Those whose death fails a task, which has to be retried.
pub const OF_COMMANDS: [Victim; 2] = [Victim::Command, Victim::Grandchild];

impl Victim {
    /// Whether the run's process is among them.
    pub fn ends_the_run(self) -> bool {
        matches!(
            self,
            Victim::Engine | Victim::EngineAndSpawner | Victim::Everybody
        )
    }

    /// Kills it; whether there was one. The engine dies first, so that it does not see the others
    /// die.
    pub fn kill(self, place: &Place, live: &Live, random: &mut Random) -> bool {
        let all = place.processes();
        if !all.contains(&live.pid()) {
            return false;
        }
        let others = self.others(&all, live, random);
        if !self.ends_the_run() {
            others.iter().for_each(|pid| kill(*pid, "KILL"));
            return !others.is_empty();
        }
        live.signal("KILL");
        others.iter().for_each(|pid| kill(*pid, "KILL"));
        if matches!(self, Victim::Everybody) {
            kill_all(place);
        }
        true
    }

    /// Those beside the engine.
    fn others(self, all: &[u32], live: &Live, random: &mut Random) -> Vec<u32> {
        let engine = [live.pid()];
        let spawner = children(all, &engine);
        let (workers, commands) = children(all, &spawner)
            .into_iter()
            .partition(|pid| command_of(*pid).contains(WORKER));
        match self {
            Victim::Engine => Vec::new(),
            Victim::EngineAndSpawner | Victim::Spawner => spawner,
            Victim::Everybody => all.to_vec(),
            Victim::Worker => one_of(workers, random),
            Victim::Command => one_of(commands, random),
            Victim::Grandchild => one_of(children(all, &commands), random),
        }
    }
}

fn children(all: &[u32], parents: &[u32]) -> Vec<u32> {
    let is_child = |pid: &&u32| parent_of(**pid).is_some_and(|parent| parents.contains(&parent));
    all.iter().filter(is_child).copied().collect()
}

fn one_of(mut pids: Vec<u32>, random: &mut Random) -> Vec<u32> {
    match pids.len() as u64 {
        0 => Vec::new(),
        count => vec![pids.swap_remove(random.below(count) as usize)],
    }
}

fn kill_all(place: &Place) {
    until_true("nobody is left", || {
        let left = place.processes();
        left.iter().for_each(|pid| kill(*pid, "KILL"));
        left.is_empty()
    });
}
