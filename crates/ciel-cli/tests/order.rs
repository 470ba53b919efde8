//! Output and failure are those of the serial program, on any number of cores, and come out as
//! soon as they are final.
//!
//! Read first: `support`, for how jobs are run and held still.

mod support;

use std::time::Duration;

use support::random::{Random, first_seed, kills};
use support::{Ended, Place, Tree, done, held, shell, shell_printing};

/// Ways to run a job that must not differ in their output.
const MODES: [&[&str]; 4] = [
    &["-q", "--serial"],
    &["-q", "-j1"],
    &["-q", "-j2"],
    &["-q", "-j4"],
];

/// Trees of which some tasks may fail.
const FAILING_SEEDS: std::ops::Range<u64> = 100..112;

/// Trees of which each is interrupted once.
const INTERRUPTED: u64 = 20;

/// Most memory of the command while 50 MB of output wait, in KiB.
const WAITING_OUTPUT_KIB_MAX: u64 = 120 << 10;

#[test]
fn random_trees_print_and_return_what_the_serial_program_does() {
    let place = Place::new();
    for seed in 0..10 {
        let tree = Tree::new(seed, false);
        for mode in MODES {
            let ended = place.script(mode, &tree.script);
            let about = format!("seed {seed} {mode:?} {}", ended.stderr);
            assert_eq!(ended.stdout, tree.shown(), "{about}");
            assert_eq!(ended.code, Some(0), "{about}");
        }
    }
}

#[test]
fn random_trees_that_fail_fail_the_same_way_when_all_work_is_done() {
    let place = Place::new();
    for seed in FAILING_SEEDS {
        let tree = Tree::new(seed, true);
        let serial = place.script(&["-q", "-k", "--serial"], &tree.script);
        for mode in MODES {
            let ended = place.script(&[mode, &["-k"]].concat(), &tree.script);
            let about = format!("seed {seed} {mode:?} {}", ended.stderr);
            assert_eq!(ended.stdout, tree.shown(), "{about}");
            expect_failure(&tree, &ended, &about);
            assert_eq!(told(&ended), told(&serial), "{about}");
        }
    }
}

#[test]
fn random_trees_that_fail_show_the_beginning_of_the_serial_output() {
    let place = Place::new();
    for seed in FAILING_SEEDS {
        let tree = Tree::new(seed, true);
        let serial = place.script(MODES[0], &tree.script);
        for mode in MODES {
            let ended = place.script(mode, &tree.script);
            let about = format!("seed {seed} {mode:?} {}", ended.stderr);
            assert!(
                tree.shown().starts_with(&ended.stdout),
                "{about}\n{}",
                ended.stdout
            );
            let before = tree.before_the_failure();
            assert!(
                ended.stdout.starts_with(before),
                "{about}\n{}",
                ended.stdout
            );
            expect_failure(&tree, &ended, &about);
            assert_eq!(told(&ended), told(&serial), "{about}");
        }
    }
}

/// An interrupted job has printed the beginning of what the serial program prints.
#[test]
fn random_trees_that_are_interrupted_show_the_beginning_of_the_serial_output() {
    for seed in first_seed()..first_seed() + kills(INTERRUPTED) {
        let tree = Tree::new(seed, false);
        let whole = tree.shown();
        let mut random = Random::new(seed);
        let mode = MODES[random.below(MODES.len() as u64) as usize];
        let place = Place::new();
        let live = place.start_script(mode, &tree.script);
        std::thread::park_timeout(Duration::from_millis(random.below(80)));
        live.signal("INT");
        let ended = live.end();
        let about = format!("seed {seed} {mode:?} {}", ended.stderr);
        assert!(
            whole.starts_with(&ended.stdout),
            "{about}\n{}",
            ended.stdout
        );
        match ended.code {
            Some(0) => assert_eq!(ended.stdout, whole, "{about}"),
            Some(130) => {}
            // It had not begun to handle signals.
            _ => assert_eq!(
                (ended.signal, ended.stdout.as_str()),
                (Some(2), ""),
                "{about}"
            ),
        }
        place.expect_nobody(&about);
    }
}

/// The job ends as the serial program would.
fn expect_failure(tree: &Tree, ended: &Ended, about: &str) {
    match tree.result {
        Ok(_) => assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(0), ""),
            "{about}"
        ),
        Err(boom) => {
            let boom = format!("boom n{}.", boom.number);
            assert!(told(ended).contains(&boom), "not {boom} {about}");
            assert_eq!(ended.code, Some(1), "{about}");
        }
    }
}

/// What is said about the job's own failure, without what is said about others.
fn told(ended: &Ended) -> String {
    let lines = ended.stderr.lines();
    let own = lines.take_while(|line| !line.starts_with("also: "));
    own.collect::<Vec<_>>().join("\n")
}

