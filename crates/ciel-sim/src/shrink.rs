//! Makes a failing scenario small: whatever can go while it still fails, goes.
//!
//! It does not know why a scenario fails. Read next: `notation`, which prints what is left.

use crate::judge::{run, run_at_sites};
use crate::program::{Definition, Needs, Scenario};

/// A scenario that still fails and from which nothing can be taken.
pub fn shrink(scenario: &Scenario) -> Scenario {
    shrink_while(scenario, |smaller| run(smaller).is_err())
}

/// The same for a scenario that fails at several sites.
pub fn shrink_at_sites(scenario: &Scenario) -> Scenario {
    shrink_while(scenario, |smaller| run_at_sites(smaller).is_err())
}

fn shrink_while(scenario: &Scenario, fails: impl Fn(&Scenario) -> bool) -> Scenario {
    let mut least = scenario.clone();
    loop {
        let smaller = smaller(&least).find(|smaller| smaller.is_sound() && fails(smaller));
        match smaller {
            Some(smaller) => least = smaller,
            None => return least,
        }
    }
}

fn smaller(scenario: &Scenario) -> impl Iterator<Item = Scenario> {
    let mut all = Vec::new();
    for index in 0..scenario.faults.len() {
        let mut next = scenario.clone();
        next.faults.remove(index);
        all.push(next);
    }
    if scenario.checkpoints {
        all.push(Scenario {
            checkpoints: false,
            ..scenario.clone()
        });
    }
    if scenario.in_place {
        all.push(Scenario {
            in_place: false,
            ..scenario.clone()
        });
    }
    if scenario.check || scenario.stragglers {
        all.push(Scenario {
            check: false,
            stragglers: false,
            ..scenario.clone()
        });
    }
    if scenario.ahead {
        all.push(Scenario {
            ahead: false,
            ..scenario.clone()
        });
    }
    for (index, task) in scenario.tasks.iter().enumerate() {
        for act in 0..task.acts.len() {
            let mut next = scenario.clone();
            next.tasks[index].acts.remove(act);
            all.push(next);
        }
        for plainer in plainer(task) {
            let mut next = scenario.clone();
            next.tasks[index] = plainer;
            all.push(next);
        }
    }
    all.into_iter()
}

/// The same definition with one option less.
fn plainer(task: &Definition) -> Vec<Definition> {
    let plain = Definition::default();
    let all = [
        Definition {
            lazy: false,
            ..task.clone()
        },
        Definition {
            pure: false,
            ..task.clone()
        },
        Definition {
            needs: Needs::Nothing,
            ..task.clone()
        },
        Definition {
            streams: None,
            ..task.clone()
        },
        Definition {
            retries: 0,
            ..task.clone()
        },
        Definition {
            timeout: false,
            ..task.clone()
        },
        Definition {
            outputs: 1,
            ..task.clone()
        },
        Definition {
            cores: 1,
            ..task.clone()
        },
        Definition {
            weight: 100,
            ..task.clone()
        },
        Definition {
            live: true,
            ..task.clone()
        },
        Definition {
            kind: plain.kind,
            replayable: true,
            ..task.clone()
        },
    ];
    all.into_iter().filter(|plainer| plainer != task).collect()
}
