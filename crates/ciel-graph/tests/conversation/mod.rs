//! Reads events from text, asks the graph, prints its actions one to a line.
//!
//! Tasks are named by key, in order of creation from 0; `3/1` is attempt 1 of task 3, `3` its
//! latest. Handles are numbers. It does not know what is right.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use ciel_graph::{
    Action, Assignment, Continuation, Entry, Event, Graph, Moment, Output, Policy, Step,
    StrandChange, TaskSummary, Until, Wait,
};
use ciel_model::{
    ActionKey, AttemptNumber, Class, Content, Descriptor, Failure, FailureKind, Form, Handle,
    Input, InputMode, Label, Name, Options, Purity, Resolution, TaskKey, Value, WaitEnd,
};

pub struct Conversation {
    graph: Graph,
    now: u64,
    attempts: BTreeMap<TaskKey, AttemptNumber>,
    /// What each task counts as a worker does: actions and handles so far.
    counted: BTreeMap<TaskKey, (u64, u32)>,
}

impl Conversation {
    /// The whole conversation for these events.
    pub fn hold(text: &str) -> String {
        let policy = Policy {
            keep_going: text.contains("# keep-going"),
            fail_fast: text.contains("# fail-fast"),
            check: text.contains("# check\n"),
            straggler_us: text.contains("# stragglers\n").then_some(100),
            duplicates_assumed: text.contains("# duplicates-assumed\n"),
        };
        let mut conversation = Conversation {
            graph: Graph::new(policy),
            now: 0,
            attempts: BTreeMap::new(),
            counted: BTreeMap::new(),
        };
        conversation.graph.watch(text.contains("# watched"));
        let mut shown = String::new();
        for line in text.lines() {
            match line.strip_prefix("> ") {
                Some(event) => {
                    writeln!(shown, "{line}").unwrap();
                    conversation.tell(event, &mut shown);
                }
                None if line.starts_with('#') || line.is_empty() => {
                    writeln!(shown, "{line}").unwrap();
                }
                None => {}
            }
        }
        shown
    }

    fn tell(&mut self, text: &str, shown: &mut String) {
        let mut actions = Vec::new();
        let event = self.event(text);
        self.graph.handle(self.now, event, &mut actions);
        self.graph.check_all();
        for action in actions {
            if let Action::Offer { task, attempt, .. } = &action {
                self.attempts.insert(*task, *attempt);
            }
            if let Action::Begin(assignment) = &action {
                self.begin(assignment);
            }
            writeln!(shown, "  {}", print(&action)).unwrap();
        }
    }

    fn begin(&mut self, assignment: &Assignment) {
        if matches!(assignment.entry, Entry::Start(_) | Entry::Replay { .. }) {
            let handles = assignment.descriptor.inputs.len() as u32;
            let counted = (assignment.next_action, handles);
            self.counted.insert(assignment.task, counted);
        }
    }

