//! What a spawn costs that the machine keeps, by what can be counted on any machine.

#![allow(missing_docs)]

mod machine_support;

use allocation_counter::measure;
use ciel_skywriting::host::{Host, Keeping, SpawnRequest};
use ciel_skywriting::machine::{Machine, Step};
use machine_support::compile;
use std::sync::Arc;

struct Keeps;

impl Host for Keeps {
    fn keeping(&mut self, _action: u64) -> Keeping {
        Keeping::Kept
    }

    fn spawn(&mut self, request: SpawnRequest) {
        unreachable!("{} is promoted", request.label)
    }

    fn print(&mut self, _actions: u64, _line: &str) {}
}

/// How often memory is allocated until the script ends.
fn allocations(source: &str) -> u64 {
    let mut machine = Machine::for_script(compile(source), Arc::default());
    let counted = measure(|| {
        let step = machine.run(&mut Keeps, u64::MAX);
        assert!(matches!(step, Step::Finished(_)), "{step:?}");
    });
    counted.count_total
}

/// A spawn of numbers whose result is a number allocates no more often than a call: 8,000 more of
/// them add but a few allocations, of tables that double.
#[test]
fn spawned_calls_of_numbers_allocate_nothing_each() {
    let fib = |n: u32| {
        allocations(&format!(
            "
            function fib(n) {{
                if (n < 2) {{ return n; }}
                a = spawn(fib, [n - 1]);
                b = spawn(fib, [n - 2]);
                return *a + *b;
            }}
            return *spawn(fib, [{n}]);
            "
        ))
    };
    let (few, many) = (fib(12), fib(18));
    assert!(many <= few + 40, "465 calls: {few}, 8,361 calls: {many}");
}

/// The same where a result is not taken from a variable: what stands for it until it is used is an
/// object of the script's memory, which is collected now and then.
#[test]
fn spawned_calls_in_expressions_allocate_only_for_collections() {
    let fib = |n: u32| {
        allocations(&format!(
            "
            function fib(n) {{
                if (n < 2) {{ return n; }}
                return *spawn(fib, [n - 1]) + *spawn(fib, [n - 2]);
            }}
            return *spawn(fib, [{n}]);
            "
        ))
    };
    let (few, many) = (fib(12), fib(18));
    assert!(many <= few + 400, "465 calls: {few}, 8,361 calls: {many}");
}

/// A call that waits for its turn takes two hundred bytes at most with two arguments and the
/// reference that the script keeps in a list; tables that have just doubled are counted in full.
#[test]
fn pending_call_takes_at_most_two_hundred_bytes() {
    let taken = |children: u32| {
        let source = format!(
            "
            function add(a, b) {{ return a + b; }}
            all = [];
            for (i in range({children})) {{ all += spawn(add, [i, i]); }}
            while (true) {{ }}
            "
        );
        let mut machine = Machine::for_script(compile(&source), Arc::default());
        let counted = measure(|| {
            assert_eq!(machine.run(&mut Keeps, 100_000), Step::Preempted);
        });
        assert!(machine.has_kept());
        counted.bytes_current
    };
    let (few, many) = (taken(24), taken(1_024));
    let each = (many - few) / 1_000;
    assert!((50..=200).contains(&each), "{each} bytes each");
}
