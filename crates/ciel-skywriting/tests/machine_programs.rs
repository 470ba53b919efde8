//! Random programs give the same with all spawns promoted, with none, and with some.

#![allow(missing_docs)]

mod machine_support;

use machine_support::{Plan, run_as};
use std::fmt::Write;

/// A row of numbers that look random; a seed gives one row.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// Functions of a program.
const FUNCTIONS: usize = 4;

/// Writes statements of a function; what it may use: `n`, an integer, `x`, any value, and `r`, a
/// list of references.
struct Writer {
    chance: Chance,
    text: String,
}

impl Writer {
    fn line(&mut self, depth: usize, line: &str) {
        writeln!(self.text, "{}{line}", "    ".repeat(depth)).expect("a string takes all");
    }

    fn integer(&mut self) -> String {
        match self.chance.below(6) {
            0 => "n".to_string(),
            1 => "len(r)".to_string(),
            2 => "sum(x)".to_string(),
            3 if self.chance.one_in(2) => "sum(*(r[n % len(r)]))".to_string(),
            _ => self.chance.below(9).to_string(),
        }
    }

    fn value(&mut self) -> String {
        let (one, other) = (self.integer(), self.integer());
        match self.chance.below(7) {
            0 => format!("[{one}, {other}]"),
            1 => format!("{{\"a\": {one}, \"b\": x}}"),
            2 => "x".to_string(),
            3 => "r".to_string(),
            4 => "*(r[0])".to_string(),
            _ => format!("({one} + {other}) % 1000"),
        }
    }

    fn spawn(&mut self) -> String {
        let (function, value) = (self.chance.below(FUNCTIONS), self.value());
        match self.chance.below(9) {
            0 => format!("spawn(f{function}, [n - 1, {value}], {{\"name\": \"named\"}})"),
            1 => format!("spawn_exec(\"echo\", {{\"v\": sum({value})}}, 1)[0]"),
            _ => format!("spawn(f{function}, [n - 1, {value}])"),
        }
    }

    fn operator(&mut self) -> &'static str {
        ["+", "-", "*", "<", "==", "%"][self.chance.below(6)]
    }

    fn statement(&mut self, depth: usize) {
        let (value, spawn) = (self.value(), self.spawn());
        let number = self.integer();
        match self.chance.below(15) {
            0..=3 => self.line(depth, &format!("r += {spawn};")),
            4 => self.line(depth, &format!("x = {value};")),
            5 => self.line(depth, &format!("x = *{spawn};")),
            6 => self.line(depth, "x = sum(*(r[len(r) - 1]));"),
            7 => self.line(depth, &format!("print(\"line\", {number});")),
            8 if self.chance.one_in(3) => {
                self.line(depth, &format!("if ({number} == 5) {{ throw \"five\"; }}"));
            }
            9 => self.line(depth, "x = [x, is_error(r[0])];"),
            10 => {
                self.line(depth, "try {");
                self.statement(depth + 1);
                self.statement(depth + 1);
                self.line(depth, "} catch (e) { x = e[\"kind\"]; }");
            }
            11 => {
                self.line(depth, "for (i in range(3)) {");
                self.statement(depth + 1);
                self.line(depth, "}");
            }
            12 => {
                let operator = self.operator();
                self.line(depth, &format!("a = spawn(halves, [n + {number} % 5]);"));
                self.line(depth, "b = spawn(halves, [n]);");
                self.line(depth, &format!("x = *a {operator} *b;"));
            }
            13 => {
                let operator = self.operator();
                self.line(depth, &format!("a = {spawn}; b = spawn(halves, [n]);"));
                self.line(depth, &format!("try {{ x = *a {operator} *b; }}"));
                self.line(depth, "catch (e) { x = e[\"message\"]; }");
            }
            _ => self.line(depth, "if (type(x) == \"list\") { x += n; }"),
        }
    }

    fn function(&mut self, number: usize) {
        self.line(0, &format!("function f{number}(n, x) {{"));
        self.line(1, "if (n <= 0) { return sum(x); }");
        self.line(1, "r = [spawn(leaf, [n])];");
        for _ in 0..1 + self.chance.below(4) {
            self.statement(1);
        }
        let spawn = self.spawn();
        match self.chance.below(6) {
            0 => self.line(1, &format!("return *{spawn};")),
            1 => self.line(1, "return r;"),
            2 => self.line(1, "return [x, *(r[0])];"),
            3 => self.line(1, &format!("return {spawn};")),
            _ => self.line(1, "return sum(x) + sum(*(r[len(r) - 1]));"),
        }
        self.line(0, "}");
    }
}

/// Adds up all numbers in a value, looking through references.
const SUM: &str = "
function sum(v) {
    kind = type(v);
    if (kind == \"integer\") { return v % 1000; }
    if (kind == \"reference\") { return sum(*v); }
    total = 0;
    if (kind == \"list\") { for (item in v) { total += sum(item); } }
    if (kind == \"dictionary\") { for (key in keys(v)) { total += sum(v[key]); } }
    if (kind == \"string\") { total = len(v); }
    return total % 1000;
}
function leaf(n) { return [n, n + 1]; }
function halves(n) {
    if (n < 2) { return n; }
    a = spawn(halves, [n - 1]);
    b = spawn(halves, [n - 2]);
    return *a + *b;
}
";

fn program(seed: u64) -> String {
    let mut writer = Writer {
        chance: Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        text: SUM.to_string(),
    };
    for number in 0..FUNCTIONS {
        writer.function(number);
    }
    writer.line(0, "n = 3; x = 1; r = [spawn(leaf, [7])];");
    for _ in 0..4 {
        writer.statement(0);
    }
    writer.line(0, "return [sum(x), sum(r)];");
    writer.text
}

#[test]
fn random_programs_do_not_show_what_the_machine_keeps() {
    let (mut failed, mut spawned) = (0, 0);
    for seed in 0..SEEDS {
        let source = program(seed);
        let plan = Plan {
            reload: seed % 3 == 0,
            compact: seed % 3 == 1,
            newest_first: seed % 2 == 0,
            ..Plan::default()
        };
        println!("{seed}");
        let outcome = run_as(&source, &plan);
        failed += usize::from(outcome.result.is_err());
        spawned += outcome.spawns;
    }
    println!("{SEEDS} programs, {failed} fail, {spawned} spawns");
    assert!(failed < SEEDS as usize / 2 && spawned > 10 * SEEDS as usize);
}

/// Programs that are run.
const SEEDS: u64 = 300;