#[test]
fn failure_of_a_task_that_nobody_asked_for_shows_all_that_comes_before_it() {
    let place = Place::new();
    let script = format!(
        "function noisy(n) {{ print(\"noise\", n); return n; }}
         a = spawn(noisy, [1]);
         b = {};
         c = {};
         d = spawn(noisy, [2]);
         print(\"end\");",
        shell_printing("echo before", ""),
        shell_printing("echo never shown; exit 7", ", \"name\": \"unlucky\""),
    );
    for mode in [&["--serial"][..], &["-j1"], &["-j2"], &["-j4"]] {
        let ended = place.script(mode, &script);
        assert_eq!(ended.code, Some(1), "{mode:?} {}", ended.stderr);
        let whole = "noise 1\nbefore\nnoise 2\nend\n";
        assert!(
            ended.stdout.starts_with("noise 1\nbefore\n"),
            "{mode:?} {}",
            ended.stdout
        );
        assert!(
            whole.starts_with(&ended.stdout),
            "{mode:?} {}",
            ended.stdout
        );
        assert!(
            ended.stderr.contains("error: unlucky@"),
            "{mode:?} {}",
            ended.stderr
        );
        let all = place.script(&[mode, &["-k"]].concat(), &script);
        assert_eq!(
            (all.code, all.stdout.as_str()),
            (Some(1), whole),
            "{mode:?}"
        );
    }
}

#[test]
fn lines_before_a_held_task_come_out_while_it_runs() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "a = {};
         print(\"second\");
         h = {};
         l = {};
         print(\"last\");",
        shell_printing("echo first", ""),
        shell_printing(&format!("{}; echo held", held("gate")), ""),
        shell_printing(&format!("echo later; {}", done("later")), ""),
    );
    let live = place.start_script(&["-j2"], &script);
    assert_eq!(
        (live.line(), live.line()),
        ("first".to_string(), "second".to_string())
    );
    place.await_file("later");
    assert_eq!(live.unread(), "");
    gate.release(1);
    let ended = live.end();
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "held\nlater\nlast\n")
    );
    place.expect_nobody(&ended.stderr);
}

/// Output that lay on disk was not counted when a strand before it ended in silence: it came out
/// with the next line of the job, whenever that was.
#[test]
fn lines_behind_a_silent_task_come_out_when_that_ends() {
    let place = Place::new();
    let (silent, last) = (place.gate("silent"), place.gate("last"));
    let script = format!(
        "a = {}; b = {}; x = *b; c = {}; return *a + *c;",
        shell(&format!("{}; echo 1", held("silent"))),
        shell_printing("echo behind", ""),
        shell(&format!("{}; {}; echo 2", done("begun"), held("last"))),
    );
    let live = place.start_script(&["-j4"], &script);
    place.await_file("begun");
    assert_eq!(live.unread(), "");
    silent.release(1);
    assert_eq!(live.line(), "behind");
    last.release(1);
    let ended = live.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "3\n"));
}

#[test]
fn lines_of_a_script_come_out_while_it_still_runs() {
    let place = Place::new();
    let gate = place.gate("gate");
    let wait = shell(&format!("{}; echo 1", held("gate")));
    let script = format!("print(\"one\");\nx = *{wait};\nprint(\"two\");\ny = *{wait};\n");
    let live = place.start_script(&["-j1"], &script);
    assert_eq!(live.line(), "one");
    gate.release(1);
    assert_eq!(live.line(), "two");
    gate.release(1);
    assert_eq!(live.end().code, Some(0));
}

#[test]
fn output_that_waits_for_a_held_task_stays_out_of_memory() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "function lines() {{
             line = \"y\";
             for (i in range(16)) {{ line = line + line; }}
             for (i in range(400)) {{ print(line); }}
             return {};
         }}
         h = {};
         a = {};
         b = spawn(lines);
         print(\"end\");",
        shell(&done("lines")),
        shell_printing(&format!("{}; echo held", held("gate")), ""),
        shell_printing(
            &format!(
                "head -c 25000000 /dev/zero | tr '\\0' x; echo; {}",
                done("shell")
            ),
            ""
        ),
    );
    let live = place.start_script(&["-j2"], &script);
    place.await_file("shell");
    place.await_file("lines");
    assert_eq!(live.unread(), "");
    gate.release(1);
    let ended = live.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let expected = 5 + 25_000_001 + 400 * 65_537 + 4;
    assert_eq!(ended.stdout_bytes, expected);
    assert!(ended.stdout.starts_with("held\nxxxx") && ended.stdout_end.ends_with("yyyy\nend\n"));
    let turn = 5 + 25_000_000;
    assert_eq!(&ended.stdout[turn - 2..turn + 3], "xx\nyy");
    assert!(
        ended.peak_kib < WAITING_OUTPUT_KIB_MAX,
        "{} KiB",
        ended.peak_kib
    );
}

#[test]
fn ordered_standard_error_is_the_same_in_every_mode() {
    let place = Place::new();
    let say = |word: &str| shell(&format!("echo {word} >&2; echo 1"));
    let script = format!(
        "function pair(n) {{ a = {}; b = {}; return *b + *a; }}
         x = spawn(pair, [1]);
         y = {};
         return *y + *x;",
        say("one"),
        say("two"),
        say("three"),
    );
    for mode in [&["--serial"][..], &["-j1"], &["-j2"], &["-j4"]] {
        let ended = place.script(&[mode, &["-q", "--stderr=ordered"]].concat(), &script);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), "3\n"),
            "{mode:?}"
        );
        assert_eq!(ended.stderr, "one\ntwo\nthree\n", "{mode:?}");
    }
}
