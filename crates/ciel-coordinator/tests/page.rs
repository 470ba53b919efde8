//! The page about the journal says what records look like; here it is held to that.
//!
//! `docs/reference/journal.md` has a table for each enumeration and one for all structures. Their
//! variants, fields and the order of both are asked of the types themselves. Of each record there
//! is an example on the page, which must be written so and read so. Read next: `vectors`, for
//! records that were written once and stay readable.

#![allow(missing_docs)]

mod names;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use ciel_coordinator::Record;
use ciel_graph::{Carriage, Checkpoint, Continuation, Event, Output, Policy, Step, Until, Wait};
use ciel_model::{
    ActionKey, AttemptNumber, Audit, Call, Class, CodeIdentity, ConsumerFlags, Content, Descriptor,
    Digest, Exception, Failure, FailureDetails, FailureKind, FileRead, Form, Frame, FunctionCode,
    Handle, Input, InputMode, Keeping, Label, Mode, Name, Options, Pool, Purity, Reached,
    RerunReason, Resources, Site, StrandKey, Streams, TaskKey, Value, Wish,
};
use ciel_ordered::{Extent, Piece, Sink};
use names::{fields, variants};
use serde::de::DeserializeOwned;

fn page() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/journal.md");
    std::fs::read_to_string(path).unwrap()
}

/// The rows of the table beneath a heading, cell by cell, without marks of code.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let lines = page.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('#'));
    let rows = lines.filter(|line| line.starts_with('|') && !line.starts_with("|-"));
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace('`', "")).collect()
    };
    rows.skip(1).map(cells).collect()
}

/// Number, name and fields of each variant, as the page has them.
fn told_variants(page: &str, name: &str) -> Vec<Vec<String>> {
    let mut rows = table(page, &format!("### {name}"));
    rows.iter_mut().for_each(|row| row.truncate(3));
    rows
}

/// The same, as the type has them.
fn true_variants<T: DeserializeOwned>() -> Vec<Vec<String>> {
    let variants = variants::<T>().into_iter().enumerate();
    let row = |(number, (name, fields)): (usize, (String, Vec<&str>))| {
        vec![number.to_string(), name, fields.join(", ")]
    };
    variants.map(row).collect()
}

#[test]
fn page_has_every_variant_at_its_number_with_its_fields() {
    let page = page();
    let all = [
        ("Record", true_variants::<Record>()),
        ("Event", true_variants::<Event>()),
        ("Step", true_variants::<Step>()),
        ("Output", true_variants::<Output>()),
        ("Carriage", true_variants::<Carriage>()),
        ("Continuation", true_variants::<Continuation>()),
        ("Until", true_variants::<Until>()),
        ("Piece", true_variants::<Piece>()),
        ("Content", true_variants::<Content>()),
        ("Form", true_variants::<Form>()),
        ("Class", true_variants::<Class>()),
        ("InputMode", true_variants::<InputMode>()),
        ("StreamMode", true_variants::<Mode>()),
        ("Wish", true_variants::<Wish>()),
        ("Purity", true_variants::<Purity>()),
        ("Keeping", true_variants::<Keeping>()),
        ("RerunReason", true_variants::<RerunReason>()),
        ("FailureKind", true_variants::<FailureKind>()),
    ];
    for (name, variants) in all {
        assert_eq!(told_variants(&page, name), variants, "{name}");
    }
}

#[test]
fn page_has_the_fields_of_every_structure_in_order() {
    let all = [
        ("Policy", fields::<Policy>()),
        ("Descriptor", fields::<Descriptor>()),
        ("Input", fields::<Input>()),
        ("Streams", fields::<Streams>()),
        ("ConsumerFlags", fields::<ConsumerFlags>()),
        ("Pool", fields::<Pool>()),
        ("Options", fields::<Options>()),
        ("Resources", fields::<Resources>()),
        ("Site", fields::<Site>()),
        ("FunctionCode", fields::<FunctionCode>()),
        ("Reached", fields::<Reached>()),
        ("Value", fields::<Value<Handle>>()),
        ("Wait", fields::<Wait>()),
        ("ActionKey", fields::<ActionKey>()),
        ("Checkpoint", fields::<Checkpoint>()),
        ("Extent", fields::<Extent>()),
        ("Label", fields::<Label>()),
        ("Failure", fields::<Failure>()),
        ("Frame", fields::<Frame>()),
        ("FailureDetails", fields::<FailureDetails>()),
        ("Call", fields::<Call>()),
        ("Exception", fields::<Exception>()),
        ("Audit", fields::<Audit>()),
        ("FileRead", fields::<FileRead>()),
    ];
    let told = table(&page(), "### Structures");
    let told: Vec<(&str, Vec<&str>)> = told
        .iter()
        .map(|row| {
            // Each field stands before its type.
            let fields = row[1]
                .split(", ")
                .map(|field| field.split(' ').next().unwrap());
            (row[0].as_str(), fields.collect())
        })
        .collect();
    assert_eq!(told, all);
}

