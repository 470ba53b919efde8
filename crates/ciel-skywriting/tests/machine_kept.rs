//! Children that the machine keeps: they run in place, and are promoted when they have to be.

#![allow(missing_docs)]

mod machine_support;

use ciel_skywriting::host::{Answer, Host, Keeping, References, SpawnRequest};
use ciel_skywriting::machine::{Machine, Parallel, Returned, Step};
use machine_support::takes::Takes;
use machine_support::{Outcome, Plan, Promotes, World, compile, run_as};
use serde_json::json;

/// The outcome when the machine keeps all that it may.
fn kept(source: &str) -> Outcome {
    let plan = Plan {
        promotes: Promotes::Never,
        ..Plan::default()
    };
    run_as(source, &Plan::default());
    World::new(compile(source), plan).run()
}

const FIB: &str = "
    function fib(n) {
        if (n < 2) { return n; }
        a = spawn(fib, [n - 1]);
        b = spawn(fib, [n - 2]);
        return *a + *b;
    }
";

#[test]
fn pure_calls_never_leave_the_machine() {
    let outcome = kept(&format!("{FIB} return *spawn(fib, [14]);"));
    assert_eq!(outcome.value(), &json!(377));
    assert_eq!(outcome.spawns, 0);
}

#[test]
fn chain_of_a_hundred_thousand_needs_neither_native_stack_nor_tasks() {
    let source = "
        function link(n) { if (n == 0) { return 0; } return 1 + *spawn(link, [n - 1]); }
        return *spawn(link, [100000]);
    ";
    let plan = Plan {
        promotes: Promotes::Never,
        ..Plan::default()
    };
    let outcome = World::new(compile(source), plan).run();
    assert_eq!(outcome.value(), &json!(100_000));
    assert_eq!(outcome.spawns, 0);
}

#[test]
fn loop_of_tail_calls_stays_in_one_place() {
    let source = "
        function loop(n, sum) { if (n == 0) { return sum; } return *spawn(loop, [n - 1, sum + n]); }
        return *spawn(loop, [200000, 0]);
    ";
    let plan = Plan {
        promotes: Promotes::Never,
        ..Plan::default()
    };
    let outcome = World::new(compile(source), plan).run();
    assert_eq!(outcome.value(), &json!(20_000_100_000_i64));
    assert_eq!(outcome.spawns, 0);
}

/// Arguments are those of the spawn, and each use of a result is a copy of its own.
#[test]
fn kept_values_behave_as_if_copied() {
    let outcome = kept(
        "
        function grow(list) { list += 3; return list; }
        mine = [1, 2];
        grown = spawn(grow, [mine]);
        mine += 9;
        first = *grown;
        first += 4;
        return [mine, first, *grown];
        ",
    );
    let expected = json!([[1, 2, 9], [1, 2, 3, 4], [1, 2, 3]]);
    assert_eq!(outcome.value(), &expected);
    assert_eq!(outcome.spawns, 0);
}

/// Pending calls with arguments of all kinds, beside results that nothing names any more, survive
/// collections, which give their slots other numbers.
#[test]
fn arguments_of_pending_children_survive_collections() {
    let source = "
        function pick(text, list, number, reference, at) {
            return [text + str(number), list[at % len(list)], *reference];
        }
        function one(n) { return n; }
        function many(n) {
            all = [];
            for (i in range(n)) {
                forgotten = *spawn(one, [i]);
                all += spawn(pick, [str(i), [i, [i]], i * 7, spawn(one, [i]), i]);
                rubbish = range(500);
            }
            total = 0;
            for (r in all) { total += len(str(*r)); rubbish = range(500); }
            return [total, *(all[n - 1])];
        }
        return *spawn(many, [120]);
    ";
    let outcome = kept(source);
    assert_eq!(outcome.spawns, 0);
    assert_eq!(
        &run_as(source, &Plan::default()).value()[1],
        &json!(["119833", [119], 119])
    );
}

