//! What the home does about room on the disk: it notes who makes files, and holds tasks that have
//! not begun from the moment at which room is scarce.
//!
//! It does not know where files are. Read next: `room`, which says why no job fails that the serial
//! program could do; `backpressure`.

use ciel_graph as graph;
use ciel_model::{Content, Label, Name, SegmentedQueue, StrandKey, TaskKey, Value};

use super::holds::Holds;
use super::placement::Stage;
use super::room::{Maker, Room};
use super::translate::{Translated, translate};
use super::{FromHome, Home};
use crate::event::Effect;
use crate::message::{SiteKey, ToSite};

/// Files that an answer names.
const LARGEST_MAX: usize = 3;

/// What the serial program would hold on the disk where it runs a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialUse {
    /// Bytes of files.
    pub bytes: u64,
    /// The largest of them with those who made them, the largest first.
    pub largest: Vec<(Label, u64)>,
    /// How many outputs the task has.
    pub outputs: u32,
}

impl Home {
    /// From now on tasks are held while files take much of that.
    pub(crate) fn bound_room(&mut self, budget_bytes: u64) {
        self.room = Some(Box::new(Room::new(budget_bytes)));
    }

    /// Whether files take more than the mark.
    pub(crate) fn room_is_scarce(&self) -> bool {
        self.room.as_ref().is_some_and(|room| room.is_scarce())
    }

    /// So many bytes of files are on the disk. When room becomes scarce for the first time, tasks
    /// that were offered and have not begun are withdrawn; from then on all go through `holds`.
    pub(crate) fn note_present(&mut self, bytes: u64, out: &mut SegmentedQueue<FromHome>) {
        let Some(room) = &mut self.room else {
            return;
        };
        room.set_present(bytes);
        if room.is_scarce() && self.holds.is_none() {
            self.holds = Some(Box::new(Holds::new(u64::MAX)));
            self.withdraw_offers(out);
        }
    }

    fn withdraw_offers(&mut self, out: &mut SegmentedQueue<FromHome>) {
        for action in self.graph().offers() {
            let Translated::Message(attempt, ToSite::Offer(offer)) =
                translate(action, |_| false, |_| None)
            else {
                continue;
            };
            let is_offered = matches!(self.placement.stage_of(attempt), Some((_, Stage::Offered)));
            if is_offered && self.hold(offer).is_none() {
                self.send(attempt, ToSite::Withdraw { attempt }, out);
                self.placement.remove(attempt);
            }
        }
    }

    /// Notes who has made the files that an event of a site brings, and where.
    pub(super) fn note_files(&mut self, site: SiteKey, event: &graph::Event) {
        if self.room.is_none() && !self.placement.has_a_choice() {
            return;
        }
        match event {
            graph::Event::TaskFinished { task, outputs, .. } => {
                for output in outputs {
                    if let graph::Output::Value(value) = output {
                        self.note_file(site, *task, value);
                    }
                }
            }
            graph::Event::TaskStepped {
                task,
                step: graph::Step::Construct { value, .. } | graph::Step::Publish { value, .. },
                ..
            } => self.note_file(site, *task, value),
            _ => {}
        }
    }

    fn note_file<H>(&mut self, site: SiteKey, task: TaskKey, value: &Value<H>) {
        let Content::File { name, .. } = value.content else {
            return;
        };
        self.note_place(site, name);
        let strand = self.graph().strand_of(task);
        let label = self.graph().view(task).map(|view| view.label);
        if let (Some(room), Some(label), Some(strand)) = (&mut self.room, label, strand) {
            room.note(name, Maker { label, strand });
        }
    }

    /// A file that is dropped takes no room soon, and is nowhere.
    pub(super) fn note_effect(&mut self, effect: &Effect) {
        let Effect::DropObject(name) = effect else {
            return;
        };
        self.locality.forget(*name);
        if let Some(room) = &mut self.room {
            room.forget(*name);
        }
    }

    /// What the serial program would hold of what is `on_disk` where it runs that task; none if it
    /// is not the first.
    pub(crate) fn serial_use(
        &mut self,
        task: Name,
        on_disk: impl Fn(Name) -> bool,
    ) -> Option<SerialUse> {
        self.state.output_mut().advance();
        let room = self.room.as_ref()?;
        let first = self.graph().first(task)?;
        let mut held: Vec<(Label, u64)> = Vec::new();
        for (name, file) in self
            .graph()
            .files()
            .into_iter()
            .filter(|(name, _)| on_disk(*name))
        {
            let maker = room.maker(name);
            let maker = maker.filter(|maker| !self.is_later(maker.strand, &first.strands));
            held.extend(maker.map(|maker| (maker.label.clone(), file.length)));
        }
        let bytes = held.iter().map(|(_, length)| length).sum();
        held.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
        held.truncate(LARGEST_MAX);
        Some(SerialUse {
            bytes,
            largest: held,
            outputs: first.outputs,
        })
    }

    /// Whether the serial program would come to that strand after the first task, which is beneath
    /// those strands.
    fn is_later(&self, strand: StrandKey, above: &[StrandKey]) -> bool {
        let output = self.state.output();
        !above.contains(&strand) && output.knows(ciel_ordered::StrandKey(strand.0))
    }
}
