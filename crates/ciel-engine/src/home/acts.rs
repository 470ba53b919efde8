//! What sites say, one message each, and what becomes of a site's tasks when it is lost.
//!
//! Read next: `placement`.

use ciel_graph::{self as graph, Ahead};
use ciel_model::{Failure, FailureKind, Label, Micros, SegmentedQueue, TaskKey};
use ciel_node::{AttemptKey, Capacity, Slot};
use ciel_ordered::Piece;

use super::placement::Stage;
use super::{FromHome, Home};
use crate::message::{STARTS_MAX, SiteKey, ToSite};

/// What the user can do about a task that is refused for want of resources.
const TOO_SMALL_HINT: &str = "request less, or run with more: -j sets the cores, --resource the \
    others, and memory is that of the machine or of its control group";

impl Home {
    /// Whatever no site could take is offered again.
    pub(super) fn on_joined(
        &mut self,
        site: SiteKey,
        capacity: Capacity,
        out: &mut SegmentedQueue<FromHome>,
    ) {
        if !self.placement.knows(site) {
            self.placement.add_site(site, capacity);
            self.offer_what_no_site_has(out);
        }
    }

    /// A site is gone with all that ran or was parked there.
    pub fn lose_site(&mut self, now: Micros, site: SiteKey, out: &mut SegmentedQueue<FromHome>) {
        let had = self.placement.remove_site(site);
        self.locality.lose_site(site);
        for (attempt, stage) in had {
            let task = attempt.task;
            match stage {
                Stage::Placed(_) => self.lose_attempt(now, attempt, out),
                Stage::Offered | Stage::Parked if self.graph().keeps_live_copy(task) => {
                    self.tell(now, graph::Event::ContinuationLost { task }, out);
                }
                // What is ready is offered below.
                Stage::Offered | Stage::Parked => {}
            }
        }
        self.offer_what_no_site_has(out);
    }

    fn lose_attempt(
        &mut self,
        now: Micros,
        attempt: AttemptKey,
        out: &mut SegmentedQueue<FromHome>,
    ) {
        let AttemptKey { task, number } = attempt;
        let Some(label) = self.label(task) else {
            return;
        };
        let failure = Failure::new(FailureKind::WorkerLost, label, "its site was lost");
        let event = graph::Event::TaskLost {
            task,
            attempt: number,
            failure: Box::new(failure),
        };
        self.tell(now, event, out);
    }

    fn label(&self, task: TaskKey) -> Option<Label> {
        self.graph().view(task).map(|view| view.label)
    }

    fn offer_what_no_site_has(&mut self, out: &mut SegmentedQueue<FromHome>) {
        for offer in self.graph().offers() {
            if let graph::Action::Offer { task, attempt, .. } = offer
                && !self.placement.has(AttemptKey {
                    task,
                    number: attempt,
                })
            {
                self.perform(offer, out);
            }
        }
    }

    /// A site has a slot for an attempt. One that is given up by now does not begin; one that was
    /// offered to another site, and was begun here because it follows another task, is withdrawn
    /// there.
    pub(super) fn on_placed(
        &mut self,
        now: Micros,
        site: SiteKey,
        attempt: AttemptKey,
        slot: Slot,
        out: &mut SegmentedQueue<FromHome>,
    ) {
        let AttemptKey { task, number } = attempt;
        let stage = self.placement.stage_of(attempt);
        let is_free = match stage {
            Some((owner, Stage::Offered)) => owner == site || !self.graph().keeps_live_copy(task),
            Some((_, Stage::Placed(_) | Stage::Parked)) | None => false,
        };
        if !is_free || !self.graph().awaits_place(task, number) {
            return out.push_back(FromHome::Send(site, ToSite::Refuse { attempt }));
        }
        if let Some(other) = self.placement.take_over(attempt, site) {
            out.push_back(FromHome::Send(other, ToSite::Withdraw { attempt }));
        }
        self.placement.set(attempt, Stage::Placed(slot));
        self.note_inputs(site, attempt);
        let attempt = number;
        self.tell(now, graph::Event::TaskPlaced { task, attempt }, out);
    }

    /// Whether that site runs that attempt.
    fn runs(&self, site: SiteKey, attempt: AttemptKey) -> bool {
        let stage = self.placement.stage_of(attempt);
        matches!(stage, Some((owner, Stage::Placed(_))) if owner == site)
    }

