//! What the engine keeps for a task that waits for a slot: in the graph, the table of who runs
//! what, the queue of the node and the tree of ordered output.

#![allow(missing_docs)]

#[expect(dead_code, reason = "other tests use more of it")]
mod house;

use allocation_counter::measure;
use ciel_model::{Class, Descriptor, Payload, Purity};
use house::{House, pooled};

/// Just as many as fill the segments in which lists grow, so that no room for more is counted.
const PENDING: u64 = 2_040;

/// A command as a script spawns it: everything but its arguments and its label is shared.
fn command(plain: &Descriptor, number: u64) -> Descriptor {
    let arguments = format!(r#"{{"command":"true","inputs":{{"i":{number}}}}}"#);
    plain.clone().with(|it| {
        it.what = "true".into();
        it.payload = Payload::new(arguments.into_bytes().into_boxed_slice());
        it.purity = Purity::Assumed;
    })
}

/// A call as a Python task spawns it: a definition made it, so all have strings of their own.
fn call(number: u64) -> Descriptor {
    let arguments = format!("{number:80}");
    pooled(&[]).with(|it| it.payload = Payload::new(arguments.into_bytes().into_boxed_slice()))
}

/// Bytes that the engine keeps for each task that waits, beside one that has the only core.
fn held_for_each(mut house: House, task: impl Fn(u64) -> Descriptor) -> i64 {
    house.spawn(task(0));
    let queued = house.engine.node().queued() as u64;
    let held = measure(|| {
        for number in 1..=PENDING {
            assert_eq!(house.spawn(task(number)), "");
        }
    });
    assert_eq!(house.engine.node().queued() as u64, queued + PENDING);
    held.bytes_current / PENDING as i64
}

/// It once took 2 KB.
#[test]
fn command_that_waits_for_a_core_takes_less_than_a_kibibyte() {
    let plain = Descriptor::plain("shell", Class::Process, "true", Vec::new());
    let each = held_for_each(House::new(1), |number| command(&plain, number));
    println!("a command that waits for a core: {each} bytes");
    assert!(each <= 900, "{each} bytes");
}

/// With what facts keep of its spawn it once took 1.3 KB.
#[test]
fn task_of_a_worker_that_waits_for_a_core_takes_less_than_a_kibibyte() {
    let each = held_for_each(House::with_worker(1), call);
    println!("a task of a worker that waits for a core: {each} bytes");
    assert!(each <= 800, "{each} bytes");
}
