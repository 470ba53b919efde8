//! Random scenarios in which output that waits is bounded: they show what the serial program shows,
//! and end.

#![allow(missing_docs)]

use ciel_sim::generate::scenario;
use ciel_sim::shrink::shrink;
use ciel_sim::{Scenario, run};

const SEEDS: u64 = 1200;

/// Bounds that are tried in turn; those of 0 and 1 byte hold whatever can be held.
const BOUNDS_BYTES: [u64; 4] = [0, 1, 8, 40];

#[test]
fn random_scenarios_with_bounded_output_agree_with_the_serial_program_and_end() {
    let (mut held, mut paused, mut gave_way, mut crashes) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let mut scenario = scenario(seed);
        scenario.held_bytes = Some(BOUNDS_BYTES[seed as usize % BOUNDS_BYTES.len()]);
        match run(&scenario) {
            Ok(shown) => {
                let pressure = shown.pressure.unwrap();
                assert_eq!((pressure.held, pressure.paused), (0, 0), "seed {seed}");
                held += pressure.ever_held;
                paused += pressure.ever_paused;
                gave_way += pressure.gave_way;
                crashes += shown.crashes;
            }
            Err(_) => {
                let least = shrink(&scenario);
                let told = run(&least).unwrap_err();
                panic!("seed {seed}: {}\n\n{least}", told.0);
            }
        }
    }
    let told = format!("{held} held, {paused} paused, {gave_way} went, {crashes} crashes");
    println!("{SEEDS} scenarios: {told}");
    assert!(
        held > 1000 && paused > 100 && gave_way > 50 && crashes > 50,
        "{told}"
    );
}

/// Turns that are tried: a disk that has never room, and room that comes and goes.
const SCARCE_EVENTS: [u64; 4] = [0, 1, 7, 40];

/// Whatever has not begun is held while the disk has no room, but for the first task; tasks that
/// were offered before are withdrawn. Engines die in the middle.
#[test]
fn random_scenarios_without_room_agree_with_the_serial_program_and_end() {
    let (mut held, mut crashes) = (0, 0);
    for seed in 0..SEEDS / 2 {
        let mut scenario = scenario(seed);
        scenario.scarce = Some(SCARCE_EVENTS[seed as usize % SCARCE_EVENTS.len()]);
        match run(&scenario) {
            Ok(shown) => {
                held += shown.pressure.map_or(0, |pressure| pressure.ever_held);
                crashes += shown.crashes;
            }
            Err(_) => {
                let least = shrink(&scenario);
                let told = run(&least).unwrap_err();
                panic!("seed {seed}: {}\n\n{least}", told.0);
            }
        }
    }
    assert!(held > 500 && crashes > 25, "{held} {crashes}");
}

/// Strands pause of which more than one to four children have not ended; processes, workers and
/// engines die in the middle.
#[test]
fn random_scenarios_with_bounded_children_agree_with_the_serial_program_and_end() {
    let (mut paused, mut gave_way, mut crashes) = (0, 0, 0);
    for seed in 0..SEEDS / 2 {
        let mut scenario = scenario(seed);
        scenario.children_max = Some(1 + (seed / 3 % 4) as u32);
        if seed % 5 == 1 {
            scenario.held_bytes = Some(BOUNDS_BYTES[seed as usize % BOUNDS_BYTES.len()]);
        }
        match run(&scenario) {
            Ok(shown) => {
                let pausing = shown.pausing.unwrap();
                assert_eq!(pausing.paused, 0, "seed {seed}");
                paused += pausing.ever_paused;
                gave_way += pausing.gave_way;
                crashes += shown.crashes;
            }
            Err(_) => {
                let least = shrink(&scenario);
                let told = run(&least).unwrap_err();
                panic!("seed {seed}: {}\n\n{least}", told.0);
            }
        }
    }
    let told = format!("{paused} paused, {gave_way} went, {crashes} crashes");
    println!("{} scenarios: {told}", SEEDS / 2);
    assert!(paused > 500 && crashes > 25, "{told}");
}

/// Bytes that the store may have of the memory, in turn.
const LOANS_BYTES: [u64; 4] = [100, 60, 150, 1];

/// Most tasks declare memory that the store has, which gives it back late, and sometimes not enough
/// at once. That all is given once is an invariant of the node; workers and engines die in the
/// middle.
#[test]
fn random_scenarios_in_which_tasks_wait_for_memory_of_the_store_end_as_the_serial_program() {
    let (mut asked, mut kept, mut crashes) = (0, 0, 0);
    for seed in 0..SEEDS / 2 {
        let mut scenario = scenario(seed);
        scenario.memory = Some(LOANS_BYTES[seed as usize / 2 % LOANS_BYTES.len()]);
        match run(&scenario) {
            Ok(shown) => {
                asked += shown.memory[0];
                kept += shown.memory[1];
                crashes += shown.crashes;
            }
            Err(_) => {
                let least = shrink(&scenario);
                let told = run(&least).unwrap_err();
                panic!("seed {seed}: {}\n\n{least}", told.0);
            }
        }
    }
    let told = format!("{asked} requests, {kept} not fulfilled, {crashes} crashes");
    println!("{} scenarios: {told}", SEEDS / 2);
    assert!(asked > 500 && kept > 100 && crashes > 50, "{told}");
}

/// Every level of a recursion spawns more children than the bound, and so does each of these: all
/// levels but the innermost are paused, and it ends.
#[test]
fn recursion_in_which_every_level_is_paused_goes_on() {
    let levels = 9;
    let mut text = String::from("seed 1\nslots 2\nchildren-max 1\n");
    for level in 0..levels {
        let next = level + 1;
        let spawns = format!("spawn {next}; spawn {next}; ");
        text += &format!("task {level} pool-a replay: {spawns}get 0; get 1; return\n");
    }
    text += &format!("task {levels} pool-a replay: pause 10; return\n");
    let shown = run(&text.parse().unwrap()).unwrap();
    let pausing = shown.pausing.unwrap();
    assert_eq!((pausing.paused, pausing.gave_way), (0, 0));
    assert!(pausing.ever_paused >= (1 << (levels - 1)), "{pausing:?}");
    assert_eq!(shown.counts.spawned, (2 << levels) - 1);
}

/// A root that spawns many writers; the first one computes for long before it writes.
fn many_writers(held_bytes: &str) -> Scenario {
    let spawns = "spawn 1; ".to_string() + &"spawn 2; ".repeat(300);
    let text = format!(
        "seed 5\nslots 2\n{held_bytes}\ntask 0 thread replay live: {spawns}get 0; return\n\
         task 1 pool-a replay: pause 100000; print first,; return\n\
         task 2 pool-a replay: print 0123456789,; return\n"
    );
    text.parse().unwrap()
}

/// What waits is the bound, and what those write that ran or were on their way by then: two and
/// four, on two cores.
#[test]
fn what_waits_is_bounded_however_many_writers_there_are() {
    let unbounded = run(&many_writers("held-bytes 1000000")).unwrap();
    assert!(
        unbounded.waiting_bytes_max > 3000,
        "{}",
        unbounded.waiting_bytes_max
    );
    let bounded = run(&many_writers("held-bytes 100")).unwrap();
    assert_eq!(bounded.output, unbounded.output);
    assert!(
        bounded.waiting_bytes_max <= 100 + (4 + 2) * 11,
        "{}",
        bounded.waiting_bytes_max
    );
    assert_eq!(bounded.pressure.unwrap().gave_way, 0);
}
