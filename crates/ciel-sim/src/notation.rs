//! Scenarios as text, read and written.
//!
//! ```text
//! # two slots, a worker dies
//! seed 17
//! slots 2
//! task 0 thread replay live: print a,; spawn 1; get 0; return
//! task 1 pool-a replay: print b,; fail 3
//! at 300 kill-worker
//! expect failure TaskError failed 3
//! ```
//!
//! Other lines: `serial`, `keep-going`, `fail-fast`, `checkpoints`, `ahead`, `in-place`, `check`,
//! `stragglers`, `held-bytes 10`. It does not know what a scenario means. Read next: `program`.

use std::fmt;
use std::str::{FromStr, SplitWhitespace};

use crate::program::{Act, Definition, Expectation, Fault, Kind, Needs, Scenario};

/// A line that is not part of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    /// Its number, from 1.
    pub line: usize,
    /// The text of the line.
    pub text: String,
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

impl FromStr for Scenario {
    type Err = Misread;

    fn from_str(text: &str) -> Result<Scenario, Misread> {
        let mut scenario = Scenario {
            seed: 0,
            slots: 1,
            serial: false,
            keep_going: false,
            fail_fast: false,
            checkpoints: false,
            ahead: false,
            in_place: false,
            check: false,
            stragglers: false,
            held_bytes: None,
            children_max: None,
            scarce: None,
            memory: None,
            tasks: Vec::new(),
            faults: Vec::new(),
            expectations: Vec::new(),
        };
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let misread = || Misread {
                    line: index + 1,
                    text: line.to_string(),
                };
                read_line(&mut scenario, line).ok_or_else(misread)?;
            }
        }
        Ok(scenario)
    }
}

fn read_line(scenario: &mut Scenario, line: &str) -> Option<()> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "seed" => scenario.seed = rest.parse().ok()?,
        "slots" => scenario.slots = rest.parse().ok()?,
        "serial" => scenario.serial = true,
        "keep-going" => scenario.keep_going = true,
        "fail-fast" => scenario.fail_fast = true,
        "checkpoints" => scenario.checkpoints = true,
        "ahead" => scenario.ahead = true,
        "in-place" => scenario.in_place = true,
        "check" => scenario.check = true,
        "stragglers" => scenario.stragglers = true,
        "held-bytes" => scenario.held_bytes = Some(rest.parse().ok()?),
        "children-max" => scenario.children_max = Some(rest.parse().ok()?),
        "memory" => scenario.memory = Some(rest.parse().ok()?),
        "scarce" => scenario.scarce = Some(rest.parse().ok()?),
        "task" => {
            let task = read_task(&scenario.tasks, rest)?;
            scenario.tasks.push(task);
        }
        "at" => {
            let (at, fault) = rest.split_once(' ')?;
            scenario.faults.push((at.parse().ok()?, read_fault(fault)?));
        }
        "expect" => scenario.expectations.push(read_expectation(rest)?),
        _ => return None,
    }
    Some(())
}

fn read_task(earlier: &[Definition], text: &str) -> Option<Definition> {
    let (head, acts) = text.split_once(':')?;
    let mut words = head.split_whitespace();
    if words.next()?.parse() != Ok(earlier.len()) {
        return None;
    }
    let mut task = Definition {
        replayable: false,
        live: false,
        ..Definition::default()
    };
    while let Some(word) = words.next() {
        match word {
            "thread" => task.kind = Kind::Thread,
            "process" => task.kind = Kind::Process,
            "replay" => task.replayable = true,
            "live" => task.live = true,
            "lazy" => task.lazy = true,
            "pure" => task.pure = true,
            "needs" => task.needs = Needs::Everything,
            "needs-rest" => task.needs = Needs::Rest,
            "needs-streams" => task.needs = Needs::Streams,
            "streams" => task.streams = Some(false),
            "streams-once" => task.streams = Some(true),
            "timeout" => task.timeout = true,
            "retries" => task.retries = number(&mut words)?,
            "cores" => task.cores = number(&mut words)?,
            "weight" => task.weight = number(&mut words)?,
            "outputs" => task.outputs = number(&mut words)?,
            _ => task.kind = Kind::Pool(word.strip_prefix("pool-")?.chars().next()?),
        }
    }
    let acts = acts.split(';').map(str::trim).filter(|act| !act.is_empty());
    task.acts = acts
        .map(|act| read_act(earlier, act))
        .collect::<Option<_>>()?;
    Some(task)
}

