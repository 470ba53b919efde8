//! What the engine keeps for a task that waits for a slot: in the graph, the table of who runs
//! what, the queue of the node and the tree of ordered output.

#![allow(missing_docs)]

#[expect(dead_code, reason = "other tests use more of it")]
mod house;

use allocation_counter::measure;
use ciel_model::{Class, Descriptor, Payload, Purity};
use house::House;

/// Just as many as fill the segments in which lists grow, so that no room for more is counted.
const PENDING: u64 = 2_040;

/// A command as a script spawns it: everything but its arguments and its label is shared.
fn command(plain: &Descriptor, number: u64) -> Descriptor {
    let arguments = format!(r#"{{"command":"true","inputs":{{"i":{number}}}}}"#);
    Descriptor {
        what: "true".into(),
        payload: Payload::new(arguments.into_bytes().into_boxed_slice()),
        purity: Purity::Assumed,
        ..plain.clone()
    }
}

/// It once took 2 KB.
#[test]
fn command_that_waits_for_a_core_takes_at_most_a_kibibyte() {
    let plain = Descriptor::plain("shell", Class::Process, "true", Vec::new());
    let mut house = House::new(1);
    house.spawn(command(&plain, 0));
    let held = measure(|| {
        for number in 1..=PENDING {
            assert_eq!(house.spawn(command(&plain, number)), "");
        }
    });
    assert_eq!(house.engine.node().queued() as u64, PENDING);
    let each = held.bytes_current / PENDING as i64;
    println!("a command that waits for a core: {each} bytes");
    assert!(each <= 1024, "{each} bytes");
}
