//! Runs the given number of random scenarios, each with one engine and at several sites.
//!
//! `soak COUNT [FIRST]`; each failure is printed as a scenario from which nothing more can be
//! taken.

use ciel_sim::generate::{scenario, scenario_at_sites};
use ciel_sim::shrink::{shrink, shrink_at_sites};
use ciel_sim::{Disagreement, Scenario, run, run_at_sites};

/// Failures after which nothing more is run.
const FAILURES_MAX: u64 = 5;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let count = arguments.next().and_then(Result::ok).unwrap_or(10_000);
    let first = arguments.next().and_then(Result::ok).unwrap_or(0);
    std::panic::set_hook(Box::new(|_| {}));
    let mut failures = 0;
    for seed in first..first + count {
        failures += soak(seed, "one engine", &scenario(seed), shrink, |scenario| {
            run(scenario).map(drop)
        });
        let at_sites = scenario_at_sites(seed);
        failures += soak(seed, "sites", &at_sites, shrink_at_sites, |scenario| {
            run_at_sites(scenario).map(drop)
        });
        if failures >= FAILURES_MAX {
            break;
        }
    }
    println!("{count} seeds from {first}, {failures} failures");
    std::process::exit(i32::from(failures > 0));
}

/// Runs one scenario; gives how many failures that adds.
fn soak(
    seed: u64,
    world: &str,
    scenario: &Scenario,
    shrink: fn(&Scenario) -> Scenario,
    run: fn(&Scenario) -> Result<(), Disagreement>,
) -> u64 {
    if run(scenario).is_ok() {
        return 0;
    }
    let least = shrink(scenario);
    let told = run(&least).expect_err("it still fails");
    let told = told.0.replace('\n', "\n#");
    println!("# seed {seed}, {world}: {told}\n{least}");
    1
}