    /// An attempt of that site has done something, waits, or has come to its end.
    pub(crate) fn on_acted(
        &mut self,
        now: Micros,
        site: SiteKey,
        mut event: graph::Event,
        out: &mut SegmentedQueue<FromHome>,
    ) {
        let Some(attempt) = speaker(&event).filter(|attempt| self.runs(site, *attempt)) else {
            return;
        };
        if let graph::Event::TaskBlocked { checkpoint, .. } = &mut event
            && checkpoint.is_some()
            && self.is_behind(attempt.task)
        {
            // What a replay is compared with began before this point.
            *checkpoint = None;
        }
        if let graph::Event::TaskFinished { .. } = event
            && self.is_behind(attempt.task)
        {
            event = self.wrote_less(attempt).unwrap_or(event);
        }
        if ends_attempt(&event) {
            self.placement.end(attempt);
        }
        self.note_asking(&event);
        self.note_files(site, &event);
        self.tell(now, event, out);
        self.asks = None;
    }

    /// An attempt of that site spawns a task that has begun inside it. The spawn is one like any
    /// other, but the offer goes to that site. None comes of it if the job has failed: then the
    /// task is cancelled, which the attempt hears when it waits.
    pub(crate) fn on_spawned_begun(
        &mut self,
        now: Micros,
        site: SiteKey,
        event: graph::Event,
        out: &mut SegmentedQueue<FromHome>,
    ) {
        self.begun_in = speaker(&event);
        self.on_acted(now, site, event, out);
        self.begun_in = None;
    }

    /// Whether `parent` has spawned `task`.
    pub(super) fn is_child(&self, task: TaskKey, parent: TaskKey) -> bool {
        let spawner = self.graph().view(task).and_then(|view| view.parent);
        let parent = self.label(parent);
        spawner.is_some_and(|spawner| parent.is_some_and(|parent| parent.name == spawner.name))
    }

    fn is_behind(&self, task: TaskKey) -> bool {
        let strand = self.graph().strand_of(task);
        strand.is_some_and(|strand| self.state.is_behind(strand))
    }

    /// In place of the good end of a replay that has not written all that was written before.
    fn wrote_less(&self, attempt: AttemptKey) -> Option<graph::Event> {
        let AttemptKey { task, number } = attempt;
        let told = "it ended before it had written all that it wrote when it ran before";
        let failure = Failure::new(FailureKind::NonDeterministic, self.label(task)?, told)
            .with_hint("a task must do the same every time it is run");
        Some(graph::Event::TaskFailed {
            task,
            attempt: number,
            failure: Box::new(failure),
        })
    }

    /// A replay that writes something else than before fails.
    pub(super) fn on_wrote(
        &mut self,
        now: Micros,
        site: SiteKey,
        attempt: AttemptKey,
        (after, bytes): (u64, &[u8]),
        out: &mut SegmentedQueue<FromHome>,
    ) {
        let AttemptKey { task, number } = attempt;
        let strand = self.graph().strand_of(task);
        let (Some(strand), true) = (strand, self.runs(site, attempt)) else {
            return;
        };
        let written = self
            .state
            .write(strand, after, Piece::Bytes(bytes.to_vec()));
        if let (Err(told), Some(label)) = (written, self.label(task)) {
            let failure = Failure::new(FailureKind::NonDeterministic, label, told)
                .with_hint("a task must do the same every time it is run");
            self.send(attempt, ToSite::Stop { attempt }, out);
            self.placement.end(attempt);
            let failed = graph::Event::TaskFailed {
                task,
                attempt: number,
                failure: Box::new(failure),
            };
            self.tell(now, failed, out);
        }
    }

    pub(super) fn on_too_small(
        &mut self,
        now: Micros,
        site: SiteKey,
        attempt: AttemptKey,
        lacking: &str,
        out: &mut SegmentedQueue<FromHome>,
    ) {
        let AttemptKey { task, number } = attempt;
        let (Some(label), Some(owner)) = (self.label(task), self.placement.site_of(attempt)) else {
            return;
        };
        if owner != site {
            return;
        }
        let failure = Failure::new(FailureKind::Refused, label, lacking).with_hint(TOO_SMALL_HINT);
        self.placement.end(attempt);
        let refused = graph::Event::TaskRefused {
            task,
            attempt: number,
            failure: Box::new(failure),
        };
        self.tell(now, refused, out);
    }