    /// The index and the handle of an act: the next ones, or `as 7` and `at 9` in its text, which
    /// then are the last words.
    fn count<'a>(&mut self, task: TaskKey, text: &'a str, handles: u32) -> (u64, Handle, &'a str) {
        let counted = self.counted.entry(task).or_default();
        let (text, handle) = numbered(text, " at ");
        let (text, action) = numbered(text, " as ");
        if let Some(action) = action {
            counted.0 = action;
        }
        if let Some(handle) = handle {
            counted.1 = handle as u32;
        }
        let (action, handle) = *counted;
        *counted = (action + 1, handle + handles);
        (action, Handle(handle), text)
    }

    fn step(&mut self, task: TaskKey, word: &str, rest: &str) -> Step {
        match word {
            "spawn" => {
                let outputs = descriptor(numbered(numbered(rest, " at ").0, " as ").0).outputs;
                let (action, first, rest) = self.count(task, rest, outputs.min(100));
                Step::Spawn {
                    action,
                    first,
                    descriptor: Arc::new(descriptor(rest)),
                }
            }
            "construct" => {
                let (action, handle, rest) = self.count(task, rest, 1);
                Step::Construct {
                    at: ActionKey::action(action),
                    handle,
                    value: value(rest),
                }
            }
            "argument" => {
                let (action, handle, rest) = self.count(task, rest, 1);
                self.counted.entry(task).or_default().0 = action;
                let (part, rest) = rest.split_once(' ').unwrap();
                Step::Construct {
                    at: ActionKey::part(action, part.parse().unwrap()),
                    handle,
                    value: value(rest),
                }
            }
            "input" => {
                let (action, _, rest) = self.count(task, rest, 0);
                Step::Input {
                    at: ActionKey::action(action),
                    kind: rest.into(),
                    value: vec![0].into(),
                }
            }
            "publish" => {
                let (action, handle, rest) = self.count(task, rest, 1);
                let (index, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                Step::Publish {
                    at: ActionKey::action(action),
                    handle,
                    index: index.parse().unwrap(),
                    value: value(rest),
                }
            }
            _ => panic!("no such event: {word}"),
        }
    }

    fn event(&mut self, text: &str) -> Event {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "root" => Event::RootSubmitted {
                name: Name::of_root(b"test"),
                descriptor: Arc::new(descriptor(rest)),
            },
            "cancel-job" => Event::JobCancelled {
                failure: Box::new(failure(FailureKind::Cancelled, "interrupted")),
            },
            "tick" => {
                self.now = rest.parse().unwrap();
                Event::Ticked
            }
            _ => self.task_event(word, rest),
        }
    }

    fn task_event(&mut self, word: &str, rest: &str) -> Event {
        let (run, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let (task, attempt) = self.run(run);
        match word {
            "place" => Event::TaskPlaced { task, attempt },
            "block" => self.block(task, attempt, rest),
            "roll-back" => Event::TaskRolledBack {
                task,
                to: rest.parse().unwrap(),
            },
            "finish" => Event::TaskFinished {
                task,
                attempt,
                outputs: rest.split("; ").map(output).collect(),
                printed: rest.ends_with("printed"),
                audit: None,
            },
            "tail" => {
                let (after, _, rest) = self.count(task, rest, 0);
                Event::TaskTailSpawned {
                    task,
                    attempt,
                    descriptor: Arc::new(descriptor(rest)),
                    after,
                    audit: None,
                }
            }
            "fail" => {
                let failure = failure(FailureKind::TaskError, rest);
                Event::TaskFailed {
                    task,
                    attempt,
                    failure: Box::new(failure),
                }
            }
            "refuse" => refused(task, attempt, rest),
            "lose" => lost(task, attempt),
            "watch" => watched(task, attempt, rest),
            "copy-lost" => Event::ContinuationLost { task },
            "cancel" => Event::CancelRequested { task },
            _ => {
                let step = self.step(task, word, rest);
                Event::TaskStepped {
                    task,
                    attempt,
                    step,
                }
            }
        }
    }

    fn block(&mut self, task: TaskKey, attempt: AttemptNumber, text: &str) -> Event {
        let is_timely = ["first", "rest", "within", "cancelling"].map(|word| text.contains(word));
        let (action, text) = match is_timely.contains(&true) {
            true => {
                let (action, _, text) = self.count(task, text, 0);
                (action, text)
            }
            false => (0, text),
        };
        let mut event = blocked(task, attempt, text);
        if let Event::TaskBlocked { wait, .. } = &mut event {
            wait.at = ActionKey::action(action);
        }
        if let Event::TaskBlocked {
            kept: Some(kept),
            continuation: Continuation::Live | Continuation::Replay,
            ..
        } = &event
        {
            self.counted.entry(task).or_default().1 = kept.len() as u32;
        }
        event
    }

    fn run(&self, text: &str) -> (TaskKey, AttemptNumber) {
        let (task, attempt) = text.split_once('/').unwrap_or((text, ""));
        let task = TaskKey(task.parse().unwrap());
        let latest = self.attempts.get(&task).copied().unwrap_or_default();
        (task, attempt.parse().map_or(latest, AttemptNumber))
    }
}

fn blocked(task: TaskKey, attempt: AttemptNumber, text: &str) -> Event {
    let mut kept = None;
    let mut on = Vec::new();
    let mut continuation = Continuation::Live;
    let mut wait = Wait::ALL;
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "on" => on = handles(words.next().unwrap()),
            "kept" => kept = Some(handles(words.next().unwrap())),
            "first" => wait.until = Until::First,
            "rest" => wait.until = Until::Rest,
            "cancelling" => wait.until = Until::Cancelled,
            "within" => wait.limit_us = Some(words.next().unwrap().parse().unwrap()),
            "replay" => continuation = Continuation::Replay,
            "saved" => continuation = Continuation::Saved(vec![1, 2].into()),
            _ => panic!("no such word: {word}"),
        }
    }
    Event::TaskBlocked {
        task,
        attempt,
        kept,
        on,
        wait,
        continuation,
        checkpoint: None,
    }
}

fn refused(task: TaskKey, attempt: AttemptNumber, why: &str) -> Event {
    let failure = failure(FailureKind::Refused, why);
    Event::TaskRefused {
        task,
        attempt,
        failure: Box::new(failure),
    }
}

fn lost(task: TaskKey, attempt: AttemptNumber) -> Event {
    let failure = failure(FailureKind::WorkerLost, "its worker died");
    Event::TaskLost {
        task,
        attempt,
        failure: Box::new(failure),
    }
}

fn watched(task: TaskKey, attempt: AttemptNumber, text: &str) -> Event {
    let handle = handles(text)[0];
    Event::TaskWatched {
        task,
        attempt,
        handle,
    }
}

