//! The page about tasks, on tasks that spawn very many others.

use crate::support::{Ended, Place, done, held, shell, until};

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
    // What it spawns in one turn, which is 50,000 instructions long, comes on top.
    assert!((10_001..18_000).contains(&paused), "{paused}");
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