    pub(super) fn on_continuation_lost(
        &mut self,
        now: Micros,
        site: SiteKey,
        task: TaskKey,
        out: &mut SegmentedQueue<FromHome>,
    ) {
        match self.placement.attempt_at(task, site) {
            Some((attempt, Stage::Parked)) => self.placement.remove(attempt),
            Some((_, Stage::Offered)) => {}
            Some((_, Stage::Placed(_))) | None => return,
        }
        self.tell(now, graph::Event::ContinuationLost { task }, out);
    }

    /// What may follow `behind` and its line: of ready tasks those at the front that can be sent
    /// ahead, else a chain of tasks each of which needs no more than those before it produce.
    pub(super) fn starts(
        &self,
        site: SiteKey,
        behind: AttemptKey,
        line: &[TaskKey],
        lent: &[AttemptKey],
    ) -> Vec<Ahead> {
        if !self.runs(site, behind) {
            return Vec::new();
        }
        if !lent.is_empty() {
            let offered = |attempt: &&AttemptKey| {
                self.placement.stage_of(**attempt) == Some((site, Stage::Offered))
            };
            let previews = lent.iter().take_while(offered);
            let preview = |lent: &AttemptKey| self.graph().preview(lent.task, lent.number);
            return previews.map_while(preview).take(STARTS_MAX).collect();
        }
        let mut tasks: Vec<TaskKey> = std::iter::once(behind.task).chain(line.to_vec()).collect();
        let mut starts = Vec::new();
        if self.has_held() {
            return starts;
        }
        while tasks.len() <= STARTS_MAX
            && let Some(ahead) = self.graph().ahead(&tasks)
        {
            tasks.push(ahead.assignment.task);
            starts.push(ahead);
        }
        starts
    }

    /// Of the starts for a worker that keeps strands those that hold none of them up: nothing
    /// follows a task whose end resumes a strand, and none has a limit for which its worker may be
    /// killed.
    pub(super) fn clear_of_strands(
        &self,
        behind: AttemptKey,
        line: &[TaskKey],
        mut starts: Vec<Ahead>,
    ) -> Vec<Ahead> {
        let resumes = |task: &TaskKey| self.graph().end_resumes_copy(*task);
        if resumes(&behind.task) || line.iter().any(resumes) {
            return Vec::new();
        }
        let is_limited = |ahead: &Ahead| ahead.assignment.descriptor.options.is_limited();
        let unlimited = starts.iter().position(is_limited);
        starts.truncate(unlimited.unwrap_or(starts.len()));
        let waking = starts
            .iter()
            .position(|ahead| resumes(&ahead.assignment.task));
        starts.truncate(waking.map_or(starts.len(), |waking| waking + 1));
        starts
    }
}

/// The attempt whose act an event is; none for what only the home may say.
fn speaker(event: &graph::Event) -> Option<AttemptKey> {
    use graph::Event;
    match event {
        Event::TaskStepped { task, attempt, .. }
        | Event::TaskBlocked { task, attempt, .. }
        | Event::TaskWatched { task, attempt, .. }
        | Event::TaskFinished { task, attempt, .. }
        | Event::TaskTailSpawned { task, attempt, .. }
        | Event::TaskFailed { task, attempt, .. }
        | Event::TaskLost { task, attempt, .. }
        | Event::TaskRecalled { task, attempt } => Some(AttemptKey {
            task: *task,
            number: *attempt,
        }),
        Event::RootSubmitted { .. }
        | Event::TaskPlaced { .. }
        | Event::EngineLost { .. }
        | Event::FilesLost { .. }
        | Event::ContinuationLost { .. }
        | Event::CancelRequested { .. }
        | Event::JobCancelled { .. }
        | Event::Ticked
        | Event::TaskRefused { .. }
        | Event::TaskRolledBack { .. }
        | Event::ResultFound { .. }
        | Event::ResultKnown { .. }
        | Event::ResultMissing { .. } => None,
    }
}

/// Whether nothing of the attempt remains after that event.
fn ends_attempt(event: &graph::Event) -> bool {
    use graph::Event;
    matches!(
        event,
        Event::TaskFinished { .. }
            | Event::TaskTailSpawned { .. }
            | Event::TaskFailed { .. }
            | Event::TaskLost { .. }
    )
}