fn output(text: &str) -> Output {
    let mut words = text.split_whitespace();
    match words.next() {
        Some("delegate") => Output::Delegate(handles(words.next().unwrap())[0]),
        Some("published") => Output::Published,
        _ => Output::Value(value(text)),
    }
}

/// `value with 1,2` has these references inside; `file` is a file of that name.
fn value(text: &str) -> Value<Handle> {
    let mut value = Value::inline(Form::Bytes, vec![7]);
    if text.contains("file") {
        value.content = Content::File {
            name: Name(0xf11e << 112),
            length: 4096,
            digest: None,
        };
    }
    if let Some((_, inside)) = text.split_once("with ") {
        value.references = handles(inside.split_whitespace().next().unwrap());
    }
    value
}

fn descriptor(text: &str) -> Descriptor {
    let mut words = text.split_whitespace();
    let what = words.next().unwrap_or("main");
    let mut descriptor = Descriptor::plain("test", Class::Coordination, what, what.to_string());
    let mut options = Options {
        live: true,
        ..Options::default()
    };
    let number =
        |words: &mut std::str::SplitWhitespace| words.next().unwrap().parse::<u32>().unwrap();
    let mut needed = Some(Vec::new());
    while let Some(word) = words.next() {
        match word {
            "process" => descriptor.class = Class::Process,
            "given" => {
                let given = handles(words.next().unwrap());
                descriptor.inputs = given.into_iter().map(Input::reference).collect();
            }
            "needs" => needed = None,
            "needs-only" => needed = Some(handles(words.next().unwrap())),
            "pure" => descriptor.purity = Purity::Declared,
            "assumed" => descriptor.purity = Purity::Assumed,
            "replay" => descriptor.replayable = true,
            "lazy" => options.lazy = true,
            "held" => options.live = false,
            "outputs" => descriptor.outputs = number(&mut words),
            "retries" => options.retries = number(&mut words),
            "timeout" => options.timeout_us = Some(words.next().unwrap().parse().unwrap()),
            _ => panic!("no such word: {word}"),
        }
    }
    for input in &mut descriptor.inputs {
        if needed
            .as_ref()
            .is_none_or(|needed| needed.contains(&input.handle))
        {
            input.mode = InputMode::Value;
        }
    }
    descriptor.options = options.into();
    descriptor
}

fn handles(text: &str) -> Vec<Handle> {
    let numbers = text.split(',').filter(|number| !number.is_empty());
    numbers
        .map(|number| match number.strip_prefix('d') {
            Some(delivered) => Handle(Handle::DELIVERED_MIN + delivered.parse::<u32>().unwrap()),
            None => Handle(number.parse().unwrap()),
        })
        .collect()
}

/// A handle as it is written: delivered ones are `d0`, `d1`, ….
fn shown(handle: &Handle) -> String {
    match handle.0.checked_sub(Handle::DELIVERED_MIN) {
        Some(delivered) => format!("d{delivered}"),
        None => handle.0.to_string(),
    }
}

/// Text without the number that follows `word` at its end, and that.
fn numbered<'a>(text: &'a str, word: &str) -> (&'a str, Option<u64>) {
    match text.rsplit_once(word) {
        Some((text, number)) => (text, Some(number.parse().unwrap())),
        None => (text, None),
    }
}

fn failure(kind: FailureKind, message: &str) -> Failure {
    let origin = Label {
        what: "here".into(),
        name: Name::of_root(message.as_bytes()),
    };
    Failure::new(kind, origin, message)
}

fn run(task: &TaskKey, attempt: &AttemptNumber) -> String {
    match attempt.0 {
        0 => task.0.to_string(),
        attempt => format!("{}/{attempt}", task.0),
    }
}