/// What is run in one step with the instructions behind it gives what each would give alone: with
/// texts, fractions, integers that grow, values that are no references, and jumps between them.
#[test]
fn steps_that_are_joined_give_what_they_give_alone() {
    let outcome = kept(
        "
        function same(x) { return x; }
        function wrong(f) { try { return f(); } catch (e) { return e[\"kind\"]; } }
        function joined(x, y) { a = spawn(same, [x]); b = spawn(same, [y]); return *a + *b; }
        function less(x, y) { a = spawn(same, [x]); b = spawn(same, [y]); return *a < *b; }
        function rest(x, y) { a = spawn(same, [x]); b = spawn(same, [y]); return *a % *b; }
        function half(x) { a = spawn(same, [x]); b = x; return *a + *b; }
        function either(x) { a = spawn(same, [x]); b = a; return (x > 1 && *a) + *b; }
        function listed(x) { list = [x]; return *spawn(same, x > 1 && list) + 1; }
        function none(x) { if (x > 1) { a = spawn(same, [x]); } b = a; return *a + *b; }
        big = 9223372036854775807;
        return [
            joined(1, 2), joined(\"a\", \"b\"), joined(0.5, 1), joined([1], [2]), joined(big, 1),
            less(1, 2), less(\"b\", \"a\"), rest(7, 4), rest(-7, 4),
            wrong(lambda: rest(1, 0)), wrong(lambda: joined(1, [2])), wrong(lambda: half(3)),
            either(2), listed(2), wrong(lambda: listed(1)), none(2), wrong(lambda: none(1)),
        ];
        ",
    );
    let expected = json!([
        3,
        "ab",
        1.5,
        [1, 2],
        9_223_372_036_854_775_808_u64,
        true,
        false,
        3,
        1,
        "DivisionByZero",
        "TypeError",
        "TypeError",
        4,
        3,
        "TypeError",
        4,
        "NameError"
    ]);
    assert_eq!(outcome.value(), &expected);
}

#[test]
fn function_that_prints_is_a_task_and_its_output_comes_in_order() {
    let outcome = kept(
        "
        function shout(n) { print(\"child\", n); return n; }
        function quiet(n) { return *spawn(shout, [n]) + 1; }
        print(\"before\");
        a = spawn(quiet, [1]);
        print(\"between\");
        b = spawn(quiet, [2]);
        return *a + *b;
        ",
    );
    assert_eq!(outcome.value(), &json!(5));
    assert_eq!(outcome.output, ["before", "child 1", "between", "child 2"]);
    assert_eq!(outcome.spawns, 4);
}

#[test]
fn failure_of_a_kept_child_is_that_of_a_task() {
    let outcome = kept(
        "
        function bad(n) { return [1, 2][n]; }
        r = spawn(bad, [7]);
        try { return *r; } catch (error) { return error[\"kind\"]; }
        ",
    );
    assert_eq!(outcome.value(), &json!("IndexError"));
    assert_eq!(outcome.spawns, 1);
}

#[test]
fn references_in_a_result_name_kept_results() {
    let outcome = kept(
        "
        function leaf(n) { return [n]; }
        function pair(n) { return [spawn(leaf, [n]), spawn(leaf, [n + 1])]; }
        function first(pair) { return **pair[0]; }
        p = *spawn(pair, [5]);
        q = spawn(lambda p : (*(p[0]))[0], [p]);
        return [*(p[0]), *(p[1]), *q];
        ",
    );
    assert_eq!(outcome.value(), &json!([[5], [6], 5]));
    assert_eq!(outcome.spawns, 0);
}

#[test]
fn kept_result_becomes_an_object_for_a_command() {
    let outcome = kept(
        "
        function leaf(n) { return [n]; }
        r = spawn(leaf, [4]);
        v = (*r)[0];
        e = spawn_exec(\"echo\", {\"x\": r}, 1);
        return [v, (*(e[0]))[\"x\"][\"$ref\"]];
        ",
    );
    assert_eq!(outcome.value(), &json!([4, 0]));
    assert_eq!(outcome.spawns, 1);
}

/// Arguments and results of kept children take the memory of the strand that keeps them. A list of
/// references to large results fits all the same, since these are objects.
#[test]
fn large_arguments_and_results_are_not_kept() {
    let source = "
        function large(n) { return range(n, n + 5000); }
        function last(list) { return list[len(list) - 1]; }
        function each(n) { return *spawn(last, [*spawn(large, [n])]); }
        lists = [];
        for (n in range(60)) { lists += spawn(large, [n]); lists += spawn(last, [range(5000)]); }
        total = 0;
        for (n in range(20)) { total += *spawn(each, [n]); }
        return [total, *(lists[7])];
    ";
    let mut surroundings = Plan::default().surroundings;
    surroundings.heap_bytes_max = 2 * 1024 * 1024;
    let plan = Plan {
        promotes: Promotes::Never,
        surroundings,
        ..Plan::default()
    };
    let outcome = World::new(compile(source), plan).run();
    assert_eq!(outcome.value(), &json!([100_170, 4999]));
    // What `each` returns takes its place.
    assert_eq!(outcome.spawns, 60 + 60 + 20 + 20);
}

/// Each level of a recursion was copied for each level around it when the innermost one printed:
/// ten thousand levels took minutes.
#[test]
fn deep_recursion_is_promoted_at_the_cost_of_its_depth() {
    let source = "
        function down(n) { if (n == 0) { return say(n); } return 1 + *spawn(down, [n - 1]); }
        function say(n) { print(\"deep\"); return n; }
        return *spawn(down, [10000]);
    ";
    let plan = Plan {
        promotes: Promotes::Never,
        ..Plan::default()
    };
    let outcome = World::new(compile(source), plan).run();
    assert_eq!(outcome.value(), &json!(10_000));
    assert_eq!((outcome.output.len(), outcome.spawns), (1, 10_001));
}

/// A host that repeats a run in which the machine kept everything.
struct Repeats {
    spawns: usize,
}

impl Host for Repeats {
    fn keeping(&mut self, _action: u64) -> Keeping {
        Keeping::Sealed
    }

    fn spawn(&mut self, _request: SpawnRequest) {
        self.spawns += 1;
    }

    fn print(&mut self, _actions: u64, _line: &str) {}
}

/// A job that was killed and resumed failed as nondeterministic: while a child ran in place that
/// had done so before, its own children were promoted as if the job had spawned them.
#[test]
fn sealed_child_and_its_children_are_never_promoted() {
    let source = "
        function leaf(n) { return [n, n + 1]; }
        function pair(n) { return [spawn(leaf, [n]), spawn(leaf, [n + 1])]; }
        p = *spawn(pair, [5]);
        return [*(p[0]), *(p[1])];
    ";
    let mut machine = Machine::for_script(compile(source), Plan::default().surroundings.into());
    let mut host = Repeats { spawns: 0 };
    loop {
        match machine.run(&mut host, 1) {
            Step::Preempted => {
                assert!(machine.promote_running(&mut host).unwrap().is_none());
                machine.promote_oldest(&mut host, 16);
            }
            Step::Finished(ended) => {
                let expected = Returned::Json(json!([[5, 6], [6, 7]]));
                break assert_eq!(ended.value, expected);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(host.spawns, 0);
}

/// Keeps all that it may.
struct Keeps;

impl Host for Keeps {
    fn keeping(&mut self, _action: u64) -> Keeping {
        Keeping::Kept
    }

    fn spawn(&mut self, _request: SpawnRequest) {
        panic!("all of it is kept");
    }

    fn print(&mut self, _actions: u64, _line: &str) {}
}

/// The child that ran in place has left the machine with what it made, which hid that most
/// references could be forgotten.
#[test]
fn waiting_strand_forgets_what_a_chain_begun_in_place_names() {
    let source = "
        function first() {
            s = \"0123456789\";
            for (n in range(17)) { s = s + s; }
            return s;
        }
        function link(s) { return \"\" + *s; }
        some = [];
        for (n in range(300)) { some += [[n]]; }
        s = spawn(first);
        for (n in range(11)) { s = spawn(link, [s]); }
        return len(*s) + len(some);
    ";
    let surroundings = Plan::default().surroundings.into();
    let mut machine = Machine::for_script(compile(source), surroundings);
    let mut host = Takes::default();
    while machine.run(&mut host, 1_000) == Step::Preempted {}
    let first = machine
        .promote_running(&mut host)
        .expect("it is small enough");
    assert!(first.is_some());
    machine.promote_oldest(&mut host, 16);
    assert_eq!(host.spawned, 12);
    let Step::Blocked { on } = machine.run(&mut host, 1_000) else {
        panic!("it waits for the last one");
    };
    let compacted = machine.compact(false).expect("most can be forgotten");
    assert_eq!(compacted.kept, on);
    assert_eq!(compacted.dropped.len(), 11);
}

/// What could run at the same time, after each instruction at which something is kept.
fn parallels(source: &str) -> Vec<Parallel> {
    let surroundings = Plan::default().surroundings.into();
    let mut machine = Machine::for_script(compile(source), surroundings);
    let mut seen = vec![];
    while machine.run(&mut Keeps, 1) == Step::Preempted {
        if machine.has_kept() {
            seen.push(machine.parallel(false));
        }
    }
    seen
}

const ADD: &str = "function add(a, b) { return a + b; }";

/// With an idle thread, nine tenths of such a chain were tasks, of which each waited for the one
/// before: it took 190 microseconds for each function, and nine with one thread.
#[test]
fn chain_of_many_children_has_nothing_for_another_thread() {
    let source = format!(
        "{ADD} value = 0; for (n in range(2000)) {{ value = *spawn(add, [value, 1]); }} \
         return value;"
    );
    let seen = parallels(&source);
    assert!(!seen.contains(&Parallel::Children));
    let is_row = |seen: &Parallel| *seen == Parallel::Row;
    let first = seen.iter().position(is_row).expect("it becomes a row");
    let last = seen.iter().rposition(is_row).expect("there is a first one");
    assert!(seen[first..=last].iter().all(is_row));
    assert!(last - first > 9 * seen.len() / 10);
}

/// A chain has a few first functions that need nothing. They became tasks when a thread was idle,
/// the machine never asked for their results, and so all that followed became tasks, too: now and
/// then it took 20 microseconds for each function in place of half a one.
#[test]
fn chain_with_two_first_functions_has_little_for_another_thread() {
    let seen = parallels(&chain(1_200));
    let is_long = |seen: &Parallel| *seen == Parallel::Nothing;
    let first = seen.iter().position(is_long).expect("it becomes long");
    let last = seen.iter().rposition(|seen| *seen == Parallel::Row);
    let last = last.expect("it is a row when the two have ended");
    assert!(last - first > 9 * seen.len() / 10);
    let few = [Parallel::Nothing, Parallel::Row];
    assert!(seen[first..=last].iter().all(|seen| few.contains(seen)));
}

/// The program of that story: each function needs the two before it.
fn chain(links: u32) -> String {
    format!(
        "{ADD} function one() {{ return 1; }}
         function later(a, b) {{ return (*a + *b) % 1000; }}
         before = spawn(one);
         last = spawn(one);
         for (n in range({links})) {{
             next = spawn(later, [before, last]);
             before = last;
             last = next;
         }}"
    )
}

/// A machine that runs this, and of which the oldest child has become a task.
fn with_the_first_as_a_task(source: &str) -> (Machine, Takes) {
    let surroundings = Plan::default().surroundings.into();
    let mut machine = Machine::for_script(compile(source), surroundings);
    let mut host = Takes::default();
    while !machine.has_kept() {
        assert_eq!(machine.run(&mut host, 1), Step::Preempted);
    }
    machine.promote_oldest(&mut host, 1);
    assert_eq!(host.spawned, 1);
    (machine, host)
}

/// The other half of that story: each function that ran in place needed a task, and became one.
#[test]
fn strand_waits_for_the_first_of_a_chain_and_keeps_the_others() {
    let source = format!("{} return *last;", chain(10_000));
    let (mut machine, mut host) = with_the_first_as_a_task(&source);
    let mut waits = 0;
    let ended = loop {
        match machine.run(&mut host, 1_000) {
            Step::Preempted => {}
            Step::Blocked { on } => {
                assert_eq!(on.len(), 1);
                waits += 1;
                let bytes = "1".into();
                let references = References::NONE;
                machine.answer(on[0], Answer::Json { bytes, references });
            }
            Step::Finished(ended) => break ended.value,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((waits, host.spawned), (1, 1));
    assert_eq!(ended, Returned::Json(json!(run_of(10_000))));
}

/// What the last function of that chain gives.
fn run_of(links: u32) -> u32 {
    let mut pair = (1, 1);
    for _ in 0..links {
        pair = (pair.1, (pair.0 + pair.1) % 1000);
    }
    pair.1
}

/// While the first of a long chain takes its time, the strand comes to what it spawns next.
#[test]
fn strand_does_not_wait_for_a_chain_that_it_does_not_need_yet() {
    let source = format!(
        "{} other = spawn_exec(\"slow\", {{}}, 1)[0]; return [*last, *other];",
        chain(3_000)
    );
    let (mut machine, mut host) = with_the_first_as_a_task(&source);
    while machine.run(&mut host, 1_000) == Step::Preempted {}
    // The second one has ended in place.
    assert_eq!(host.spawned, 3_002);
}

/// One of them could run while the strand waits for the first function of the other.
#[test]
fn two_chains_behind_tasks_become_tasks_too() {
    let source = format!(
        "{ADD} function link(a, b) {{ return *a + b; }}
         first = spawn(add, [0, 0]); second = spawn(add, [1, 1]);
         for (n in range(20)) {{ first = spawn(link, [first, 1]); }}
         for (n in range(20)) {{ second = spawn(link, [second, 1]); }}
         return [*first, *second];"
    );
    let (mut machine, mut host) = with_the_first_as_a_task(&source);
    while host.spawned < 2 {
        assert_eq!(machine.run(&mut host, 1), Step::Preempted);
        machine.promote_oldest(&mut host, 1);
    }
    while machine.run(&mut host, 1_000) == Step::Preempted {}
    assert_eq!(machine.run(&mut host, 1_000), Step::NeedsHost);
}

/// Behind a chain stands another one, which a second thread could run.
#[test]
fn second_chain_behind_a_long_one_is_found_when_all_is_looked_at() {
    let source = format!(
        "{ADD} first = 0; second = 0;
         for (n in range(20)) {{ first = *spawn(add, [first, 1]); }}
         for (n in range(20)) {{ second = *spawn(add, [second, 1]); }}
         sum = 0; while (sum < 1000) {{ sum += 1; }} return first + second;"
    );
    let surroundings = Plan::default().surroundings.into();
    let mut machine = Machine::for_script(compile(&source), surroundings);
    assert_eq!(machine.run(&mut Keeps, 1_500), Step::Preempted);
    assert_eq!(machine.parallel(false), Parallel::Row);
    assert_eq!(machine.parallel(true), Parallel::Children);
}

/// All that a function kept became tasks when it returned a value that it had not needed itself.
#[test]
fn function_that_returns_the_end_of_a_chain_runs_that_in_place() {
    let source = format!(
        "{ADD} function chain(count) {{ print(\"a task\"); value = 0; \
         for (n in range(count)) {{ value = *spawn(add, [value, 1]); }} return value; }} \
         return *spawn(chain, [500]);"
    );
    let outcome = kept(&source);
    assert_eq!(outcome.value(), &json!(500));
    assert!(outcome.spawns < 20, "{}", outcome.spawns);
}

/// What waits for the function needs none of the chain.
#[test]
fn function_that_returns_something_else_does_not_wait_for_a_chain() {
    let source = format!(
        "{ADD} function chain(count) {{ print(\"a task\"); value = 0; \
         for (n in range(count)) {{ value = *spawn(add, [value, 1]); }} return 1; }} \
         return *spawn(chain, [500]);"
    );
    let outcome = kept(&source);
    assert_eq!(outcome.value(), &json!(1));
    assert!(outcome.spawns > 500, "{}", outcome.spawns);
}

#[test]
fn children_that_need_no_other_are_for_another_thread() {
    let source = format!("{ADD} a = spawn(add, [1, 2]); b = spawn(add, [3, 4]); return [*a, *b];");
    let seen = parallels(&source);
    assert_eq!(seen[0], Parallel::Strand);
    assert!(seen.contains(&Parallel::Children));
    assert_eq!(seen.last(), Some(&Parallel::Nothing));
    let alone = parallels(&format!("{ADD} return *spawn(add, [1, 2]) + 1;"));
    assert!(!alone.contains(&Parallel::Children));
    assert!(alone.contains(&Parallel::Nothing));
}

/// Of the children of a child that runs in place, too: it is promoted, and they are after it.
#[test]
fn halves_within_a_child_are_for_another_thread() {
    assert!(parallels(&format!("{FIB} return *spawn(fib, [3]);")).contains(&Parallel::Children));
}
