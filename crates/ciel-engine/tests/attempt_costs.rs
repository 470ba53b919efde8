//! What an act of an attempt costs, in allocations: nothing beside the event itself.

use std::sync::Arc;

use allocation_counter::measure;
use ciel_engine::{Action, At, Attempt, Kept, Reply};
use ciel_graph::{Assignment, Entry, Output, Wait};
use ciel_model::{
    AttemptNumber, Class, Descriptor, Form, Handle, Label, Name, StrandKey, TaskKey, Value,
};

fn descriptor() -> Descriptor {
    Descriptor::plain("e", Class::Coordination, "t", b"t".as_slice())
}

fn attempt() -> Attempt {
    Attempt::new(&Assignment {
        task: TaskKey(1),
        attempt: AttemptNumber(0),
        strand: StrandKey(1),
        label: Label {
            what: "t".into(),
            name: Name(1),
        },
        position: Name(1),
        next_action: 0,
        next_handle: Handle(0),
        descriptor: Arc::new(descriptor()),
        entry: Entry::Start(Vec::new()),
        streams: Vec::new(),
        ended: None,
    })
}

/// Allocations while `act` runs; what it gives is dropped afterwards.
fn allocations<T>(act: impl FnOnce() -> T) -> u64 {
    let mut kept = None;
    measure(|| kept = Some(act())).count_total
}

#[test]
fn acts_and_replies_allocate_nothing() {
    let mut attempt = attempt();
    let (at, first, handle) = (At::Action, None, None);
    let spawn = Action::Spawn {
        at,
        first,
        descriptor: Arc::new(descriptor()),
    };
    let value = Value::inline(Form::Json, "7");
    let construct = Action::Construct { at, handle, value };
    let finish = Action::Finish(vec![Output::Delegate(Handle(0))]);
    let on = vec![Handle(0)];
    let counted = [
        allocations(|| attempt.act(spawn)),
        allocations(|| attempt.act(construct)),
        allocations(|| attempt.write()),
        allocations(|| attempt.block(on, Wait::ALL, Kept::All).event(None)),
        allocations(|| attempt.waited(Reply::Suspended)),
        allocations(|| attempt.act(finish)),
    ];
    assert_eq!(counted, [0; 6]);
}
