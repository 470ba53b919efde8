//! Failures between the words of the protocol and those of the model.
//!
//! People see a failure as a chain of tasks and places; who reads the language of the code that
//! failed gets back what that code reported, call by call. Both are made here. It knows neither
//! sockets nor the graph. Read next: `turn`, which receives failures, and `task`, which sends them.

use std::sync::Arc;

use ciel_engine::ReceivedFailures;
use ciel_model::{Call, Exception, Failure, FailureDetails, FailureKind, Frame, Label, limits};
use ciel_protocol::{form, wire};

const KINDS: [(wire::FailureKind, FailureKind); 10] = [
    (wire::FailureKind::TaskError, FailureKind::TaskError),
    (wire::FailureKind::WorkerLost, FailureKind::WorkerLost),
    (wire::FailureKind::Cancelled, FailureKind::Cancelled),
    (wire::FailureKind::Timeout, FailureKind::Timeout),
    (wire::FailureKind::OutOfMemory, FailureKind::OutOfMemory),
    (
        wire::FailureKind::NotSerializable,
        FailureKind::NotSerializable,
    ),
    (
        wire::FailureKind::NonDeterministic,
        FailureKind::NonDeterministic,
    ),
    (wire::FailureKind::ObjectLost, FailureKind::ObjectLost),
    (wire::FailureKind::DiskFull, FailureKind::DiskFull),
    (wire::FailureKind::Refused, FailureKind::Refused),
];

/// The failure that a task ends with: the original one if it is one of those that it has
/// `received`.
pub(crate) fn from_wire(
    label: &Label,
    received: &ReceivedFailures,
    sent: wire::Failure,
) -> Failure {
    match received.find(&sent.task, &sent.message) {
        Some(original) => passed_on((**original).clone(), label, sent),
        None => own_failure(label, sent),
    }
}

/// A failure that begins here. A task that nobody cancelled cannot be cancelled: that is an error
/// of its own.
fn own_failure(label: &Label, sent: wire::Failure) -> Failure {
    let kind = KINDS
        .iter()
        .find(|(wire, _)| *wire == sent.kind())
        .map_or(FailureKind::TaskError, |(_, kind)| *kind);
    let own = match kind {
        FailureKind::Cancelled => FailureKind::TaskError,
        kind => kind,
    };
    let mut failure = Failure::new(own, label.clone(), &*sent.message);
    failure.type_name = match sent.type_name.is_empty() {
        true => kind.code().to_string(),
        false => sent.type_name.clone(),
    };
    failure.hint = (!sent.hint.is_empty()).then(|| sent.hint.clone());
    failure.excerpt = match sent.traceback.last() {
        Some(last) if sent.excerpt.is_empty() => last.source.clone(),
        _ => sent.excerpt.clone(),
    };
    let json = sent
        .exception
        .as_ref()
        .filter(|data| data.form == form::JSON);
    failure.value = json.and_then(|data| String::from_utf8(data.data.to_vec()).ok());
    let failure = through_calls(failure, label, &sent.traceback);
    with_details(failure, sent, FailureDetails::default())
}

/// A failure of another task that was this one's end. Calls that the task received with it are not
/// repeated; it may have added the text of their lines.
fn passed_on(mut original: Failure, label: &Label, mut sent: wire::Failure) -> Failure {
    let inner: Vec<wire::Frame> = calls_to_wire(&original);
    let own = sent.traceback.len().saturating_sub(inner.len());
    if sent.traceback[own..]
        .iter()
        .map(place)
        .eq(inner.iter().map(place))
    {
        sent.traceback.truncate(own);
    }
    let before = original.told.take();
    let failure = through_calls(original, label, &sent.traceback);
    sent.traceback.extend(inner);
    with_details(
        failure,
        sent,
        before.as_deref().cloned().unwrap_or_default(),
    )
}

/// Keeps what the worker sent for tasks that receive the failure; what it left out stays as it was
/// `before`.
fn with_details(mut failure: Failure, sent: wire::Failure, before: FailureDetails) -> Failure {
    let excess = sent
        .traceback
        .len()
        .saturating_sub(limits::TRACEBACK_CALLS_MAX);
    let carried = |data: wire::Data| {
        let fits = data.data.len() <= limits::EXCEPTION_BYTES_MAX;
        fits.then(|| Exception {
            form: data.form,
            bytes: data.data.to_vec(),
        })
    };
    let details = FailureDetails {
        language: match sent.language.is_empty() {
            true => before.language,
            false => sent.language,
        },
        calls: sent.traceback.into_iter().skip(excess).map(call).collect(),
        exception: sent.exception.map_or(before.exception, carried),
        retryable: sent.retryable.or(before.retryable),
    };
    failure.told = (details != FailureDetails::default()).then(|| Arc::new(details));
    failure
}

/// What two calls have in common that are the same one.
fn place(call: &wire::Frame) -> (&str, u32, &str) {
    (&call.file, call.line, &call.function)
}

fn call(frame: wire::Frame) -> Call {
    Call {
        file: frame.file,
        line: frame.line,
        column: frame.column,
        function: frame.function,
        source: frame.source,
    }
}