#[test]
fn examples_on_the_page_are_written_and_read_so() {
    let page = page();
    let mut wanted = String::new();
    let mut met = BTreeSet::new();
    for (words, record) in examples() {
        let mut bytes = Vec::new();
        record.append_to(&mut bytes);
        assert_eq!(Record::read(&bytes), Some(record.clone()), "{words}");
        let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        wanted.push_str(&format!("| {words} | `{}` |\n", digits.join(" ")));
        met.extend(kinds(&record));
    }
    assert!(
        page.contains(&wanted),
        "the examples of the page should be:\n{wanted}"
    );
    let all = [
        ("Record", variants::<Record>()),
        ("Event", variants::<Event>()),
        ("Step", variants::<Step>()),
    ];
    for (name, variants) in all {
        let count = met.iter().filter(|(of, _)| *of == name).count();
        assert_eq!(count, variants.len(), "an example of each {name}: {met:?}");
    }
}

/// Numbers of the variants that a record consists of, as its bytes begin with them.
fn kinds(record: &Record) -> Vec<(&'static str, u8)> {
    let first = |spelled: Result<Vec<u8>, postcard::Error>| spelled.unwrap()[0];
    let mut bytes = Vec::new();
    record.append_to(&mut bytes);
    let mut kinds = vec![("Record", bytes[0])];
    if let Record::Event { event, .. } = record {
        kinds.push(("Event", first(postcard::to_stdvec(event))));
        if let Event::TaskStepped { step, .. } = event {
            kinds.push(("Step", first(postcard::to_stdvec(step))));
        }
    }
    kinds
}

/// Records with the words that the page has for them.
fn examples() -> Vec<(&'static str, Record)> {
    let written = [
        (
            "a run started; standard error is ordered",
            Record::Began {
                policy: Policy::default(),
                ordered_errors: true,
            },
        ),
        (
            "strand 1 wrote `hi`, after four actions",
            Record::Wrote {
                strand: StrandKey(1),
                after: 4,
                piece: Piece::Bytes(b"hi".to_vec()),
            },
        ),
        (
            "strand 1 wrote 300 bytes after four actions; they are in spill file 0 from byte 8 on",
            Record::Wrote {
                strand: StrandKey(1),
                after: 4,
                piece: Piece::Extent(Extent {
                    blob: 0,
                    offset: 8,
                    length: 300,
                }),
            },
        ),
        (
            "strand 1 wrote `no` to standard error, after four actions",
            Record::WroteError {
                strand: StrandKey(1),
                after: 4,
                piece: Piece::Bytes(b"no".to_vec()),
            },
        ),
        (
            "the ordered file `/log` was named for the first time",
            Record::Opened {
                path: "/log".to_string(),
            },
        ),
        (
            "strand 1 wrote `hi` to the first ordered file, after four actions",
            Record::WroteFile {
                strand: StrandKey(1),
                after: 4,
                sink: Sink(1),
                piece: Piece::Bytes(b"hi".to_vec()),
            },
        ),
    ];
    let told = [turns(), others(), lookups(), steps(), ends()]
        .into_iter()
        .flatten();
    let told = told.map(|(words, event)| (words, Record::Event { now: 5, event }));
    written.into_iter().chain(told).collect()
}

const TASK: TaskKey = TaskKey(1);
const ATTEMPT: AttemptNumber = AttemptNumber(0);