fn print(action: &Action) -> String {
    match action {
        Action::Offer {
            task,
            attempt,
            replay_us,
            ..
        } => {
            let again = if replay_us.is_some() { " resumed" } else { "" };
            format!("offer {}{again}", run(task, attempt))
        }
        Action::FindResult { task, attempt, .. } => format!("look up {}", run(task, attempt)),
        Action::ReaderWaits { task, attempt } => format!("reader of {}", run(task, attempt)),
        Action::Relabel { task, attempt, .. } => format!("relabel {}", run(task, attempt)),
        Action::Withdraw { task, attempt } => format!("withdraw {}", run(task, attempt)),
        Action::Begin(assignment) => begin(assignment),
        Action::Continue {
            task,
            attempt,
            answers,
            ended,
        } => {
            let run = run(task, attempt);
            format!("continue {run}{}{}", told(answers), end(ended.as_ref()))
        }
        Action::Recalled { task, attempt, .. } => format!("recalled {}", run(task, attempt)),
        Action::Notify {
            task,
            attempt,
            handle,
        } => format!("told {} of {}", run(task, attempt), shown(handle)),
        Action::Suspend { task, attempt } => format!("suspend {}", run(task, attempt)),
        Action::Stop { task, attempt } => format!("stop {}", run(task, attempt)),
        Action::Strand(change) => strand(*change),
        Action::FewChildren { strand } => format!("few children of {}", strand.0),
        Action::DropObject(name) => format!("drop {}", name.short()),
        Action::AttemptFailed {
            task,
            failure,
            left,
            ..
        } => {
            format!(
                "attempt of {} failed, {left} left: {}",
                task.what, failure.message
            )
        }
        Action::Compare(comparison) => {
            let outputs: Vec<u32> = comparison.outputs.iter().map(|one| one.0).collect();
            format!("compare {}: outputs {outputs:?}", comparison.task.what)
        }
        Action::Happened(happening) => {
            format!("happened {}: {:?}", happening.label.what, happening.moment)
        }
        Action::Ended(summary) => ended(summary),
        Action::JobEnded(ending) => match &ending.result {
            Ok(_) => "job ended well".to_string(),
            Err(failure) => format!("job failed: {} {}", failure.kind, failure.message),
        },
    }
}

/// The task with its story: its moments, each with its time where that is not 0.
fn ended(summary: &TaskSummary) -> String {
    let TaskSummary {
        label,
        attempts,
        story,
        failure,
        ran_us,
        ..
    } = summary;
    let moment = |(at, moment): &(u64, Moment)| match at {
        0 => format!(" {moment:?}"),
        at => format!(" {moment:?}@{at}"),
    };
    let story: String = story.iter().map(moment).collect();
    let why = failure.as_ref().map_or(String::new(), |failure| {
        format!(": {} {}", failure.kind, failure.message)
    });
    let parent = summary
        .parent
        .as_ref()
        .map_or("nobody", |label| &label.what);
    format!(
        "ended {} of {parent}, {attempts} attempts, {ran_us} us:{story}{why}",
        label.what
    )
}

/// How a wait ended whose end depends on time: the indices of what was resolved.
fn end(ended: Option<&WaitEnd>) -> String {
    match ended {
        None => String::new(),
        Some(WaitEnd {
            places, timed_out, ..
        }) => {
            let why = if *timed_out { "time" } else { "what is there" };
            format!(", ended by {why} with {places:?}")
        }
    }
}

fn begin(assignment: &Assignment) -> String {
    let ended = end(assignment.ended.as_ref());
    let run = run(&assignment.task, &assignment.attempt);
    let begun = match &assignment.entry {
        Entry::Start(inputs) => format!("begin {run} from start{}", told(inputs)),
        Entry::Replay { inputs, facts, .. } => {
            format!(
                "begin {run} from start, {} facts{}",
                facts.len(),
                told(inputs)
            )
        }
        Entry::Restore { answers, .. } => format!("begin {run} from bytes{}", told(answers)),
        Entry::Resume(answers) => format!("begin {run} where it was{}", told(answers)),
    };
    begun + &ended
}

fn told(answers: &[(Handle, Resolution)]) -> String {
    let one = |(handle, resolution): &(Handle, Resolution)| match resolution {
        Resolution::Future => format!(" {}=future", shown(handle)),
        Resolution::Failed(failure) => format!(" {}=failed({})", shown(handle), failure.message),
        Resolution::Ready { value, .. } => {
            let inside: Vec<String> = value.references.iter().map(shown).collect();
            let inside = match inside.is_empty() {
                true => String::new(),
                false => format!("[{}]", inside.join(", ")),
            };
            format!(" {}=value{inside}", shown(handle))
        }
    };
    answers.iter().map(one).collect()
}

fn strand(change: StrandChange) -> String {
    match change {
        StrandChange::Root(strand) => format!("strand {} root", strand.0),
        StrandChange::Spawned {
            parent,
            action,
            child,
            live,
        } => {
            let live = if live { "" } else { " held" };
            format!("strand {} in {} as {action}{live}", child.0, parent.0)
        }
        StrandChange::Committed(strand) => format!("strand {} committed", strand.0),
        StrandChange::Closed(strand) => format!("strand {} closed", strand.0),
        StrandChange::Discarded(strand) => format!("strand {} discarded", strand.0),
        StrandChange::Cut(strand) => format!("strand {} cut", strand.0),
        StrandChange::Skipped(strand) => format!("strand {} skipped", strand.0),
        StrandChange::Marked(strand) => format!("strand {} marked", strand.0),
        StrandChange::RolledBack { strand, to } => match to {
            StrandChange::NOTHING => format!("strand {} again", strand.0),
            to => format!("strand {} rolled back to {to}", strand.0),
        },
        StrandChange::Withdrawn(strand) => format!("strand {} withdrawn", strand.0),
    }
}