fn call_to_wire(call: &Call) -> wire::Frame {
    wire::Frame {
        file: call.file.clone(),
        line: call.line,
        column: call.column,
        function: call.function.clone(),
        source: call.source.clone(),
    }
}

/// The failure as it came through the calls of a task; they come outermost first.
fn through_calls(failure: Failure, label: &Label, calls: &[wire::Frame]) -> Failure {
    let calls = calls.iter().rev().take(limits::FAILURE_FRAMES_MAX);
    calls.fold(failure, |failure, call| failure.through(frame(label, call)))
}

fn frame(label: &Label, call: &wire::Frame) -> Frame {
    let place = match (call.line, call.column) {
        (0, _) => call.file.clone(),
        (line, 0) => format!("{}:{line}", call.file),
        (line, column) => format!("{}:{line}:{column}", call.file),
    };
    Frame {
        task: label.clone(),
        place,
        note: match call.function.is_empty() {
            true => String::new(),
            false => format!("in {}", call.function),
        },
    }
}

/// A failure, as workers receive it.
pub(crate) fn to_wire(failure: &Failure) -> wire::Failure {
    let kind = KINDS
        .iter()
        .find(|(_, kind)| *kind == failure.kind)
        .map_or(wire::FailureKind::Unspecified, |(wire, _)| *wire);
    let details = failure.told.as_deref();
    wire::Failure {
        kind: kind.into(),
        language: details.map_or_else(String::new, |details| details.language.clone()),
        type_name: failure.type_name.clone(),
        message: failure.message.clone(),
        traceback: calls_to_wire(failure),
        hint: failure.hint.clone().unwrap_or_default(),
        retryable: Some(failure.is_retryable()),
        exception: exception_to_wire(failure),
        task: failure.origin.to_string(),
        excerpt: failure.excerpt.clone(),
    }
}

/// The calls that the failed code reported; of a failure without any, its way so far.
fn calls_to_wire(failure: &Failure) -> Vec<wire::Frame> {
    match failure
        .told
        .as_ref()
        .filter(|details| !details.calls.is_empty())
    {
        Some(details) => details.calls.iter().map(call_to_wire).collect(),
        None => failure.frames.iter().rev().map(frame_to_wire).collect(),
    }
}

fn exception_to_wire(failure: &Failure) -> Option<wire::Data> {
    let data = |bytes: Vec<u8>, form: &str| wire::Data {
        r#type: String::new(),
        data: bytes.into(),
        form: form.to_string(),
        references: Vec::new(),
    };
    let details = failure.told.as_ref();
    match details.and_then(|details| details.exception.as_ref()) {
        Some(exception) => Some(data(exception.bytes.clone(), &exception.form)),
        None => {
            let value = failure.value.as_ref();
            value.map(|text| data(text.clone().into_bytes(), form::JSON))
        }
    }
}