fn label() -> Label {
    Label {
        what: "f".into(),
        name: Name(1),
    }
}

fn failure(kind: FailureKind) -> Failure {
    Failure::new(kind, label(), "no")
}

/// A task comes into the graph, gets a place, waits.
fn turns() -> Vec<(&'static str, Event)> {
    let (task, attempt) = (TASK, ATTEMPT);
    vec![
        (
            "a root is submitted: name 1, script `s`, payload `p`",
            Event::RootSubmitted {
                name: Name(1),
                descriptor: Arc::new(Descriptor::plain(
                    "skywriting",
                    Class::Coordination,
                    "s",
                    b"p".to_vec(),
                )),
            },
        ),
        ("task 1 got a slot", Event::TaskPlaced { task, attempt }),
        (
            "task 1 waits for handle 2, keeps handles 0 and 2, and has a live copy",
            Event::TaskBlocked {
                task,
                attempt,
                kept: Some(vec![Handle(0), Handle(2)]),
                on: vec![Handle(1)],
                wait: Wait::ALL,
                continuation: Continuation::Live,
                checkpoint: None,
            },
        ),
        (
            "task 1 waits for the first of two handles, 300 µs at most, and leaves the state `s`",
            Event::TaskBlocked {
                task,
                attempt,
                kept: None,
                on: vec![Handle(0), Handle(1)],
                wait: Wait {
                    until: Until::First,
                    limit_us: Some(300),
                    at: ActionKey::part(7, 0),
                },
                continuation: Continuation::Replay,
                checkpoint: Some(Box::new(Checkpoint {
                    state: b"s".to_vec().into(),
                    kept: vec![Handle(0), Handle(1)],
                })),
            },
        ),
    ]
}

/// What is neither an act of a task nor the end of one.
fn others() -> Vec<(&'static str, Event)> {
    let (task, attempt) = (TASK, ATTEMPT);
    vec![
        (
            "task 1 watches handle 2",
            Event::TaskWatched {
                task,
                attempt,
                handle: Handle(2),
            },
        ),
        (
            "task 1 fetches the inputs of its replay",
            Event::TaskRecalled { task, attempt },
        ),
        (
            "the live copy of task 1 is gone",
            Event::ContinuationLost { task },
        ),
        (
            "another process resumes the run; the file of object 1 is missing",
            Event::EngineLost {
                policy: Policy::default(),
                lost: vec![Name(1)],
            },
        ),
        (
            "the file of object 1 is lost in a run that lives",
            Event::FilesLost {
                lost: vec![Name(1)],
            },
        ),
        (
            "task 1 is rolled back to action 3",
            Event::TaskRolledBack { task, to: 3 },
        ),
        ("task 1 is cancelled", Event::CancelRequested { task }),
        (
            "the job is cancelled",
            Event::JobCancelled {
                failure: Box::new(failure(FailureKind::Cancelled)),
            },
        ),
        ("time passed", Event::Ticked),
        (
            "task 1 requests more than the machine has",
            Event::TaskRefused {
                task,
                attempt,
                failure: Box::new(failure(FailureKind::Refused)),
            },
        ),
    ]
}

/// What came of lookups.
fn lookups() -> Vec<(&'static str, Event)> {
    let (task, attempt) = (TASK, ATTEMPT);
    vec![
        (
            "an earlier run kept the result of task 1: `7`",
            Event::ResultFound {
                task,
                attempt,
                outputs: vec![Value::inline(Form::Bytes, b"7".to_vec())],
                printed: false,
            },
        ),
        (
            "the digest of the result of task 1 was kept",
            Event::ResultKnown {
                task,
                attempt,
                outputs: vec![Value {
                    form: Form::Bytes,
                    content: Content::File {
                        name: Name(1),
                        length: 9,
                        digest: Some(Digest(300)),
                    },
                    references: Vec::new(),
                }],
                printed: false,
            },
        ),
        (
            "no result of task 1 was kept: its argument `n` is another",
            Event::ResultMissing {
                task,
                attempt,
                reason: Box::new(RerunReason::ArgumentChanged(Some("n".into()))),
            },
        ),
    ]
}

