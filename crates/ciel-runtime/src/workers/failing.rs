//! Failures between the words of the protocol and those of the model.
//!
//! People see a failure as a chain of tasks and places; who reads the language of the code that
//! failed gets back what that code said, call by call. Both are made here. It knows neither sockets
//! nor the graph. Read next: `wire`, for everything else that is said.

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

/// Why a task says that it failed: the original one if it is one of those that it has `received`.
pub(super) fn failure(label: &Label, received: &ReceivedFailures, said: wire::Failure) -> Failure {
    match received.find(&said.task, &said.message) {
        Some(original) => passed_on((**original).clone(), label, said),
        None => own_failure(label, said),
    }
}

/// A failure that begins here. A task that nobody cancelled cannot be cancelled: that is an error
/// of its own.
fn own_failure(label: &Label, said: wire::Failure) -> Failure {
    let kind = KINDS
        .iter()
        .find(|(wire, _)| *wire == said.kind())
        .map_or(FailureKind::TaskError, |(_, kind)| *kind);
    let own = match kind {
        FailureKind::Cancelled => FailureKind::TaskError,
        kind => kind,
    };
    let mut failure = Failure::new(own, label.clone(), &*said.message);
    failure.type_name = match said.type_name.is_empty() {
        true => kind.code().to_string(),
        false => said.type_name.clone(),
    };
    failure.hint = (!said.hint.is_empty()).then(|| said.hint.clone());
    failure.excerpt = match said.traceback.last() {
        Some(last) if said.excerpt.is_empty() => last.source.clone(),
        _ => said.excerpt.clone(),
    };
    let json = said
        .exception
        .as_ref()
        .filter(|data| data.form == form::JSON);
    failure.value = json.and_then(|data| String::from_utf8(data.data.to_vec()).ok());
    let failure = through_calls(failure, label, &said.traceback);
    with_told(failure, said, FailureDetails::default())
}

/// A failure of another task that was this one's end. Of the calls that it tells, those that it was
/// told itself are not repeated.
fn passed_on(mut original: Failure, label: &Label, mut said: wire::Failure) -> Failure {
    let inner: Vec<wire::Frame> = calls_told(&original);
    let own = said.traceback.len().saturating_sub(inner.len());
    if said.traceback[own..] == inner {
        said.traceback.truncate(own);
    }
    let before = original.told.take();
    let failure = through_calls(original, label, &said.traceback);
    said.traceback.extend(inner);
    with_told(
        failure,
        said,
        before.as_deref().cloned().unwrap_or_default(),
    )
}

