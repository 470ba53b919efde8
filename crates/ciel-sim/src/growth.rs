//! How a job grows with cores: the production engine in virtual time, with what each step costs.
//!
//! The machines here have few cores, so a run with many is computed: workers, the thread that takes
//! their messages, and the times between them are simulated, and the engine decides as it does in
//! production. The costs are measured (see [`Costs`]); nothing is random. This module knows neither
//! faults nor output. Read next: `growth/world`.

mod strand;
mod worker;
mod world;

use serde::{Deserialize, Serialize};

/// What each step costs, in nanoseconds of a processor unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// The strand that spawns: a spawn that becomes a task.
    pub spawn_ns: u64,
    /// The engine's thread: a message with a spawn, from the socket to the records.
    pub take_spawn_ns: u64,
    /// The engine's thread: the end of a task, with the start of the next one.
    pub take_end_ns: u64,
    /// The engine's thread: a strand that waits, and again when it resumes.
    pub take_wait_ns: u64,
    /// A worker: a task beside its function.
    pub task_ns: u64,
    /// A worker: a strand that waits, and again when it resumes.
    pub wait_ns: u64,
    /// A worker: a spawn and its result, if the child runs in place.
    pub call_ns: u64,
    /// From a message to a sleeping thread until it runs, by the clock.
    pub wake_ns: u64,
    /// Between two looks for an idle core of a worker that keeps children, by the clock.
    pub beat_ns: u64,
}

/// The form of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// One strand spawns all tasks and waits for them.
    Flat,
    /// Each task spawns two that halve its work, down to one grain.
    Halves,
}

/// A job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its form.
    pub shape: Shape,
    /// Pieces of work; of halves, the next power of two.
    pub grains: u32,
    /// Nanoseconds of work in each.
    pub grain_ns: u64,
}

impl Job {
    /// Pieces of work that it has.
    pub fn count(&self) -> u64 {
        match self.shape {
            Shape::Flat => u64::from(self.grains),
            Shape::Halves => u64::from(self.grains.next_power_of_two()),
        }
    }
}

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Slots for workers.
    pub slots: u32,
    /// Processors that all costs but the work itself share; none if each slot has one of its own,
    /// and the engine's thread, too. Work that sleeps needs a slot and no processor.
    pub processors: Option<u32>,
}

/// How a job went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// From the first spawn to the last result.
    pub elapsed_ns: u64,
    /// What the work alone takes if all slots share it evenly.
    pub ideal_ns: u64,
    /// Tasks that the engine had, without the root.
    pub tasks: u64,
    /// Time for which the engine's thread was busy.
    pub engine_ns: u64,
}

impl Course {
    /// Share of the slots' time that was work, from 0 to 1.
    pub fn efficiency(&self) -> f64 {
        self.ideal_ns as f64 / self.elapsed_ns.max(1) as f64
    }

    /// Share of the time for which the engine's thread was busy, from 0 to 1.
    pub fn engine_load(&self) -> f64 {
        self.engine_ns as f64 / self.elapsed_ns.max(1) as f64
    }
}

/// The course of a job on a machine. The same arguments give the same course.
pub fn course(costs: &Costs, job: &Job, machine: &Machine) -> Course {
    world::World::new(costs, job, machine).run()
}

#[cfg(test)]
mod tests;
