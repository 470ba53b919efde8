//! What an output is known to be whose bytes are gone.
//!
//! It does not know who needs it. Read first: `known`.

use ciel_model::{Content, Digest, Failure, FailureKind, Form, Label, ObjectKey, Value};
use serde::{Deserialize, Serialize};

/// What an unresolved object will be, as an earlier run has kept it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KnownOutput {
    /// Whose output it is.
    pub(crate) task: Label,
    pub(crate) form: Form,
    /// A file is only described.
    pub(crate) content: Content,
    /// Output that was printed, or a result that was taken, follows from it.
    pub(crate) is_binding: bool,
}

impl KnownOutput {
    /// Whether it has turned out to be this.
    pub(crate) fn is(&self, value: &Value<ObjectKey>) -> bool {
        let is_equal = match (&self.content, &value.content) {
            (Content::Inline(known), Content::Inline(now)) => known == now,
            (known, now) => {
                let is_known = digest_of(known).is_some();
                is_known && digest_of(known) == digest_of(now) && known.length() == now.length()
            }
        };
        is_equal && self.form == value.form && value.references.is_empty()
    }

    /// The failure of the job if something follows from it, and it has turned out to be another.
    pub(crate) fn differs(&self, now: &Content) -> Failure {
        let [before, now] = [&self.content, now].map(|content| match digest_of(content) {
            Some(digest) => digest.to_string(),
            None => format!("{} bytes", content.length()),
        });
        let message = format!(
            "its bytes had been removed, and it gave another result than before when it was \
             recomputed: {now} instead of {before}, on which other results were taken or \
             output was printed"
        );
        let failure = Failure::new(FailureKind::NonDeterministic, self.task.clone(), message);
        failure.with_hint(
            "run the command again: it continues from the new result; mark the task keep=False if \
             each run of it gives another one",
        )
    }
}

fn digest_of(content: &Content) -> Option<Digest> {
    match content {
        Content::Inline(bytes) => Some(Digest::of(bytes)),
        Content::File { digest, .. } => *digest,
    }
}
