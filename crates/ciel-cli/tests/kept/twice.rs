//! Pure tasks that run twice: for `ciel run --check`, and because they run for too long.

use serde_json::Value;

use crate::support::Place;

/// A job of one pure command, which counts its runs in the file `runs`.
fn job(command: &str) -> Place {
    let place = Place::new();
    place.file(
        "job.sw",
        format!(
            "include \"grab\";\nreturn text(spawn_exec(\"shell\", {{\"command\": \"echo >> runs; \
             {command}\", \"outputs\": [\"text\"]}}, 1, {{\"pure\": true}})[0]);\n"
        ),
    );
    place
}

fn lines(place: &Place, name: &str) -> usize {
    place.read(name).lines().count()
}

#[test]
fn checked_task_runs_twice_and_equal_results_are_no_news() {
    let place = job("echo hello; echo same > {out.text}");
    let ended = place.run(&["run", "--check", "job.sw"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, "hello\n\"same\\n\"\n");
    assert_eq!(lines(&place, "runs"), 2);
    let told = "done: 2 tasks in ";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    let told = "1 task ran twice, with equal results\n";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    // Without the option it runs once.
    assert_eq!(place.run(&["run", "job.sw"]).code, Some(0));
    assert_eq!(lines(&place, "runs"), 3);
}

#[test]
fn checked_task_whose_result_differs_is_told_with_digests_and_the_first_byte() {
    let place = job("echo aaa > {out.text}; wc -l < runs >> {out.text}");
    let ended = place.run(&["run", "--check", "--json", "-j1", "job.sw"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    // The job continues with the first result.
    assert_eq!(ended.stdout, "\"aaa\\n1\\n\"\n");
    let events: Vec<Value> = ended
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let warning = events.iter().find(|event| event["event"] == "warning");
    let warning = warning.expect("a warning is told");
    assert!(warning["task"].as_str().unwrap().starts_with("echo@"));
    let message = warning["message"].as_str().unwrap();
    let told = "its second run differs (job.sw:2): output 0, byte 4: 32 instead of 31, digests ";
    assert!(message.starts_with(told), "{message}");
    let digests = message.rsplit_once("digests ").unwrap().1;
    let (first, second) = digests.split_once(" and ").unwrap();
    assert_eq!((first.len(), second.len()), (32, 32), "{message}");
    assert_ne!(first, second);
    let ending = events.last().unwrap();
    assert_eq!(ending["tasks"]["checked"], 1, "{ending}");
    assert_eq!(ending["tasks"]["differing"], 1, "{ending}");
}

#[test]
fn checked_task_that_prints_or_fails_otherwise_differs() {
    let place = job("wc -l < runs; echo x > {out.text}");
    let ended = place.run(&["run", "--check", "-j1", "job.sw"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "1\n\"x\\n\"\n")
    );
    let told = "its second run differs (job.sw:2): what it prints, digests ";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    let place = job("echo x > {out.text}; test $(wc -l < runs) = 1");
    let ended = place.run(&["run", "--check", "-j1", "job.sw"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "\"x\\n\"\n"));
    let told = "its second run differs (job.sw:2): it failed: ";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    let told = "1 task ran twice, 1 with another result\n";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}

#[test]
fn large_results_of_checked_tasks_are_compared_byte_by_byte() {
    let zeros = "head -c 5000000 /dev/zero > {out.text}";
    let place_of = |command: &str| {
        let place = Place::new();
        place.file(
            "job.sw",
            format!(
                "x = spawn_exec(\"shell\", {{\"command\": \"echo >> runs; {command}\", \
                 \"outputs\": [\"text\"]}}, 1, {{\"pure\": true}})[0];\nreturn *spawn_exec(\
                 \"shell\", {{\"command\": \"wc -c < {{in.x}}\", \"inputs\": {{\"x\": x}}}}, \
                 1)[0];\n"
            ),
        );
        place
    };
    let equal = place_of(zeros).run(&["run", "--check", "job.sw"]);
    assert_eq!(equal.code, Some(0), "{}", equal.stderr);
    let differs = place_of(&format!("{zeros}; wc -l < runs >> {{out.text}}"));
    let differs = differs.run(&["run", "--check", "-j1", "job.sw"]);
    assert_eq!(differs.code, Some(1), "{}", differs.stderr);
    let told = "output 0, byte 5000000: 32 instead of 31";
    assert!(differs.stderr.contains(told), "{}", differs.stderr);
}

/// Six tasks of a function that end at once, and one whose first run ends when its file `go` is
/// there, and its second after this command; with these options, and with this end of the script.
/// On a busy machine one of the six may have a duplicate, too, which gives the same.
fn straggler(options: &str, second: &str, end: &str) -> Place {
    let place = Place::new();
    place.file(
        "job.sw",
        format!(
            "include \"grab\";\n\
             function step(n) {{\n\
                 return spawn_exec(\"shell\", {{\"command\": \"echo {{n}} > {{out.text}}; \
                 if mkdir begun-{{n}}; then while test {{n}} = 7 && ! test -e go; do sleep 0.05; \
                 done; elif test {{n}} = 7; then {second}; fi\", \
                 \"inputs\": {{\"n\": n}}, \"outputs\": [\"text\"]}}, 1, {{{options}}})[0];\n\
             }}\n\
             for (n in [1, 2, 3, 4, 5, 6]) {{ text(step(n)); }}\n\
             {end}"
        ),
    );
    place
}

const SEVENTH: &str = "return text(step(7));\n";

const OVERTAKEN: &str = "overtaken by their duplicates";

#[test]
fn straggler_that_is_declared_pure_is_overtaken_by_its_duplicate() {
    let place = straggler("\"pure\": true", "true", SEVENTH);
    let ended = place.run(&["run", "-j2", "job.sw"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, "\"7\\n\"\n");
    assert!(ended.stderr.contains(OVERTAKEN), "{}", ended.stderr);
    let ps = place.run(&["ps", "--all", "--json"]).stdout;
    let words = "overtaken by its duplicate, stopped";
    assert!(ps.contains(words), "{ps}");
}

#[test]
fn straggler_that_says_nothing_gets_a_duplicate_only_if_that_is_asked_for() {
    let alone = straggler("", "touch twice", SEVENTH);
    let words = ["run", "-j2", "--timeout", "2.5", "job.sw"];
    let ended = alone.run(&words);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(!ended.stderr.contains("duplicate"), "{}", ended.stderr);
    assert!(ended.stderr.contains("time limit"), "{}", ended.stderr);
    assert!(!alone.has("twice"));
    let place = straggler("", "true", SEVENTH);
    let ended = place.run(&["run", "-j2", "--duplicates", "job.sw"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains(OVERTAKEN), "{}", ended.stderr);
}

#[test]
fn straggler_that_is_declared_impure_gets_no_duplicate_though_asked_for() {
    let place = straggler("\"pure\": false", "touch twice", SEVENTH);
    let words = ["run", "-j2", "--timeout", "2.5", "--duplicates", "job.sw"];
    let ended = place.run(&words);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(!ended.stderr.contains("duplicate"), "{}", ended.stderr);
    assert!(!place.has("twice"));
}

/// The second run of the straggler ends first; it prints, so the first run gives the result, and
/// what they gave differs. The first run ends when two of three cores are free: those of the second
/// run, and of a command that ends after that has begun.
#[test]
fn unequal_results_of_a_straggler_and_its_duplicate_are_told_with_both_digests() {
    let second = "echo other > {out.text}; echo second; touch second";
    let place = straggler(
        "\"pure\": true",
        second,
        "r = step(7);\n\
         until = \"while ! test -e second; do sleep 0.05; done\";\n\
         begun = spawn_exec(\"shell\", {\"command\": until}, 1)[0];\n\
         go = {\"command\": \"touch go\", \"inputs\": {\"begun\": begun}};\n\
         spawn_exec(\"shell\", go, 1, {\"cores\": 2});\n\
         return text(r);\n",
    );
    let ended = place.run(&["run", "-j3", "job.sw"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, "\"7\\n\"\n");
    let told = "its second run differs (job.sw:3): output 0, byte 0: 6f instead of 37, digests ";
    let parts = ended.stderr.split_once(told);
    let told = parts.unwrap_or_else(|| panic!("{}", ended.stderr)).1;
    let digests: Vec<&str> = told.lines().next().unwrap().split(" and ").collect();
    assert!(digests.iter().all(|digest| digest.len() == 32), "{told}");
    assert_ne!(digests[0], digests[1]);
    let sum = "1 unlike their duplicates";
    assert!(ended.stderr.contains(sum), "{}", ended.stderr);
}
