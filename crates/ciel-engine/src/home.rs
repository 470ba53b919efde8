//! The half of the engine that keeps what is recorded: the coordinator, and which site has what.
//!
//! It offers ready tasks to sites, and takes from each site only what concerns an attempt that it
//! has given to that site; a site's message about any other attempt is stale and changes nothing.
//! It knows slots, queues and workers of a site only by the site's messages. Read next: `message`,
//! then `home/placement`.

mod acts;
mod backpressure;
mod holds;
mod locality;
mod pauses;
mod placement;
mod pressed;
mod room;
mod spawners;
mod translate;

use ciel_coordinator::Coordinator;
use ciel_graph::{self as graph, Graph};
use ciel_model::{Micros, SegmentedQueue, TaskKey};
use ciel_node::{AttemptKey, Capacity, Slot};

use crate::event::Effect;
use crate::message::{Offer, SiteKey, ToHome, ToSite};
pub use backpressure::Pressure;
use holds::Holds;
use locality::Locality;
use placement::{After, Placement, Stage};
pub use pressed::SerialUse;
use room::Room;
pub use spawners::Pausing;
use spawners::Spawners;
pub(crate) use translate::effect_of;
use translate::{Translated, translate};

/// What the home wants done, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum FromHome {
    /// Send that to a site.
    Send(SiteKey, ToSite),
    /// Have that done where the home is.
    Do(Effect),
}

/// The half of the engine that all sites of a run share.
#[derive(Debug)]
pub struct Home {
    state: Coordinator,
    placement: Placement,
    locality: Locality,
    actions: Vec<graph::Action>,
    /// The attempt that spawns a task which has begun inside it, until that is offered.
    begun_in: Option<AttemptKey>,
    /// Which tasks are held, if output that waits behind the frontier is bounded.
    holds: Option<Box<Holds>>,
    /// What the run's files take of the disk, if that is bounded.
    room: Option<Box<Room>>,
    /// Which strands are paused, if the number of unfinished children is bounded.
    spawners: Option<Box<Spawners>>,
    /// The attempt that waits for nothing in this event.
    asks: Option<AttemptKey>,
}

impl Home {
    /// A home with that state, and no site yet.
    pub fn new(state: Coordinator) -> Home {
        Home {
            state,
            placement: Placement::default(),
            locality: Locality::default(),
            actions: Vec::new(),
            begun_in: None,
            holds: None,
            room: None,
            spawners: None,
            asks: None,
        }
    }

    /// The same with a site that has joined. Ready tasks of a recorded state are not offered to it:
    /// by the first event, everything that ran is lost.
    pub fn with_site(state: Coordinator, site: SiteKey, capacity: Capacity) -> Home {
        let mut home = Home::new(state);
        home.placement.add_site(site, capacity);
        home
    }

    /// Takes an event that comes from no site.
    pub fn tell(&mut self, now: Micros, event: graph::Event, out: &mut SegmentedQueue<FromHome>) {
        let mut actions = std::mem::take(&mut self.actions);
        self.state.tell(now, event, &mut actions);
        for action in actions.drain(..) {
            self.perform(action, out);
        }
        self.actions = actions;
        self.placement.forget_ended();
    }

    /// Takes a message of a site.
    pub fn receive(
        &mut self,
        now: Micros,
        site: SiteKey,
        message: ToHome,
        out: &mut SegmentedQueue<FromHome>,
    ) {
        match message {
            ToHome::Joined { capacity } => self.on_joined(site, capacity, out),
            ToHome::Placed { attempt, slot } => self.on_placed(now, site, attempt, slot, out),
            ToHome::Acted(event) => self.on_acted(now, site, event, out),
            ToHome::SpawnedBegun(event) => self.on_spawned_begun(now, site, event, out),
            ToHome::Wrote {
                attempt,
                after,
                bytes,
            } => self.on_wrote(now, site, attempt, (after, &bytes), out),
            ToHome::TooSmall { attempt, lacking } => {
                self.on_too_small(now, site, attempt, &lacking, out)
            }
            ToHome::ContinuationLost { task } => self.on_continuation_lost(now, site, task, out),
            ToHome::WorkerCaches {
                worker,
                held,
                dropped,
            } => self.on_caches((site, worker), &held, &dropped),
            ToHome::CachesLost { worker } => self.locality.lose_worker((site, worker)),
            ToHome::MayPrefetch {
                behind,
                line,
                lent,
                keeps_strands,
            } => {
                let mut starts = self.starts(site, behind, &line, &lent);
                if keeps_strands {
                    starts = self.clear_of_strands(behind, &line, starts);
                }
                out.push_back(FromHome::Send(site, ToSite::Prefetch { behind, starts }));
            }
        }
    }

