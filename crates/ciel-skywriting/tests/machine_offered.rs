//! Children that are offered to idle threads before they begin, and the one that needs them.

#![allow(missing_docs)]

mod machine_support;

use ciel_skywriting::host::{Answer, References};
use ciel_skywriting::machine::{Machine, Step};
use machine_support::takes::Takes;
use machine_support::{Plan, compile};

/// Rounds of two calls of a function, and one that needs both.
fn rounds(steps: u32, count: u32) -> Machine {
    let source = format!(
        "
        function count(n) {{ i = 0; while (i < n) {{ i += 1; }} return i; }}
        function sum(parts) {{ total = 0; for (part in parts) {{ total += *part; }} return total; }}
        for (round in range({count})) {{
            parts = [spawn(count, [{steps}])] + [spawn(count, [{steps}])];
            last = *spawn(sum, [parts]);
            if (last < {steps}) {{ return 0; }}
        }}
        return last;
        "
    );
    Machine::for_script(compile(&source), Plan::default().surroundings.into())
}

/// Two tasks of 100 microseconds each stayed on one of two cores: a machine looked for an idle
/// thread only after so many instructions, and by then most of the first one was over.
#[test]
fn child_whose_function_took_long_is_offered_to_an_idle_thread_before_it_begins() {
    let mut machine = rounds(2_000, 3);
    let mut host = Takes {
        has_idle_thread: true,
        ..Takes::default()
    };
    assert_eq!(machine.run(&mut host, 1_000_000), Step::Preempted);
    assert!(machine.is_offering() && !machine.is_in_place());
    assert_eq!(host.spawned, 0);
    machine.promote_offered(&mut host, 16);
    assert_eq!(host.spawned, 2, "what needs both stays");
    let step = machine.run(&mut host, 1_000_000);
    assert!(
        matches!(&step, Step::Blocked { on } if on.len() == 1),
        "{step:?}"
    );
    assert!(machine.is_in_place());
}

#[test]
fn short_child_is_not_offered() {
    let mut machine = rounds(20, 3);
    let mut host = Takes {
        has_idle_thread: true,
        ..Takes::default()
    };
    let step = machine.run(&mut host, 1_000_000);
    assert!(matches!(step, Step::Finished(_)), "{step:?}");
}

#[test]
fn long_child_is_not_offered_while_all_threads_are_busy() {
    let mut machine = rounds(2_000, 3);
    let step = machine.run(&mut Takes::default(), 1_000_000);
    assert!(matches!(step, Step::Finished(_)), "{step:?}");
}

/// A host may not be able to promote what is offered.
#[test]
fn offered_child_that_stays_runs_in_place() {
    let mut machine = rounds(2_000, 3);
    let mut host = Takes {
        has_idle_thread: true,
        ..Takes::default()
    };
    let mut offers = 0;
    loop {
        match machine.run(&mut host, 1_000_000) {
            Step::Preempted => offers += u32::from(machine.is_offering()),
            step => {
                assert!(matches!(step, Step::Finished(_)), "{step:?}");
                break;
            }
        }
    }
    assert_eq!((offers, host.spawned), (2, 0));
}

/// While a child waits in place the machine cannot be saved, nor what it names be renumbered.
#[test]
fn task_waits_together_with_the_child_that_it_needs_but_not_for_ever() {
    let mut machine = rounds(2_000, 40);
    let mut host = Takes {
        has_idle_thread: true,
        ..Takes::default()
    };
    let mut promoted = 0;
    loop {
        match machine.run(&mut host, 1_000_000) {
            Step::Preempted => machine.promote_offered(&mut host, 16),
            Step::NeedsHost => {
                machine.promote_running(&mut host).expect("it is small");
                promoted += 1;
            }
            Step::Blocked { on } => {
                for handle in on {
                    let (bytes, references) = ("4000".into(), References::NONE);
                    machine.answer(handle, Answer::Json { bytes, references });
                }
            }
            step => {
                assert!(matches!(step, Step::Finished(_)), "{step:?}");
                break;
            }
        }
    }
    assert!((1..40).contains(&promoted), "{promoted}");
}
