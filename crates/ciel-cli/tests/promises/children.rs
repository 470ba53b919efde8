//! The page about tasks, on tasks that spawn very many others.

use crate::support::{Ended, Place, done, held, peak_kib, shell, until};

/// What `ciel why` says of the job's own script while that is paused: how many of its children have
/// not ended.
fn paused_for(place: &Place) -> Option<u64> {
    let shown = place.start(&["why", "job"]).end().stdout;
    let (before, _) = shown.split_once(" children unfinished")?;
    let (_, count) = before.rsplit_once("paused: ")?;
    count.parse().ok()
}

/// "While more than 10,000 of its children have not ended, a task pauses": of a hundred thousand
/// commands, the first of which never end, little more than ten thousand are spawned.
#[test]
fn script_that_spawns_a_hundred_thousand_commands_pauses_behind_ten_thousand() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let command = shell(&format!("{}; {}; : ", done("begun"), held("gate")));
    let script = format!("for (i in range(100000)) {{ x = {command}; }}");
    let live = place.start_script(&["-q", "-j2"], &script);
    let paused = until("the script is paused", || paused_for(&place));
    assert!((10_001..13_000).contains(&paused), "{paused}");
    // All of them would take 150 MB.
    let peak = peak_kib(live.pid());
    assert!(peak < 100_000, "{peak} KiB");
    let shown = place.start(&["ps"]).end().stdout;
    assert!(
        shown.contains(&format!("paused: {paused} children unfinished")),
        "{shown}"
    );
    live.signal("INT");
    live.end();
}

fn ended_with(children_max: u32, script: &str) -> Ended {
    let place = Place::new().with_variable("CIEL_CHILDREN_MAX", &children_max.to_string());
    let ended = place.script(&["-q", "-j2"], script);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended
}

/// "Names, results and output are the same": with any number, from one on.
#[test]
fn output_is_the_same_with_any_bound_of_children() {
    let script = "
        function leaf(n) { print(\"leaf\", n); return n; }
        function tree(n) {
            if (n == 0) { return *spawn(leaf, [n], {\"name\": \"leaf\"}); }
            parts = [];
            for (i in range(4)) { parts += spawn(tree, [n - 1], {\"name\": \"tree\"}); }
            print(\"tree\", n);
            sum = 0;
            for (part in parts) { sum += *part; }
            return sum + n;
        }
        return *spawn(tree, [4]);";
    let expected = ended_with(1_000_000, script).stdout;
    assert_eq!(expected.matches("tree").count(), 85);
    for children_max in [1, 2, 3, 7] {
        assert_eq!(
            ended_with(children_max, script).stdout,
            expected,
            "{children_max}"
        );
    }
}

/// "Names, results and output are the same": also if the run is killed while its script is paused,
/// where that had left a checkpoint.
#[test]
fn script_that_is_killed_in_a_pause_resumes_with_the_same_children() {
    let place = Place::new().with_variable("CIEL_CHILDREN_MAX", "100");
    let gate = place.gate("gate");
    let first = shell(&held("gate"));
    let script = format!(
        "function next(n, first) {{ text(first); if (n % 500 == 0) {{ print(n); }} return n; }}
         first = {first};
         for (i in range(3000)) {{ x = spawn(next, [i, first], {{\"name\": \"next\"}}); }}
         return *x;"
    );
    let live = place.start_script(&["-q", "-j2"], &script);
    let paused = until("the script is paused", || paused_for(&place));
    assert!((101..2_000).contains(&paused), "{paused}");
    live.signal("KILL");
    live.end();
    place.await_nobody();
    gate.release(2);
    let resumed = place.run(&["run", "-q", "-j2", "job.sw"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert_eq!(resumed.stdout, "0\n500\n1000\n1500\n2000\n2500\n2999\n");
}
