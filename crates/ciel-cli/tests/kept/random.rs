//! Random pipelines with random edits, failures and kills: each run that ends well gives what a run
//! from nothing gives.
//!
//! A pipeline is a list of commands, each of which takes some of those before it. It does not know
//! which results are kept. Read next: `support::random`.

use super::support::random::Random;
use super::support::{Live, Place};

/// Pipelines that are tried.
const SEEDS: u64 = 4;

/// Runs of each.
const ROUNDS: usize = 5;

/// One command.
struct Step {
    /// What it writes beside its inputs.
    word: u64,
    inputs: Vec<usize>,
    /// It prints, too.
    prints: bool,
    /// Its result is too long to stay in memory.
    is_long: bool,
    fails: bool,
}

fn pipeline(random: &mut Random) -> Vec<Step> {
    let count = 3 + random.below(8);
    let mut steps = Vec::new();
    for number in 0..count as usize {
        let inputs = (0..number).filter(|_| random.below(3) == 0).collect();
        steps.push(Step {
            word: random.below(1000),
            inputs,
            prints: random.below(2) == 0,
            is_long: random.below(3) == 0,
            fails: false,
        });
    }
    steps
}

/// Changes one thing.
fn edit(steps: &mut [Step], random: &mut Random) {
    let step = random.below(steps.len() as u64) as usize;
    match random.below(4) {
        0 => steps[step].word += 1,
        1 => steps[step].prints = !steps[step].prints,
        2 => steps[step].fails = true,
        _ => steps.iter_mut().for_each(|step| step.fails = false),
    }
}

fn script(steps: &[Step]) -> String {
    let mut text = String::from("steps = [];\n");
    for step in steps {
        let names: Vec<String> = step.inputs.iter().map(|at| format!("s{at}")).collect();
        let files: String = names.iter().map(|name| format!(" {{in.{name}}}")).collect();
        let prints = if step.prints { "echo said $W;" } else { "" };
        let long = if step.is_long {
            "seq 1 500 >> {out.o};"
        } else {
            ""
        };
        let end = if step.fails { "exit 1" } else { "true" };
        let given: Vec<String> = step
            .inputs
            .iter()
            .map(|at| format!("\"s{at}\": steps[{at}]"))
            .collect();
        text.push_str(&format!(
            "steps += spawn_exec(\"shell\", {{\"command\": \"W={}; {prints} (echo $W; \
             cat /dev/null{files}) | cksum > {{out.o}}; {long} {end}\", \"inputs\": {{{}}}, \
             \"outputs\": [\"o\"]}}, 1);\n",
            step.word,
            given.join(", ")
        ));
    }
    text.push_str("for (s in steps) { print(text(s)); }\n");
    text
}

/// Runs the script; some runs die at a random record, if the command was built to do so.
fn run(place: &Place, text: &str, random: &mut Random) -> Option<(Option<i32>, String)> {
    place.file("job.sw", text);
    let mut command = place.command();
    command.args(["run", "--kept", "job.sw"]);
    if random.below(3) == 0 {
        let record = random.below(RECORDS).to_string();
        command.env("CIEL_DIE_AT_RECORD", record);
    }
    let ended = Live::start(command).end();
    place.await_nobody();
    ended.signal.is_none().then_some((ended.code, ended.stdout))
}

/// Records before one of which a run dies; shorter runs come to their end.
const RECORDS: u64 = 60;

#[test]
fn random_pipelines_with_edits_failures_and_kills_give_what_a_run_from_nothing_gives() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let mut steps = pipeline(&mut random);
        let place = Place::new();
        for round in 0..ROUNDS {
            let text = script(&steps);
            if let Some((code, stdout)) = run(&place, &text, &mut random) {
                let fresh = Place::new().script(&[], &text);
                let expected = (fresh.code, fresh.stdout);
                assert_eq!(
                    (code, stdout),
                    expected,
                    "seed {seed}, round {round}:\n{text}"
                );
            }
            edit(&mut steps, &mut random);
        }
    }
}