/// Keeps what the worker said for those who ask; what it left out stays as it was `before`.
fn with_told(mut failure: Failure, said: wire::Failure, before: FailureDetails) -> Failure {
    let excess = said
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
    let told = FailureDetails {
        language: match said.language.is_empty() {
            true => before.language,
            false => said.language,
        },
        calls: said.traceback.into_iter().skip(excess).map(call).collect(),
        exception: said.exception.map_or(before.exception, carried),
        retryable: said.retryable.or(before.retryable),
    };
    failure.told = (told != FailureDetails::default()).then(|| Arc::new(told));
    failure
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

fn call_told(call: &Call) -> wire::Frame {
    wire::Frame {
        file: call.file.clone(),
        line: call.line,
        column: call.column,
        function: call.function.clone(),
        source: call.source.clone(),
    }
}

/// The failure as it came through the calls of a task; they are told outermost first.
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

/// A failure, as a worker that asks is told it.
pub(super) fn failure_told(failure: &Failure) -> wire::Failure {
    let kind = KINDS
        .iter()
        .find(|(_, kind)| *kind == failure.kind)
        .map_or(wire::FailureKind::Unspecified, |(wire, _)| *wire);
    let told = failure.told.as_deref();
    wire::Failure {
        kind: kind.into(),
        language: told.map_or_else(String::new, |told| told.language.clone()),
        type_name: failure.type_name.clone(),
        message: failure.message.clone(),
        traceback: calls_told(failure),
        hint: failure.hint.clone().unwrap_or_default(),
        retryable: Some(failure.is_retryable()),
        exception: exception_told(failure),
        task: failure.origin.to_string(),
        excerpt: failure.excerpt.clone(),
    }
}

/// The calls that the failed code told; of a failure without any, its way so far.
fn calls_told(failure: &Failure) -> Vec<wire::Frame> {
    match failure.told.as_ref().filter(|told| !told.calls.is_empty()) {
        Some(told) => told.calls.iter().map(call_told).collect(),
        None => failure.frames.iter().rev().map(frame_told).collect(),
    }
}

fn exception_told(failure: &Failure) -> Option<wire::Data> {
    let data = |bytes: Vec<u8>, form: &str| wire::Data {
        r#type: String::new(),
        data: bytes.into(),
        form: form.to_string(),
        references: Vec::new(),
    };
    let told = failure.told.as_ref();
    match told.and_then(|told| told.exception.as_ref()) {
        Some(exception) => Some(data(exception.bytes.clone(), &exception.form)),
        None => {
            let value = failure.value.as_ref();
            value.map(|text| data(text.clone().into_bytes(), form::JSON))
        }
    }
}

fn frame_told(frame: &Frame) -> wire::Frame {
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
            let there = failure_told(&Failure::new(kind, label(), "no"));
            let back = failure(&label(), &ReceivedFailures::default(), there);
            let own = kind != FailureKind::Cancelled;
            assert_eq!(back.kind == kind, own, "{kind}");
            assert_eq!((&*back.type_name, &*back.message), (kind.code(), "no"));
        }
    }

    #[test]
    fn failure_that_was_heard_of_is_passed_on_as_it_was() {
        let origin = Label {
            what: "child".into(),
            name: Name(6 << 96),
        };
        let original = Failure::new(FailureKind::OutOfMemory, origin.clone(), "too much");
        let told = failure_told(&original);
        let passed = failure(&label(), &received(Arc::new(original)), told);
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
        let told = wire::Failure {
            traceback: vec![call(1, "main"), call(7, "price")],
            ..wire::Failure::default()
        };
        let failure = failure(&label(), &ReceivedFailures::default(), told);
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
    fn who_asks_is_told_what_the_failed_worker_said() {
        let said = python(&[(1, "main"), (7, "price")]);
        let told = failure_told(&failure(
            &label(),
            &ReceivedFailures::default(),
            said.clone(),
        ));
        let task = label().to_string();
        let (retryable, excerpt) = (Some(true), "price()".to_string());
        let expected = wire::Failure {
            task,
            retryable,
            excerpt,
            ..said
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn failure_that_must_not_be_tried_again_says_so_to_all() {
        let mut said = python(&[]);
        said.retryable = Some(false);
        let failure = failure(&label(), &ReceivedFailures::default(), said);
        assert!(!failure.is_retryable());
        assert_eq!(failure_told(&failure).retryable, Some(false));
    }

    #[test]
    fn exception_that_is_too_long_is_left_out() {
        for (excess, kept) in [(0, true), (1, false)] {
            let mut said = python(&[(1, "main")]);
            let bytes = vec![0; limits::EXCEPTION_BYTES_MAX + excess];
            said.exception.as_mut().expect("it has one").data = bytes.into();
            let told = failure_told(&failure(&label(), &ReceivedFailures::default(), said));
            assert_eq!(told.exception.is_some(), kept);
        }
    }

    #[test]
    fn of_a_long_traceback_the_innermost_calls_are_kept() {
        let calls: Vec<(u32, &str)> = (1..=1000).map(|line| (line, "f")).collect();
        let told = failure_told(&failure(
            &label(),
            &ReceivedFailures::default(),
            python(&calls),
        ));
        assert_eq!(told.traceback.len(), limits::TRACEBACK_CALLS_MAX);
        assert_eq!(told.traceback.last().expect("some").line, 1000);
    }

    #[test]
    fn calls_of_a_failure_passed_on_are_told_once() {
        let child = Label {
            what: "child".into(),
            name: Name(6 << 96),
        };
        let original = Arc::new(failure(
            &child,
            &ReceivedFailures::default(),
            python(&[(7, "price")]),
        ));
        for repeats in [false, true] {
            let mut said = python(&[(2, "main")]);
            said.task = child.to_string();
            said.exception = None;
            if repeats {
                said.traceback.extend(failure_told(&original).traceback);
            }
            let passed = failure(&label(), &received(original.clone()), said);
            let told = failure_told(&passed);
            let lines: Vec<u32> = told.traceback.iter().map(|call| call.line).collect();
            assert_eq!(lines, [2, 7]);
            assert_eq!(told.exception, failure_told(&original).exception);
            let places: Vec<&str> = passed.frames.iter().map(|frame| &*frame.place).collect();
            assert_eq!(places, ["job.py:7:3", "job.py:2:3"]);
        }
    }
}
