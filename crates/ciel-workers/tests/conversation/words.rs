//! What a conversation does, in words.

use ciel_engine::Event;
use ciel_graph as graph;
use ciel_model::Audit;
use ciel_protocol::wire::answer::Result as Answered;
use ciel_protocol::wire::engine_message::Kind;
use ciel_protocol::wire::reference::State;
use ciel_protocol::wire::{EngineMessage, Reference};
use ciel_workers::{Effect, Show, WorkerExitReason};

/// What the engine is told; nothing for what only frees a slot.
pub fn of_event(event: &Event) -> Option<String> {
    use graph::{Event as Told, Step};
    let told = match event {
        Event::Graph(event) => event,
        Event::SpawnedBegun(_) => return Some("[spawned begun]".to_string()),
        Event::TurnEnded { end: None, .. } => return Some("[left]".to_string()),
        Event::TurnEnded { end: Some(end), .. } => end,
        Event::WorkerReady { .. } => return Some("[ready]".to_string()),
        Event::WorkerRetired { .. } => return Some("[retired]".to_string()),
        Event::WorkerGone { .. } => return Some("[gone]".to_string()),
        Event::WorkerCaches { held, dropped, .. } => {
            return Some(format!("[caches {held:?}, not {dropped:?}]"));
        }
        Event::PrefetchReturned { attempts, .. } => {
            return Some(format!("[{} returned]", attempts.len()));
        }
        Event::TurnTaken { .. }
        | Event::TaskPreempted { .. }
        | Event::FrontierMoved { .. }
        | Event::ProcessWrote { .. }
        | Event::ProcessPaused { .. }
        | Event::ChildrenAwaited { .. }
        | Event::StoreShrank { .. }
        | Event::StoreFreed
        | Event::ProcessReturned { .. }
        | Event::Ticked => return None,
    };
    Some(match told {
        Told::TaskStepped { step, .. } => match step {
            Step::Spawn { .. } => "[spawned]",
            Step::Construct { .. } => "[constructed]",
            Step::Publish { .. } => "[published]",
            Step::Input { .. } => "[observed]",
            Step::Release { .. } => "[released]",
            Step::OpenOutput { .. } => "[opened]",
            Step::ReadWhole => "[reads whole]",
        }
        .to_string(),
        Told::TaskBlocked { .. } => "[blocked]".to_string(),
        Told::TaskWatched { .. } => "[watched]".to_string(),
        Told::TaskFinished { audit, .. } => format!("[finished{}]", of_audit(audit.as_deref())),
        Told::TaskTailSpawned { audit, .. } => format!("[delegated{}]", of_audit(audit.as_deref())),
        Told::TaskFailed { failure, .. } => format!("[failed: {}]", failure.message),
        Told::TaskLost { failure, .. } => format!("[lost: {}]", failure.message),
        Told::TaskRecalled { .. } => "[recalled]".to_string(),
        other => panic!("no worker tells {other:?}"),
    })
}

fn of_audit(audit: Option<&Audit>) -> String {
    let Some(audit) = audit else {
        return String::new();
    };
    let (effects, read) = (audit.effects.join(", "), &audit.read);
    let read = read
        .iter()
        .map(|file| format!(" {}:{}", file.path, file.length));
    format!(" with ({effects}) and read{}", read.collect::<String>())
}

pub fn of_effect(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Send(message) => of_message(message),
        Effect::Interrupt => "interrupt".to_string(),
        Effect::Show(_, what) => match what {
            Show::ErrorLines(lines) => format!("show {:?}", String::from_utf8_lossy(lines)),
            Show::Info(text) => format!("info {text:?}"),
            Show::Warning(text) => format!("warn {text:?}"),
            Show::Log(stream, _) => format!("log {stream}"),
        },
        Effect::TaskSucceeded => return None,
        Effect::End(reason) => match reason {
            WorkerExitReason::Dismissed => "end: dismissed".to_string(),
            WorkerExitReason::Breach(what) => format!("end: {what}"),
            WorkerExitReason::Died => "end: died".to_string(),
            WorkerExitReason::Overdue => "end: overdue".to_string(),
            WorkerExitReason::Overdrawn(_) => "end: overdrawn".to_string(),
            WorkerExitReason::TooLarge(bytes) => format!("end: {bytes} bytes"),
        },
    })
}

fn of_message(message: &EngineMessage) -> String {
    let tag = message.tag;
    match message.kind.as_ref().expect("a message has a kind") {
        Kind::Start(_) => format!("start {tag}"),
        Kind::Resume(resume) => {
            let answers: Vec<_> = resume.answers.iter().map(of_reference).collect();
            format!("resume {tag} with {}", answers.join(" "))
        }
        Kind::Answer(answer) => {
            let result = match answer.result.as_ref().expect("an answer has a result") {
                Answered::Reference(reference) => of_reference(reference).to_string(),
                Answered::Opened(_) => "opened".to_string(),
                Answered::Observed(seen) => String::from_utf8_lossy(&seen.value).into_owned(),
                Answered::Refused(failure) => failure.message.clone(),
            };
            format!("answer {}: {result}", answer.request)
        }
        Kind::Cancel(_) => format!("cancel {tag}"),
        Kind::Drop(_) => format!("drop {tag}"),
        Kind::Hello(_) => "hello".to_string(),
        Kind::Define(define) => format!("define {}", define.id),
        Kind::Refusal(_) | Kind::Shutdown(_) | Kind::Ping(_) => panic!("not sent here"),
    }
}

fn of_reference(reference: &Reference) -> &'static str {
    match reference.state.as_ref().expect("a reference has a state") {
        State::Future(_) => "future",
        State::Concrete(_) => "file",
        State::Value(_) => "value",
        State::Error(_) => "error",
        State::Stream(_) => "stream",
    }
}
