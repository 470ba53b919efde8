//! Every example gives the output that lies beside it, in every mode.
//!
//! Examples whose programs need something that is not there are skipped, and say so. Read first:
//! `support`.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::programs::{
    has_modules, program, python, runs_python, script, search_path, small_picture, works,
};
use support::{Ended, Live, Place, repository, skipped};

/// Ways to run a job that must not differ in their output.
const MODES: [&[&str]; 3] = [&["-j1"], &["-j2"], &["--serial"]];

fn expected(example: &str) -> String {
    fs::read_to_string(repository().join(format!("examples/{example}/expected/stdout.txt")))
        .unwrap()
}

/// Runs an example with arguments of its own.
fn run(place: &Place, options: &[&str], example: &str, arguments: &[&str]) -> Ended {
    run_file(place, options, script(example), arguments)
}

fn run_file(place: &Place, options: &[&str], file: PathBuf, arguments: &[&str]) -> Ended {
    let mut command = place.command();
    command
        .env("PATH", search_path())
        .env("CIEL_PYTHON", python());
    command.arg("run").args(options).arg(file).args(arguments);
    let ended = Live::start(command).end();
    place.expect_nobody(&ended.stderr);
    ended
}

/// Every mode gives the expected output.
fn expect_expected(example: &str) {
    let expected = expected(example);
    for mode in MODES {
        let ended = run(&Place::new(), mode, example, &[]);
        assert_eq!(ended.code, Some(0), "{mode:?} {}", ended.stderr);
        assert_eq!(ended.stdout, expected, "{mode:?} {}", ended.stderr);
    }
}

#[test]
fn fib_gives_what_is_expected() {
    expect_expected("fib");
}

#[test]
fn fib_spawns_as_often_as_it_should() {
    let ended = run(&Place::new(), &["-j2"], "fib", &[]);
    // The root is a task too.
    assert!(ended.stderr.contains("done: 177 tasks"), "{}", ended.stderr);
}

#[test]
fn wordcount_gives_what_is_expected() {
    expect_expected("wordcount");
}

/// The folder of the samples, with its data made.
fn samples() -> Place {
    let place = Place::new();
    for name in ["samples.py", "make_samples.py"] {
        let file = repository().join("examples/samples").join(name);
        place.file(name, fs::read(file).unwrap());
    }
    make_samples(&place, &["data"]);
    place
}

fn make_samples(place: &Place, words: &[&str]) {
    let mut command = std::process::Command::new(python());
    command.arg("make_samples.py").args(words);
    let ended = command.current_dir(place.path(".")).status().unwrap();
    assert!(ended.success());
}

fn run_samples(place: &Place, options: &[&str]) -> Ended {
    run_file(place, options, place.path("samples.py"), &[])
}

#[test]
fn samples_rerun_only_what_a_repair_or_an_edit_has_changed() {
    if !runs_python("samples", "") {
        return;
    }
    let place = samples();
    let failed = run_samples(&place, &["-j2"]);
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    let failure = "s60: '?' is no base";
    assert!(failed.stderr.contains(failure), "{}", failed.stderr);
    make_samples(&place, &["--repair", "data"]);
    let repaired = run_samples(&place, &["-j2"]);
    assert_eq!(repaired.stdout, expected("samples"), "{}", repaired.stderr);
    let kept = "118 of 121 kept";
    assert!(repaired.stderr.contains(kept), "{}", repaired.stderr);
    let program = place.read("samples.py");
    let edits = [
        (
            "letters = \"\"",
            "letters = \"\"  # none yet",
            "121 of 121 kept",
        ),
        (
            "FREQUENT = 12",
            "FREQUENT = 11",
            "60 of 121 kept; call: code changed: samples.py:12 (60 tasks)",
        ),
    ];
    for (before, after, kept) in edits {
        place.file("samples.py", program.replacen(before, after, 1));
        let edited = run_samples(&place, &["-j2", "--kept"]);
        assert_eq!(edited.code, Some(0), "{}", edited.stderr);
        assert!(edited.stderr.contains(kept), "{after}: {}", edited.stderr);
    }
}