fn frame_to_wire(frame: &Frame) -> wire::Frame {
    let (file, line) = match frame.place.rsplit_once(':') {
        Some((file, line)) => match line.parse() {
            Ok(line) => (file, line),
            Err(_) => (frame.place.as_str(), 0),
        },
        None => (frame.place.as_str(), 0),
    };
    wire::Frame {
        file: file.to_string(),
        line,
        column: 0,
        function: frame.task.to_string(),
        source: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciel_model::Name;

    fn label() -> Label {
        Label {
            what: "f".into(),
            name: Name(5 << 96),
        }
    }

    fn received(failure: Arc<Failure>) -> ReceivedFailures {
        let mut received = ReceivedFailures::default();
        received.add(failure);
        received
    }

    #[test]
    fn every_kind_of_failure_comes_back_as_it_was() {
        for kind in FailureKind::ALL {
            let there = to_wire(&Failure::new(kind, label(), "no"));
            let back = from_wire(&label(), &ReceivedFailures::default(), there);
            let own = kind != FailureKind::Cancelled;
            assert_eq!(back.kind == kind, own, "{kind}");
            assert_eq!((&*back.type_name, &*back.message), (kind.code(), "no"));
        }
    }

    #[test]
    fn failure_that_was_received_is_passed_on_as_it_was() {
        let origin = Label {
            what: "child".into(),
            name: Name(6 << 96),
        };
        let original = Failure::new(FailureKind::OutOfMemory, origin.clone(), "too much");
        let wire_failure = to_wire(&original);
        let passed = from_wire(&label(), &received(Arc::new(original)), wire_failure);
        assert_eq!(passed.kind, FailureKind::OutOfMemory);
        assert_eq!(passed.origin, origin);
    }

    #[test]
    fn innermost_call_comes_first_in_a_failure() {
        let call = |line, function: &str| wire::Frame {
            file: "job.py".to_string(),
            line,
            function: function.to_string(),
            ..wire::Frame::default()
        };
        let wire_failure = wire::Failure {
            traceback: vec![call(1, "main"), call(7, "price")],
            ..wire::Failure::default()
        };
        let failure = from_wire(&label(), &ReceivedFailures::default(), wire_failure);
        assert_eq!(failure.kind, FailureKind::TaskError);
        assert_eq!(failure.frames[0].place, "job.py:7");
        assert_eq!(failure.frames[0].note, "in price");
    }

    fn python(calls: &[(u32, &str)]) -> wire::Failure {
        let call = |(line, function): &(u32, &str)| wire::Frame {
            file: "job.py".to_string(),
            line: *line,
            column: 3,
            function: (*function).to_string(),
            source: format!("{function}()"),
        };
        wire::Failure {
            kind: wire::FailureKind::TaskError.into(),
            language: "python".to_string(),
            type_name: "ValueError".to_string(),
            message: "no".to_string(),
            traceback: calls.iter().map(call).collect(),
            exception: Some(wire::Data {
                r#type: String::new(),
                data: b"\x80\x04N.".to_vec().into(),
                form: form::PICKLE.to_string(),
                references: Vec::new(),
            }),
            ..wire::Failure::default()
        }
    }

    #[test]
    fn task_receives_what_the_failed_worker_sent() {
        let sent = python(&[(1, "main"), (7, "price")]);
        let wire_failure = to_wire(&from_wire(
            &label(),
            &ReceivedFailures::default(),
            sent.clone(),
        ));
        let task = label().to_string();
        let (retryable, excerpt) = (Some(true), "price()".to_string());
        let expected = wire::Failure {
            task,
            retryable,
            excerpt,
            ..sent
        };
        assert_eq!(wire_failure, expected);
    }

    #[test]
    fn failure_that_must_not_be_retried_stays_so() {
        let mut sent = python(&[]);
        sent.retryable = Some(false);
        let failure = from_wire(&label(), &ReceivedFailures::default(), sent);
        assert!(!failure.is_retryable());
        assert_eq!(to_wire(&failure).retryable, Some(false));
    }

    #[test]
    fn exception_that_is_too_long_is_left_out() {
        for (excess, kept) in [(0, true), (1, false)] {
            let mut sent = python(&[(1, "main")]);
            let bytes = vec![0; limits::EXCEPTION_BYTES_MAX + excess];
            sent.exception.as_mut().expect("it has one").data = bytes.into();
            let wire_failure = to_wire(&from_wire(&label(), &ReceivedFailures::default(), sent));
            assert_eq!(wire_failure.exception.is_some(), kept);
        }
    }

    #[test]
    fn of_a_long_traceback_the_innermost_calls_are_kept() {
        let calls: Vec<(u32, &str)> = (1..=1000).map(|line| (line, "f")).collect();
        let wire_failure = to_wire(&from_wire(
            &label(),
            &ReceivedFailures::default(),
            python(&calls),
        ));
        assert_eq!(wire_failure.traceback.len(), limits::TRACEBACK_CALLS_MAX);
        assert_eq!(wire_failure.traceback.last().expect("some").line, 1000);
    }

    /// A lost task has no calls, only the place of its spawn, which the reader's worker sent back
    /// with the text of the line: each task that passed the failure on added the step once more.
    #[test]
    fn step_of_a_lost_task_is_shown_once_however_far_its_failure_goes() {
        let spawned = Frame {
            task: label(),
            place: "job.py:10".to_string(),
            note: String::new(),
        };
        let lost = Failure::new(FailureKind::WorkerLost, label(), "its worker ended");
        let mut failure = lost.through(spawned);
        for line in [10, 13] {
            let mut sent = to_wire(&failure);
            let own = wire::Frame {
                file: "job.py".to_string(),
                line,
                function: "reader".to_string(),
                ..wire::Frame::default()
            };
            sent.traceback.insert(0, own);
            for call in &mut sent.traceback {
                call.source = "task.spawn().result()".to_string();
            }
            failure = from_wire(&label(), &received(Arc::new(failure)), sent);
        }
        let places: Vec<&str> = failure.frames.iter().map(|frame| &*frame.place).collect();
        assert_eq!(places, ["job.py:10", "job.py:10", "job.py:13"]);
    }

    #[test]
    fn calls_of_a_failure_passed_on_are_sent_once() {
        let child = Label {
            what: "child".into(),
            name: Name(6 << 96),
        };
        let original = Arc::new(from_wire(
            &child,
            &ReceivedFailures::default(),
            python(&[(7, "price")]),
        ));
        for repeats in [false, true] {
            let mut sent = python(&[(2, "main")]);
            sent.task = child.to_string();
            sent.exception = None;
            if repeats {
                sent.traceback.extend(to_wire(&original).traceback);
            }
            let passed = from_wire(&label(), &received(original.clone()), sent);
            let wire_failure = to_wire(&passed);
            let lines: Vec<u32> = wire_failure
                .traceback
                .iter()
                .map(|call| call.line)
                .collect();
            assert_eq!(lines, [2, 7]);
            assert_eq!(wire_failure.exception, to_wire(&original).exception);
            let places: Vec<&str> = passed.frames.iter().map(|frame| &*frame.place).collect();
            assert_eq!(places, ["job.py:7:3", "job.py:2:3"]);
        }
    }
}
