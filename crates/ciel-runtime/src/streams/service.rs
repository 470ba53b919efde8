//! The mode in which a reader is served: the one that both ends ask for, or, if that cannot be had,
//! the quickest stored one that gives the same bytes.
//!
//! It does not know how bytes travel. Read next: `inlet`.

use ciel_graph::Assignment;
use ciel_model::Mode;

use crate::core::Core;
use crate::sources::{Flow, Source};

/// A mode, and why it is no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) mode: Mode,
    /// What was asked for, and why that could not be had.
    instead_of: Option<(Mode, String)>,
}

impl Service {
    pub(super) fn of(asked: Mode, refused: Option<String>) -> Service {
        match refused {
            None => Service {
                mode: asked,
                instead_of: None,
            },
            Some(reason) => Service {
                mode: Mode::IndirectPipe,
                instead_of: Some((asked, reason)),
            },
        }
    }

    /// What `ciel why` says of the reader.
    pub(super) fn told(&self, input: u32) -> String {
        let mode = self.mode;
        match &self.instead_of {
            None => format!("reads input {input} in the mode {mode}"),
            Some((asked, reason)) => {
                format!("reads input {input} in the mode {mode} in place of {asked}: {reason}")
            }
        }
    }
}

/// The mode for a reader of an open output.
pub(super) fn decide(
    core: &Core,
    source: &Source,
    assignment: &Assignment,
    asked: Mode,
) -> Service {
    let flow = *source.flow.borrow();
    let refused = match asked {
        Mode::NoStream | Mode::Overlap | Mode::IndirectPipe | Mode::IndirectTcp => None,
        Mode::IndirectFile => Some("what a task reads is a pipe".to_string()),
        Mode::Direct => not_direct(core, source, assignment, flow),
    };
    Service::of(asked, refused)
}

fn not_direct(core: &Core, source: &Source, assignment: &Assignment, flow: Flow) -> Option<String> {
    let (producer, reader) = (source.producer.task, assignment.task);
    let refused = core.graph().not_direct(producer, source.index, reader);
    match (refused, flow) {
        (Some(reason), _) => Some(reason.to_string()),
        (None, Flow::Open) => None,
        (None, _) => Some("its reader came when it had to be stored already".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fall_back_says_what_was_asked_for_and_why_it_is_not() {
        let service = Service::of(
            Mode::IndirectFile,
            Some("what a task reads is a pipe".into()),
        );
        assert_eq!(
            service.told(2),
            "reads input 2 in the mode indirect_pipe in place of indirect_file: \
             what a task reads is a pipe"
        );
        let service = Service::of(Mode::Direct, None);
        assert_eq!(service.told(0), "reads input 0 in the mode direct");
    }
}
