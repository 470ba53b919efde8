//! What the model must give where the answer is known.

use super::{Costs, Job, Machine, Shape, course};

const COSTS: Costs = Costs {
    spawn_ns: 6_000,
    take_spawn_ns: 2_000,
    take_end_ns: 3_000,
    take_wait_ns: 3_000,
    task_ns: 8_000,
    wait_ns: 10_000,
    call_ns: 2_000,
    wake_ns: 20_000,
    beat_ns: 1_000_000,
};

fn efficiency(shape: Shape, grain_ns: u64, slots: u32) -> f64 {
    // 50 ms of work for each slot.
    let grains = (50_000_000 / grain_ns) as u32 * slots;
    let job = Job {
        shape,
        grains,
        grain_ns,
    };
    let machine = Machine {
        slots,
        processors: None,
    };
    course(&COSTS, &job, &machine).efficiency()
}

#[test]
fn one_slot_takes_the_time_of_all_work() {
    let found = efficiency(Shape::Flat, 10_000_000, 1);
    assert!((0.98..=1.0).contains(&found), "{found}");
}

#[test]
fn flat_job_saturates_where_one_strand_spawns_no_faster() {
    // One spawn in 6 µs keeps 16 cores busy with 100 µs tasks, and no more.
    let busy = efficiency(Shape::Flat, 1_000_000, 64);
    let starved = efficiency(Shape::Flat, 100_000, 64);
    assert!(busy > 0.8, "{busy}");
    let bound = 100_000.0 / 6_000.0 / 64.0;
    assert!((0.6 * bound..=1.05 * bound).contains(&starved), "{starved}");
}

#[test]
fn halves_use_cores_that_a_flat_job_leaves_idle() {
    let flat = efficiency(Shape::Flat, 50_000, 64);
    let halves = efficiency(Shape::Halves, 50_000, 64);
    assert!(halves > 2.0 * flat, "{halves} and {flat}");
}

#[test]
fn halves_in_place_promote_few_tasks() {
    let job = Job {
        shape: Shape::Halves,
        grains: 1 << 14,
        grain_ns: 10_000,
    };
    let machine = Machine {
        slots: 4,
        processors: None,
    };
    let course = course(&COSTS, &job, &machine);
    assert!(course.tasks < 200, "{}", course.tasks);
}

#[test]
fn idle_core_makes_tasks_in_one_worker_only() {
    // Each idle core made tasks in all 64 workers, and one strand that waited for its worker hid
    // all idle cores.
    let job = Job {
        shape: Shape::Halves,
        grains: 1 << 15,
        grain_ns: 100_000,
    };
    let machine = Machine {
        slots: 64,
        processors: None,
    };
    let course = course(&COSTS, &job, &machine);
    assert!(course.tasks < 600, "{}", course.tasks);
    assert!(course.efficiency() > 0.75, "{}", course.efficiency());
}

#[test]
fn same_arguments_give_the_same_course() {
    let job = Job {
        shape: Shape::Halves,
        grains: 4096,
        grain_ns: 30_000,
    };
    let machine = Machine {
        slots: 16,
        processors: Some(2),
    };
    assert_eq!(
        course(&COSTS, &job, &machine),
        course(&COSTS, &job, &machine)
    );
}
