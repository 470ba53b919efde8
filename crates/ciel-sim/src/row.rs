//! Random programs of many processes, of which most wait for a slot.
//!
//! They are part of what `generate` makes. Read next: `generate`.

use crate::program::{Act, Definition, Kind, Needs};
use crate::random::Random;

/// A root that spawns many processes, at least so many: short ones, of which some fail, and longer
/// ones. Another task waits for all of them.
pub(crate) fn processes(seed: u64, least: usize) -> Vec<Definition> {
    let mut random = Random::new(seed ^ 0x9c5e);
    let process = |acts| Definition {
        kind: Kind::Process,
        replayable: true,
        retries: 1,
        acts,
        ..Definition::default()
    };
    let count = least + random.below(12);
    // They are given nothing: only a start that takes little is sent before its time.
    let mut root: Vec<Act> = (0..count)
        .map(|_| Act::Spawn(1 + random.below(3), Vec::new()))
        .collect();
    // One wait for all of them: a replay goes back to the start, and each wait may lead to one.
    root.push(Act::Spawn(4, (0..count).collect()));
    root.push(Act::Get(count));
    let root = Definition {
        replayable: true,
        acts: root,
        ..Definition::default()
    };
    let pause = 1 + random.below(3000) as u64;
    let last = match random.one_in(4) {
        true => Act::Fail(1),
        false => Act::Flake(1),
    };
    vec![
        root,
        process(vec![Act::Print("short,".to_string())]),
        process(vec![Act::Pause(pause), Act::Print("long,".to_string())]),
        process(vec![last]),
        Definition {
            needs: Needs::Everything,
            ..Definition::default()
        },
    ]
}