#[test]
fn samples_take_their_results_to_another_folder() {
    if !runs_python("samples elsewhere", "") {
        return;
    }
    let (here, there) = (samples(), samples());
    for place in [&here, &there] {
        make_samples(place, &["--repair", "data"]);
    }
    let ended = run_samples(&here, &["-j2"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let archive = there.path("samples.tar");
    let packed = here.run(&["pack", "-o", archive.to_str().unwrap()]);
    assert_eq!(packed.code, Some(0), "{}", packed.stderr);
    let unpacked = there.run(&["unpack", "samples.tar"]);
    let taken = "took 120 of 121 results";
    assert!(unpacked.stdout.starts_with(taken), "{}", unpacked.stdout);
    let ended = run_samples(&there, &["-j2", "--kept"]);
    assert_eq!(ended.stdout, expected("samples"), "{}", ended.stderr);
    let kept = "120 of 121 kept; join: new";
    assert!(ended.stderr.contains(kept), "{}", ended.stderr);
}

#[test]
fn samples_give_what_is_expected() {
    if !runs_python("samples in every mode", "") {
        return;
    }
    for mode in MODES {
        let place = samples();
        make_samples(&place, &["--repair", "data"]);
        let ended = run_samples(&place, mode);
        assert_eq!(
            ended.stdout,
            expected("samples"),
            "{mode:?} {}",
            ended.stderr
        );
    }
}

#[test]
fn search_gives_what_is_expected() {
    expect_expected("search");
}

#[test]
fn smith_waterman_gives_what_is_expected() {
    if has_modules("smith-waterman", "numpy") {
        expect_expected("smith-waterman");
    }
}

#[test]
fn binomial_gives_what_is_expected() {
    if !works(&["cc", "--version"]) {
        return skipped("binomial", "there is no C compiler");
    }
    let ended = run(&Place::new(), &["-j2"], "binomial", &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, expected("binomial"));
    let first: String = expected("binomial").split_inclusive('\n').take(1).collect();
    for mode in [&["-j1"], &["--serial"]] {
        let ended = run(&Place::new(), mode, "binomial", &["100"]);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), first.as_str()),
            "{mode:?}"
        );
    }
}

#[test]
fn palette_gives_what_is_expected() {
    if !has_modules("palette", "numpy, PIL") {
        return;
    }
    let place = Place::new();
    let ended = run(&place, &["-j2"], "palette", &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, expected("palette"));
    let mut lines = ended.stderr.lines();
    let words = lines.find(|line| line.starts_with("done: "));
    assert!(words.is_some_and(|words| words.contains("cores used")));
    let objects = lines.next().unwrap_or_default();
    assert!(objects.starts_with("objects: 1.6 MiB made"), "{objects}");
}

#[test]
fn palette_draws_the_same_pictures_in_every_mode() {
    if !has_modules("palette in every mode", "numpy, PIL") {
        return;
    }
    let mut first: Option<(String, Vec<Vec<u8>>)> = None;
    for mode in MODES {
        let place = Place::new();
        place.file("small.ppm", small_picture());
        let ended = run(&place, mode, "palette", &["small.ppm", "4", "drawn"]);
        assert_eq!(ended.code, Some(0), "{mode:?} {}", ended.stderr);
        let pictures = ["reduced.png", "error.png"];
        let drawn = pictures
            .map(|name| fs::read(place.path("drawn").join(name)).unwrap())
            .to_vec();
        let (stdout, known) = first.get_or_insert((ended.stdout.clone(), drawn.clone()));
        assert_eq!(&ended.stdout, stdout, "{mode:?}");
        assert!(&drawn == known, "other pictures with {mode:?}");
    }
}

/// Every mode gives the same output, which is given back.
fn in_every_mode(file: &Path, arguments: &[&str]) -> String {
    let mut outputs = MODES.map(|mode| {
        let ended = run_file(&Place::new(), mode, file.to_path_buf(), arguments);
        assert_eq!(ended.code, Some(0), "{mode:?} {}", ended.stderr);
        ended.stdout
    });
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[0], outputs[2]);
    std::mem::take(&mut outputs[0])
}

#[test]
fn wordcount_in_python_gives_what_the_script_gives() {
    if runs_python("wordcount in Python", "") {
        let output = in_every_mode(&program("wordcount"), &[]);
        assert_eq!(output, expected("wordcount"));
    }
}

#[test]
fn kmeans_gives_what_is_expected_with_either_kernel_and_without_what_is_kept() {
    if !runs_python("kmeans", ", numpy") {
        return;
    }
    let ended = run_file(&Place::new(), &["-j2"], program("kmeans"), &[]);
    assert_eq!(ended.stdout, expected("kmeans"), "{}", ended.stderr);
    let output = in_every_mode(&program("kmeans"), &["2000"]);
    let mut others = vec!["--no-cache"];
    match works(&["cc", "--version"]) {
        true => others.push("--c"),
        false => skipped("kmeans with its kernel in C", "there is no C compiler"),
    }
    for other in others {
        let ended = run_file(&Place::new(), &["-j2"], program("kmeans"), &["2000", other]);
        assert_eq!(ended.code, Some(0), "{other} {}", ended.stderr);
        assert_eq!(ended.stdout, output, "{other}");
        assert!(!ended.stderr.contains("lost"), "{other} {}", ended.stderr);
    }
}

#[test]
fn nested_adds_up_in_every_mode() {
    if runs_python("nested", "") {
        let output = in_every_mode(&program("nested"), &["20", "4", "1"]);
        assert_eq!(output, "{\"tasks\":100,\"sum\":3160}\n");
    }
}

