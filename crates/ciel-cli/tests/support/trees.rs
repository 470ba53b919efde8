//! Random trees of tasks: a script for each seed, the same for the same seed, with what the
//! serial program would show.
//!
//! A task prints, spawns, waits, forgets, handles, and runs shell tasks; if asked to, some fail.
//! Each function is spawned once, so writing it is running it: the order in which the script is
//! written down is the serial order. This module does not know the engine.

use std::fmt::Write;

use super::random::Random;
use super::words::{shell, shell_printing};

/// Depth of the tree.
const DEPTH_MAX: u32 = 4;

/// Tasks that are functions.
const FUNCTIONS_MAX: usize = 40;

/// Shell tasks, which cost most of the time.
const SHELLS_MAX: usize = 10;

/// A script and what is to come of it.
pub struct Tree {
    /// The script.
    pub script: String,
    /// Its whole output if all work that was spawned is done, without the result.
    pub output: String,
    /// The result, or the job's failure.
    pub result: Result<i64, Boom>,
}

/// A failure.
#[derive(Clone, Copy, Debug)]
pub struct Boom {
    /// Its message holds `boom n7.` for 7.
    pub number: usize,
    /// Bytes of output before the task that failed.
    before: usize,
}

impl Tree {
    /// The tree with this seed; whether some of its tasks may fail.
    pub fn new(seed: u64, failing: bool) -> Tree {
        let mut writer = Writer::new(seed, failing);
        let (root, result) = writer.function(0);
        let functions = writer.functions.join("\n");
        if result.is_ok() {
            writer.output.push_str("end\n");
        }
        let result = result.and_then(|value| match writer.earliest_lost() {
            Some(boom) => Err(boom),
            None => Ok(value),
        });
        Tree {
            script: format!("{functions}\nresult = n{root}();\nprint(\"end\");\nreturn result;\n"),
            output: writer.output,
            result,
        }
    }

    /// The output of a whole run.
    pub fn shown(&self) -> String {
        match &self.result {
            Ok(value) => format!("{}{value}\n", self.output),
            Err(_) => self.output.clone(),
        }
    }

    /// The output before the failed task.
    pub fn before_the_failure(&self) -> &str {
        match self.result {
            Ok(_) => &self.output,
            Err(boom) => &self.output[..boom.before],
        }
    }
}

/// A spawned task, in the order in which the serial program ends them.
struct Spawned {
    result: Result<i64, Boom>,
    asked_for: bool,
}

/// A reference that a function holds: its name in the script, and its task.
struct Open {
    name: String,
    task: usize,
}

struct Writer {
    random: Random,
    failing: bool,
    functions: Vec<String>,
    shells: usize,
    spawned: Vec<Spawned>,
    output: String,
}

/// A function while it is written.
struct Body {
    number: usize,
    depth: u32,
    /// Bytes of output before it.
    begin: usize,
    text: String,
    total: i64,
    open: Vec<Open>,
}

impl Writer {
    fn new(seed: u64, failing: bool) -> Writer {
        Writer {
            random: Random::new(seed),
            failing,
            functions: Vec::new(),
            shells: 0,
            spawned: Vec::new(),
            output: String::new(),
        }
    }

    /// Writes a function with all that it spawns; gives its number and what comes of it.
    fn function(&mut self, depth: u32) -> (usize, Result<i64, Boom>) {
        let number = self.functions.len();
        self.functions.push(String::new());
        let total = number as i64;
        let text = format!("    total = {number};\n");
        let mut body = Body {
            number,
            depth,
            begin: self.output.len(),
            text,
            total,
            open: Vec::new(),
        };
        self.print(&mut body, "begins");
        let result = self.steps(&mut body);
        self.functions[number] = format!("function n{number}() {{\n{}}}", body.text);
        (number, result)
    }

    fn steps(&mut self, body: &mut Body) -> Result<i64, Boom> {
        for step in 0..3 + self.random.below(5) {
            self.step(step, body)?;
        }
        if self.random.below(3) > 0 {
            while !body.open.is_empty() {
                self.wait(body)?;
            }
        }
        body.text.push_str("    return total;\n");
        Ok(body.total)
    }