fn number<T: FromStr>(words: &mut SplitWhitespace) -> Option<T> {
    words.next()?.parse().ok()
}

fn numbers(words: SplitWhitespace) -> Option<Vec<usize>> {
    words.map(|word| word.parse().ok()).collect()
}

/// A definition may spawn only later ones, and earlier ones that spawn nothing.
fn spawnable(earlier: &[Definition], words: &mut SplitWhitespace) -> Option<usize> {
    let spawns = |act: &Act| matches!(act, Act::Spawn(..) | Act::Tail(..));
    number::<usize>(words).filter(|target| match earlier.get(*target) {
        Some(definition) => !definition.acts.iter().any(spawns),
        None => *target > earlier.len(),
    })
}

fn read_act(earlier: &[Definition], text: &str) -> Option<Act> {
    let mut words = text.split_whitespace();
    Some(match words.next()? {
        "print" => Act::Print(words.next()?.to_string()),
        "spawn" => Act::Spawn(spawnable(earlier, &mut words)?, numbers(words)?),
        "get" => Act::Get(number(&mut words)?),
        "catch" => Act::Catch(number(&mut words)?),
        "first" => Act::First(numbers(words)?, None),
        "first-within" => {
            let limit = number(&mut words)?;
            Act::First(numbers(words)?, Some(limit))
        }
        "rest" => Act::Rest(None),
        "rest-within" => Act::Rest(Some(number(&mut words)?)),
        "watch" => Act::Watch(number(&mut words)?),
        "cancel" => Act::Cancel(numbers(words)?),
        "release" => Act::Release(numbers(words)?),
        "construct" => Act::Construct(numbers(words)?),
        "publish" => Act::Publish(number(&mut words)?),
        "ask" => Act::Ask,
        "pause" => Act::Pause(number(&mut words)?),
        "straggle" => Act::Straggle(number(&mut words)?),
        "flake" => Act::Flake(number(&mut words)?),
        "fail" => Act::Fail(number(&mut words)?),
        "hang" => Act::Hang,
        "return" => Act::Return(numbers(words)?),
        "delegate" => Act::Delegate(number(&mut words)?),
        "tail" => Act::Tail(spawnable(earlier, &mut words)?, numbers(words)?),
        _ => return None,
    })
}

fn read_fault(text: &str) -> Option<Fault> {
    Some(match text.split_once(' ').unwrap_or((text, "")) {
        ("kill-process", "") => Fault::KillProcess,
        ("kill-worker", "") => Fault::KillWorker,
        ("kill-node", "") => Fault::KillNode,
        ("kill-engine", "") => Fault::KillEngine,
        ("roll-back", which) => Fault::RollBack(which.parse().ok()?),
        ("cancel-job", "") => Fault::CancelJob,
        _ => return None,
    })
}

fn read_expectation(text: &str) -> Option<Expectation> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    Some(match word {
        "result" => Expectation::Result(rest.parse().ok()?),
        "failure" => Expectation::Failure(rest.to_string()),
        "output" => Expectation::Output(rest.to_string()),
        "count" => {
            let (name, number) = rest.split_once(' ')?;
            Expectation::Count(name.to_string(), number.parse().ok()?)
        }
        _ => return None,
    })
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}\nslots {}", self.seed, self.slots)?;
        for (word, said) in [
            ("serial", self.serial),
            ("keep-going", self.keep_going),
            ("fail-fast", self.fail_fast),
            ("checkpoints", self.checkpoints),
            ("ahead", self.ahead),
            ("in-place", self.in_place),
            ("check", self.check),
            ("stragglers", self.stragglers),
        ] {
            if said {
                writeln!(f, "{word}")?;
            }
        }
        if let Some(bytes) = self.held_bytes {
            writeln!(f, "held-bytes {bytes}")?;
        }
        if let Some(children) = self.children_max {
            writeln!(f, "children-max {children}")?;
        }
        if let Some(events) = self.scarce {
            writeln!(f, "scarce {events}")?;
        }
        if let Some(bytes) = self.memory {
            writeln!(f, "memory {bytes}")?;
        }
        for (index, task) in self.tasks.iter().enumerate() {
            let acts: Vec<String> = task.acts.iter().map(write_act).collect();
            writeln!(
                f,
                "task {index}{}: {}",
                write_options(task),
                acts.join("; ")
            )?;
        }
        for (at, fault) in &self.faults {
            writeln!(f, "at {at} {}", write_fault(fault))?;
        }
        for expectation in &self.expectations {
            writeln!(f, "expect {}", write_expectation(expectation))?;
        }
        Ok(())
    }
}

