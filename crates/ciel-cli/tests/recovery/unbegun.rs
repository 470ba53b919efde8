//! Runs that were killed in their first milliseconds.
//!
//! Read first: `support`.

use std::fs;
use std::os::unix::fs::DirBuilderExt;

use crate::support::Place;

/// What a run's folder holds, in the order in which it is made; a slash marks a folder.
const MADE: [&str; 6] = [
    "lock",
    "scratch/",
    "objects/",
    "spill/",
    "run.json-draft",
    "run.json",
];

/// The folder of a dead run with these parts.
fn lay_out(place: &Place, run: &str, parts: &[&str]) {
    let folder = place.path(".ciel/runs").join(run);
    let make = |path| fs::DirBuilder::new().mode(0o700).create(path).unwrap();
    make(folder.clone());
    for part in parts {
        match part.strip_suffix('/') {
            Some(inner) => make(folder.join(inner)),
            None => fs::write(folder.join(part), "").unwrap(),
        }
    }
}

fn runs(place: &Place) -> Vec<String> {
    let names = fs::read_dir(place.path(".ciel/runs")).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> = names
        .map(|entry| name(entry).into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Engine and spawner were killed 39 ms after the start, in the midst of making the run's folder.
/// The job ran well at the second start, and the folder of the first, with nothing but a lock in
/// it, stayed until somebody called `ciel clean`.
#[test]
fn folder_of_a_run_killed_before_it_began_is_removed_by_the_next_run() {
    let place = Place::new();
    place.file("job.sw", "return 1;");
    assert_eq!(place.run(&["run", "job.sw"]).code, Some(0));
    let ended = runs(&place);
    for count in 0..=MADE.len() {
        lay_out(&place, &format!("1000000000{count}-00001"), &MADE[..count]);
    }
    // It has something to look at.
    lay_out(&place, "10000000009-00001", &["lock", "history/"]);
    let next = place.run(&["run", "job.sw"]);
    let code = next.code;
    assert_eq!((code, &*next.stdout), (Some(0), "1\n"), "{}", next.stderr);
    assert!(!next.stderr.contains("warning"), "{}", next.stderr);
    let left = runs(&place);
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left.contains(&ended[0]), "{left:?}");
    assert_eq!(left[0], "10000000009-00001");
}
