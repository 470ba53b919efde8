//! Runs that are killed and resumed: their output in the end is that of an undisturbed run, and
//! finished work is not redone.
//!
//! Here they die at chosen records and steps; at random moments, in `kills`. How runs are listed,
//! refused and removed is tested in `command/runs.rs`; that a worker, the spawner or the process of
//! a task is killed while the engine lives, in `processes.rs`
//! (`spawner_killed_…`, `process_of_a_task_killed_…`, `whole_tree_of_processes_killed_…`) and
//! `executors.rs` (`worker_that_died_once_…`, `parked_strand_that_is_lost_…`). Read first:
//! `support`; then `trial`.

#[cfg(debug_assertions)]
mod ended;
mod held_output;
// Only debug builds can be made to die at a record.
#[cfg(debug_assertions)]
mod loops;
#[cfg(debug_assertions)]
mod python_records;
#[cfg(debug_assertions)]
mod random_records;
#[cfg(debug_assertions)]
mod records;
#[cfg(debug_assertions)]
mod redirected;
#[path = "../support/mod.rs"]
mod support;
#[cfg(debug_assertions)]
mod trial;