fn write_options(task: &Definition) -> String {
    let mut words = match task.kind {
        Kind::Thread => " thread".to_string(),
        Kind::Process => " process".to_string(),
        Kind::Pool(letter) => format!(" pool-{letter}"),
    };
    for (word, said) in [
        ("replay", task.replayable),
        ("live", task.live),
        ("lazy", task.lazy),
        ("pure", task.pure),
        ("needs", task.needs == Needs::Everything),
        ("needs-rest", task.needs == Needs::Rest),
        ("needs-streams", task.needs == Needs::Streams),
        ("streams", task.streams == Some(false)),
        ("streams-once", task.streams == Some(true)),
        ("timeout", task.timeout),
    ] {
        if said {
            words += &format!(" {word}");
        }
    }
    for (word, number, usual) in [
        ("retries", task.retries, 0),
        ("cores", task.cores, 1),
        ("weight", task.weight, 100),
        ("outputs", task.outputs, 1),
    ] {
        if number != usual {
            words += &format!(" {word} {number}");
        }
    }
    words
}

fn write_act(act: &Act) -> String {
    match act {
        Act::Print(text) => format!("print {text}"),
        Act::Spawn(task, given) => format!("spawn {task}{}", list(given)),
        Act::Get(local) => format!("get {local}"),
        Act::Catch(local) => format!("catch {local}"),
        Act::First(among, None) => format!("first{}", list(among)),
        Act::First(among, Some(limit)) => format!("first-within {limit}{}", list(among)),
        Act::Rest(None) => "rest".to_string(),
        Act::Rest(Some(limit)) => format!("rest-within {limit}"),
        Act::Watch(local) => format!("watch {local}"),
        Act::Cancel(among) => format!("cancel{}", list(among)),
        Act::Release(which) => format!("release{}", list(which)),
        Act::Construct(inside) => format!("construct{}", list(inside)),
        Act::Publish(index) => format!("publish {index}"),
        Act::Ask => "ask".to_string(),
        Act::Pause(time) => format!("pause {time}"),
        Act::Straggle(time) => format!("straggle {time}"),
        Act::Flake(count) => format!("flake {count}"),
        Act::Fail(number) => format!("fail {number}"),
        Act::Hang => "hang".to_string(),
        Act::Return(inside) => format!("return{}", list(inside)),
        Act::Delegate(local) => format!("delegate {local}"),
        Act::Tail(task, given) => format!("tail {task}{}", list(given)),
    }
}

fn list(numbers: &[usize]) -> String {
    numbers.iter().map(|number| format!(" {number}")).collect()
}

fn write_fault(fault: &Fault) -> String {
    match fault {
        Fault::KillProcess => "kill-process".to_string(),
        Fault::KillWorker => "kill-worker".to_string(),
        Fault::KillNode => "kill-node".to_string(),
        Fault::KillEngine => "kill-engine".to_string(),
        Fault::RollBack(index) => format!("roll-back {index}"),
        Fault::CancelJob => "cancel-job".to_string(),
    }
}

fn write_expectation(expectation: &Expectation) -> String {
    match expectation {
        Expectation::Result(number) => format!("result {number}"),
        Expectation::Failure(text) => format!("failure {text}"),
        Expectation::Output(text) => format!("output {text}"),
        Expectation::Count(name, number) => format!("count {name} {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_random_scenario_reads_back() {
        for seed in 0..500 {
            let scenario = crate::generate::scenario(seed);
            assert_eq!(scenario.to_string().parse(), Ok(scenario));
        }
    }

    #[test]
    fn line_that_is_not_understood_is_told_by_number() {
        let misread = "seed 1\ntask 0 thread: dance"
            .parse::<Scenario>()
            .unwrap_err();
        assert_eq!(misread.to_string(), "line 2: task 0 thread: dance");
    }

    #[test]
    fn task_that_spawns_an_earlier_one_is_refused() {
        for refused in [
            "task 0 thread: spawn 0",
            "task 0 thread: spawn 1\ntask 1 thread: spawn 0",
        ] {
            assert!(refused.parse::<Scenario>().is_err(), "{refused}");
        }
    }

    #[test]
    fn task_may_spawn_an_earlier_one_that_spawns_nothing() {
        let text = "task 0 thread: pause 1\ntask 1 thread: spawn 0";
        assert!(text.parse::<Scenario>().is_ok());
    }
}
