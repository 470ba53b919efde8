//! Runs as many random scenarios as asked for: `soak COUNT [FIRST]`; each failure is printed as a
//! scenario from which nothing more can be taken.

use ciel_sim::generate::scenario;
use ciel_sim::shrink::shrink;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let count = arguments.next().and_then(Result::ok).unwrap_or(10_000);
    let first = arguments.next().and_then(Result::ok).unwrap_or(0);
    std::panic::set_hook(Box::new(|_| {}));
    let mut failures = 0;
    for seed in first..first + count {
        let scenario = scenario(seed);
        if ciel_sim::run(&scenario).is_err() {
            failures += 1;
            let least = shrink(&scenario);
            let told = ciel_sim::run(&least).expect_err("it still fails");
            println!("# seed {seed}: {}\n{least}", told.0.replace('\n', "\n#"));
            if failures == 5 {
                break;
            }
        }
    }
    println!("{count} seeds from {first}, {failures} failures");
    std::process::exit(i32::from(failures > 0));
}