/// A spawn with everything that a task of Python has.
fn spawn() -> Step {
    let pooled = Class::Pooled(Pool::new("python", 1));
    Step::Spawn {
        action: 4,
        first: Handle(9),
        descriptor: Arc::new(
            Descriptor::plain("python", pooled, "f", b"p".to_vec()).with(|it| {
                it.code = CodeIdentity::of(vec![FunctionCode {
                    name: "f".into(),
                    place: Site {
                        file: "a.py".into(),
                        line: 1,
                    },
                    digest: Digest(300),
                }]);
                it.inputs = vec![Input::value(Handle(0))];
                it.options = Options::shared_live();
                it.site = Site {
                    file: "a.py".into(),
                    line: 3,
                };
                it.replayable = true;
            }),
        ),
    }
}

/// What a task does that others can see.
fn steps() -> Vec<(&'static str, Event)> {
    let steps = [
        (
            "task 1 spawns `f` of `a.py:1` as action 4, with handle 0, at `a.py:3`, handle 9",
            spawn(),
        ),
        (
            "task 1 constructs the text `hi` as part 0 of action 5, handle 10",
            Step::Construct {
                at: ActionKey::part(5, 0),
                handle: Handle(10),
                value: Value::inline(Form::Text, b"hi".to_vec()),
            },
        ),
        (
            "task 1 publishes output 0 as action 5, handle 10, a file of 300 bytes",
            Step::Publish {
                at: ActionKey::action(5),
                handle: Handle(10),
                index: 0,
                value: Value {
                    form: Form::Bytes,
                    content: Content::File {
                        name: Name(300),
                        length: 300,
                        digest: Some(Digest(300)),
                    },
                    references: vec![Handle(0)],
                },
            },
        ),
        (
            "task 1 asked for `now` as action 5 and got `7`",
            Step::Input {
                at: ActionKey::action(5),
                kind: "now".into(),
                value: b"7".to_vec().into(),
            },
        ),
        (
            "task 1 released handles 9 and 10",
            Step::Release {
                handles: vec![Handle(9), Handle(10)],
            },
        ),
        (
            "task 1 passes output 0 directly to its reader",
            Step::OpenOutput {
                index: 0,
                carriage: Carriage::Direct,
            },
        ),
        (
            "task 1 opened a stream again, and restarts to read it whole",
            Step::ReadWhole,
        ),
    ];
    let stepped = |step| Event::TaskStepped {
        task: TASK,
        attempt: ATTEMPT,
        step,
    };
    steps.map(|(words, step)| (words, stepped(step))).into()
}

/// An attempt comes to its end.
fn ends() -> Vec<(&'static str, Event)> {
    let (task, attempt) = (TASK, ATTEMPT);
    let value = Value::inline(Form::Json, b"7".to_vec());
    vec![
        (
            "task 1 finished: `7`, one output delegated to handle 2, one published before; it \
             wrote, and read an empty file `/t`",
            Event::TaskFinished {
                task,
                attempt,
                outputs: vec![
                    Output::Value(value),
                    Output::Delegate(Handle(2)),
                    Output::Published,
                ],
                printed: false,
                audit: Some(Arc::new(Audit {
                    effects: Box::new(["wrote".into()]),
                    read: Box::new([FileRead {
                        path: "/t".into(),
                        length: 0,
                        digest: Digest(1),
                    }]),
                    printed: Some(Digest(2)),
                })),
            },
        ),
        (
            "task 1 continues after six actions as `g`, on two cores, with three retries",
            Event::TaskTailSpawned {
                task,
                attempt,
                descriptor: Arc::new(
                    Descriptor::plain("shell", Class::Process, "g", b"p".to_vec()).with(|it| {
                        it.options = Arc::new(Options {
                            resources: Resources {
                                millicores: 2000,
                                ..Resources::default()
                            },
                            retries: 3,
                            ..Options::default()
                        })
                    }),
                ),
                after: 6,
                audit: None,
            },
        ),
        (
            "task 1 failed: `no`",
            Event::TaskFailed {
                task,
                attempt,
                failure: Box::new(failure(FailureKind::TaskError)),
            },
        ),
        (
            "the process of task 1 is lost",
            Event::TaskLost {
                task,
                attempt,
                failure: Box::new(failure(FailureKind::WorkerLost)),
            },
        ),
    ]
}