    fn step(&mut self, step: u64, body: &mut Body) -> Result<(), Boom> {
        let room = body.depth < DEPTH_MAX && self.functions.len() < FUNCTIONS_MAX;
        match self.random.below(if self.failing { 12 } else { 10 }) {
            0..4 if room => self.spawn(step, body),
            4 | 5 if !body.open.is_empty() => match self.random.below(3) {
                0 => self.wait_and_handle(body),
                _ => self.wait(body)?,
            },
            6 | 7 if self.shells < SHELLS_MAX => self.shell(step, body),
            10 if self.random.below(2) == 0 => {
                writeln!(body.text, "    throw \"boom n{}.\";", body.number).unwrap();
                return Err(Boom {
                    number: body.number,
                    before: body.begin,
                });
            }
            11 if self.shells < SHELLS_MAX => self.failing_shell(step, body),
            _ => self.print(body, &format!("step {step}")),
        }
        Ok(())
    }

    fn print(&mut self, body: &mut Body, what: &str) {
        let line = format!("n{} {what}", body.number);
        writeln!(body.text, "    print(\"{line}\");").unwrap();
        writeln!(self.output, "{line}").unwrap();
    }

    /// A spawned task has ended.
    fn ended(&mut self, result: Result<i64, Boom>) -> usize {
        self.spawned.push(Spawned {
            result,
            asked_for: false,
        });
        self.spawned.len() - 1
    }

    /// The origin of the first failure that was never read.
    fn earliest_lost(&self) -> Option<Boom> {
        let lost = self.spawned.iter().filter(|spawned| !spawned.asked_for);
        lost.flat_map(|spawned| spawned.result.err()).next()
    }

    fn spawn(&mut self, step: u64, body: &mut Body) {
        let (child, result) = self.function(body.depth + 1);
        let task = self.ended(result);
        writeln!(body.text, "    r{step} = spawn(n{child});").unwrap();
        body.open.push(Open {
            name: format!("r{step}"),
            task,
        });
    }

    fn shell(&mut self, step: u64, body: &mut Body) {
        self.shells += 1;
        if self.random.below(2) == 0 {
            self.ended(Ok(0));
            let said = format!("shell n{}.{step}", body.number);
            let printing = shell_printing(&format!("echo {said}; echo of two lines"), "");
            writeln!(body.text, "    s{step} = {printing};").unwrap();
            writeln!(self.output, "{said}\nof two lines").unwrap();
            return;
        }
        let value = self.random.below(100) as i64;
        let task = self.ended(Ok(value));
        writeln!(
            body.text,
            "    s{step} = {};",
            shell(&format!("echo {value}"))
        )
        .unwrap();
        body.open.push(Open {
            name: format!("s{step}"),
            task,
        });
    }

    fn failing_shell(&mut self, step: u64, body: &mut Body) {
        self.shells += 1;
        let boom = Boom {
            number: body.number,
            before: self.output.len(),
        };
        self.ended(Err(boom));
        let command = format!(": boom n{}.; echo never shown; exit 3", body.number);
        writeln!(body.text, "    s{step} = {};", shell_printing(&command, "")).unwrap();
    }

    /// Takes one of the open references and reads its value.
    fn ask(&mut self, body: &mut Body) -> (String, Result<i64, Boom>) {
        let at = self.random.below(body.open.len() as u64) as usize;
        let Open { name, task } = body.open.swap_remove(at);
        let spawned = &mut self.spawned[task];
        spawned.asked_for = true;
        (name, spawned.result)
    }

    fn wait(&mut self, body: &mut Body) -> Result<(), Boom> {
        let (name, result) = self.ask(body);
        writeln!(body.text, "    total += *{name};").unwrap();
        body.total += result?;
        Ok(())
    }

    fn wait_and_handle(&mut self, body: &mut Body) {
        let (name, result) = self.ask(body);
        let number = body.number;
        let seen = format!("total += *{name}; print(\"n{number} saw\", total);");
        let handled = format!("print(\"n{number} handled\", e.message != \"\");");
        writeln!(body.text, "    try {{ {seen} }} catch (e) {{ {handled} }}").unwrap();
        match result {
            Ok(value) => {
                body.total += value;
                writeln!(self.output, "n{number} saw {}", body.total).unwrap();
            }
            Err(_) => writeln!(self.output, "n{number} handled true").unwrap(),
        }
    }
}