#[test]
fn knapsack_finds_the_same_in_every_mode() {
    if runs_python("knapsack", "") {
        let output = in_every_mode(&program("knapsack"), &["24"]);
        let words = ["\"things\":24", "\"value\":"];
        assert!(words.iter().all(|word| output.contains(word)), "{output}");
    }
}

#[test]
fn palette_in_python_gives_what_the_script_gives() {
    if !runs_python("palette in Python", ", numpy, PIL") {
        return;
    }
    let ended = run_file(&Place::new(), &["-j2"], program("palette"), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, expected("palette"));
}

#[test]
fn palette_in_python_draws_the_pictures_of_the_script() {
    let test = "pictures of palette in Python";
    if !runs_python(test, ", numpy, PIL") || !has_modules(test, "numpy, PIL") {
        return;
    }
    let draw = |file: PathBuf, mode: &[&str]| {
        let place = Place::new();
        place.file("small.ppm", small_picture());
        let ended = run_file(&place, mode, file, &["small.ppm", "4", "drawn"]);
        assert_eq!(ended.code, Some(0), "{mode:?} {}", ended.stderr);
        ["reduced.png", "error.png"].map(|name| fs::read(place.path("drawn").join(name)).unwrap())
    };
    let wanted = draw(script("palette"), &["-j2"]);
    for mode in MODES {
        assert!(
            draw(program("palette"), mode) == wanted,
            "other pictures with {mode:?}"
        );
    }
}

#[test]
fn notebook_shows_the_results_of_its_session() {
    if !runs_python("notebook", "") {
        return;
    }
    let place = Place::new();
    let mut command = place.program(&python());
    command
        .arg(program("notebook"))
        .env("CIEL_COMMAND", support::CIEL);
    let ended = Live::start(command).end();
    place.expect_nobody(&ended.stderr);
    let lines = [
        "27 takes 111 steps",
        "871 takes 178 steps",
        "6171 takes 261 steps",
        "26623 takes 307 steps\n",
    ];
    assert_eq!(ended.stdout, lines.join("\n"), "{}", ended.stderr);
}

/// Why the example with tools for genomes cannot run here, or gives something else.
fn why_not_polish() -> Option<&'static str> {
    let tools = [
        ["minimap2", "--version"],
        ["miniasm", "-V"],
        ["racon", "--version"],
        ["samtools", "--version"],
    ];
    if !tools.iter().all(|tool| works(tool)) {
        return Some("minimap2, miniasm, racon and samtools are not all installed");
    }
    let reads = Path::new("/usr/share/doc/bowtie2/examples/reads/longreads.fq.gz");
    (!reads.exists()).then_some("the package bowtie2-examples is not installed")
}

#[test]
fn jitter_counts_every_byte_in_every_mode_of_streams() {
    if !runs_python("jitter", "") {
        return;
    }
    for mode in ["-j1", "-j2", "--serial"] {
        let ended = run_file(&Place::new(), &[mode], program("jitter"), &[]);
        assert_eq!(ended.stdout, expected("jitter"), "{mode} {}", ended.stderr);
    }
}

/// A negative number of bytes ran for ever: `head -c -1` gives all but one byte of what never ends.
#[test]
fn jitter_refuses_a_negative_number_of_bytes() {
    if !runs_python("jitter", "") {
        return;
    }
    let ended = run_file(&Place::new(), &["-j2"], program("jitter"), &["-1"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let told = "the number of bytes is 0 or more, not -1";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}

#[test]
fn polish_ends_when_a_round_changes_nothing() {
    if let Some(why) = why_not_polish() {
        return skipped("polish", why);
    }
    if !runs_python("polish", "") {
        return;
    }
    for (mode, words) in [("-j2", vec![]), ("-j1", vec!["--files"])] {
        let ended = run_file(&Place::new(), &[mode], program("polish"), &words);
        assert_eq!(ended.code, Some(0), "{mode} {}", ended.stderr);
        assert_eq!(ended.stdout, expected("polish"), "{mode} {}", ended.stderr);
    }
}

#[test]
fn polish_that_is_killed_goes_on_by_the_same_command() {
    if let Some(why) = why_not_polish() {
        return skipped("polish, killed", why);
    }
    if !runs_python("polish, killed", "") {
        return;
    }
    let place = Place::new();
    let start = || {
        let mut command = place.command();
        command.env("CIEL_PYTHON", python());
        command.args(["run", "-j2"]).arg(program("polish"));
        Live::start(command)
    };
    let live = start();
    assert!(live.line().starts_with("draft: "));
    live.signal("KILL");
    live.end();
    place.await_nobody();
    let ended = start().end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, expected("polish"), "{}", ended.stderr);
    // Reads and draft were made before the kill, and the overlaps of the draft with it.
    assert!(ended.stderr.contains("resum"), "{}", ended.stderr);
}