    fn perform(&mut self, action: graph::Action, out: &mut SegmentedQueue<FromHome>) {
        if let graph::Action::FewChildren { strand } = action {
            return self.on_few_children(strand, out);
        }
        let parked = |attempt: AttemptKey| self.graph().keeps_live_copy(attempt.task);
        let slot_of = |attempt| self.placement.slot_of(attempt);
        match translate(action, parked, slot_of) {
            Translated::Message(_, ToSite::Offer(offer)) => self.offer_or_hold(offer, out),
            Translated::Message(attempt, message) => {
                self.note_for_held(attempt, &message);
                self.note_for_paused(attempt, &message);
                let stage = stage_after(&message);
                self.send(attempt, message, out);
                self.placement.advance(attempt, stage);
            }
            Translated::Effect(effect) => {
                self.note_effect(&effect);
                let is_last = matches!(effect, Effect::JobEnded(_));
                out.push_back(FromHome::Do(effect));
                let sites = self.placement.sites().filter(|_| is_last);
                out.extend(sites.map(|site| FromHome::Send(site, ToSite::JobEnded)));
            }
        }
    }

    /// To the site that has the attempt; one that no site has any more receives nothing.
    fn send(&self, attempt: AttemptKey, message: ToSite, out: &mut SegmentedQueue<FromHome>) {
        if let Some(site) = self.placement.site_of(attempt) {
            out.push_back(FromHome::Send(site, message));
        }
    }

    /// One that has begun inside another, or had its turn, is not held.
    fn offer_or_hold(&mut self, mut offer: Box<Offer>, out: &mut SegmentedQueue<FromHome>) {
        let is_begun = |parent: AttemptKey| self.is_child(offer.attempt.task, parent.task);
        if self.begun_in.is_some_and(is_begun) {
            offer.begun_in = self.begun_in.take();
        }
        if let Some(offer) = self.pause(offer).and_then(|offer| self.hold(offer)) {
            self.offer(offer, out);
        }
    }

    /// A task that no site can take waits for the next one that joins.
    fn offer(&mut self, offer: Box<Offer>, out: &mut SegmentedQueue<FromHome>) {
        let inputs = self.files_to_weigh(offer.attempt.task);
        let weight = |site| self.locality.weight(site, &inputs);
        if let Some(site) = self.placement.choose(&offer, weight) {
            out.push_back(FromHome::Send(site, ToSite::Offer(offer)));
        }
    }
}

/// How far an attempt has come when its site has that message.
fn stage_after(message: &ToSite) -> After {
    match message {
        ToSite::Withdraw { .. } | ToSite::Suspend { parked: false, .. } => After::Gone,
        ToSite::Suspend { parked: true, .. } => After::At(Stage::Parked),
        ToSite::Stop { .. } => After::Over,
        ToSite::Offer(_)
        | ToSite::Relabel { .. }
        | ToSite::ReaderWaits { .. }
        | ToSite::Begin(_)
        | ToSite::Refuse { .. }
        | ToSite::Prefetch { .. }
        | ToSite::Continue { .. }
        | ToSite::Recalled { .. }
        | ToSite::Notify { .. }
        | ToSite::ReadOn { .. }
        | ToSite::JobEnded => After::Same,
    }
}

/// What may be asked.
impl Home {
    /// What survives the process: graph and ordered output.
    pub fn state(&self) -> &Coordinator {
        &self.state
    }

    /// The same, for the threads that write output, release it, or keep the records.
    pub fn state_mut(&mut self) -> &mut Coordinator {
        &mut self.state
    }

    /// The task graph.
    pub fn graph(&self) -> &Graph {
        self.state.graph()
    }

    /// When [`graph::Event::Ticked`] is wanted at the latest.
    pub fn next_deadline(&self) -> Option<Micros> {
        let look = self.holds.as_ref().and_then(|holds| holds.next_look());
        self.graph().next_deadline().into_iter().chain(look).min()
    }

    /// The site that has a task, and its slot there if it runs.
    pub fn location(&self, task: TaskKey) -> Option<(SiteKey, Option<Slot>)> {
        self.placement.location(task)
    }

    /// Asserts all invariants, those of the graph as well; linear in what it holds.
    pub fn check_all(&self) {
        self.graph().check_all();
        self.placement.check(self.graph());
        self.locality.check(|site| self.placement.knows(site));
    }
}
