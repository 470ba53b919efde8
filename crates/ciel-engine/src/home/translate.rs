//! What the graph wants done, as a message to the site that has the attempt or as an effect.
//!
//! It does not know which site that is. Read next: `message`.

use ciel_graph::Action;
use ciel_node::AttemptKey;

use crate::event::{Effect, ResultQuery};
use crate::message::{Notice, Offer, ToSite};

/// What comes of an action.
pub(super) enum Translated {
    /// A message about an attempt, for the site that has it.
    Message(AttemptKey, ToSite),
    /// Something to do where the home is.
    Effect(Effect),
}

/// The attempt that an action is about.
fn subject(action: &Action) -> Option<AttemptKey> {
    let (task, attempt) = match action {
        Action::Begin(assignment) => (assignment.task, assignment.attempt),
        Action::Happened(happening) => (happening.task, happening.attempt),
        Action::Offer { task, attempt, .. }
        | Action::Relabel { task, attempt, .. }
        | Action::ReaderWaits { task, attempt }
        | Action::Withdraw { task, attempt }
        | Action::Continue { task, attempt, .. }
        | Action::Recalled { task, attempt, .. }
        | Action::Notify { task, attempt, .. }
        | Action::Suspend { task, attempt }
        | Action::Stop { task, attempt } => (*task, *attempt),
        Action::Strand(_)
        | Action::FewChildren { .. }
        | Action::DropObject(_)
        | Action::FindResult { .. }
        | Action::AttemptFailed { .. }
        | Action::Compare(_)
        | Action::Ended(_)
        | Action::JobEnded(_) => return None,
    };
    Some(AttemptKey {
        task,
        number: attempt,
    })
}

/// The messages and effects of an action; `parked` is whether a suspended task keeps its live copy,
/// `slot_of` where an attempt runs.
pub(super) fn translate(
    action: Action,
    parked: impl Fn(AttemptKey) -> bool,
    slot_of: impl Fn(AttemptKey) -> Option<ciel_node::Slot>,
) -> Translated {
    let Some(attempt) = subject(&action) else {
        return Translated::Effect(effect_of(action));
    };
    let message = match action {
        Action::Offer {
            descriptor,
            label,
            replay_us,
            is_root,
            near,
            pairing,
            ..
        } => ToSite::Offer(Box::new(Offer {
            attempt,
            label,
            class: descriptor.class.clone(),
            resources: descriptor.options.resources.clone(),
            replay_us,
            is_root,
            is_limited: descriptor.options.is_limited(),
            begun_in: None,
            near,
            pairing,
        })),
        Action::Relabel { label, .. } => ToSite::Relabel { attempt, label },
        Action::ReaderWaits { .. } => ToSite::ReaderWaits { attempt },
        Action::Withdraw { .. } => ToSite::Withdraw { attempt },
        Action::Begin(assignment) => ToSite::Begin(assignment),
        Action::Continue { answers, ended, .. } => ToSite::Continue {
            attempt,
            answers,
            ended,
        },
        Action::Recalled { known, .. } => ToSite::Recalled { attempt, known },
        Action::Notify { handle, .. } => ToSite::Notify {
            attempt,
            notice: Notice::Settled(handle),
        },
        Action::Suspend { .. } => {
            let parked = parked(attempt);
            ToSite::Suspend { attempt, parked }
        }
        Action::Stop { .. } => ToSite::Stop { attempt },
        Action::Happened(happening) => {
            let slot = slot_of(attempt);
            return Translated::Effect(Effect::Happened { happening, slot });
        }
        other => return Translated::Effect(effect_of(other)),
    };
    Translated::Message(attempt, message)
}

/// The effect of an action that is about no attempt.
pub(crate) fn effect_of(action: Action) -> Effect {
    match action {
        Action::DropObject(name) => Effect::DropObject(name),
        Action::FindResult {
            task,
            attempt: number,
            strand,
            label,
            after,
            descriptor,
            inputs,
        } => Effect::FindResult(Box::new(ResultQuery {
            attempt: AttemptKey { task, number },
            strand,
            label,
            after,
            descriptor,
            inputs,
        })),
        Action::AttemptFailed {
            key: _,
            task,
            failure,
            left,
            to,
        } => Effect::AttemptFailed {
            task,
            failure,
            left,
            to,
        },
        Action::Compare(comparison) => Effect::Compare(comparison),
        Action::Ended(summary) => Effect::TaskEnded(summary),
        Action::JobEnded(outcome) => Effect::JobEnded(outcome),
        Action::Strand(_) => unreachable!("the coordinator keeps those to itself"),
        Action::FewChildren { .. } => unreachable!("the home has seen that before"),
        action => unreachable!("{action:?} is about an attempt"),
    }
}
