//! How a script waits, and what it receives when the wait is over.
//!
//! It does not know when that is. Read next: `taken`, for lists of references.

use ciel_graph::{Until, Wait};
use ciel_model::{ActionKey, Handle, Resolution, WaitEnd};

use super::{Move, Script};
use crate::in_place::{Known, Local};
use crate::program::saw_places;

impl Script {
    /// Every other wait for one reference takes what comes with it.
    pub(super) fn plain_wait(&self) -> Wait {
        match self.next_action % 2 {
            0 => Wait::ALL,
            _ => Wait {
                until: Until::AllAndLater,
                ..Wait::ALL
            },
        }
    }

    /// Values came that it has not asked for yet.
    fn answer_later(&mut self, answers: Vec<(Handle, Resolution)>) {
        for (handle, resolution) in answers {
            let known = self.read(resolution);
            let is_it = |local: &Local| matches!(local, Local::Told(told) if *told == handle);
            if let Some(local) = self.locals.iter().position(is_it) {
                self.known.entry(local).or_insert(known);
            }
        }
    }

    /// What it waited for is resolved, or a part of it.
    pub fn answer(&mut self, answers: Vec<(Handle, Resolution)>, ended: Option<WaitEnd>) {
        if std::mem::take(&mut self.asks_for_room) {
            return assert!(answers.is_empty() && ended.is_none());
        }
        let raced = self.race.as_ref().map(|(among, until, _)| match until {
            Until::Rest => self.taken.among().to_vec(),
            Until::All | Until::AllAndLater | Until::First | Until::Cancelled => among.clone(),
        });
        let places = ended.as_ref().map_or(vec![0], |ended| ended.places.clone());
        let mut answers = answers;
        if raced.is_none() {
            self.answer_later(answers.drain(1.min(answers.len())..).collect());
        }
        assert_eq!(answers.len(), places.len(), "each place has its answer");
        for ((_, resolution), place) in answers.into_iter().zip(&places) {
            let known = self.read(resolution);
            let local = match (&raced, self.pending) {
                (Some(among), _) => among[*place as usize],
                (None, pending) => pending.expect("only a waiting script is answered").0,
            };
            if !self.known.get(&local).is_some_and(Known::is_from_here) {
                self.known.insert(local, known);
            }
        }
        self.told = raced.and(ended);
        self.follows |= self.told.as_ref().is_some_and(|ended| !ended.cancels);
    }

    /// The act in a race: waits, or records the answer.
    pub(super) fn go_on_racing(&mut self) -> Option<Move> {
        self.race.as_ref()?;
        let Some(ended) = self.told.take().or_else(|| self.recorded.pop_front()) else {
            return self.wait_in_race();
        };
        let (among, ..) = self.race.take()?;
        self.seen = saw_places(self.seen, &ended.places);
        self.taken.end(&ended, among);
        let action = self.take_action();
        self.races.push((action, ended));
        None
    }

    /// A list that the graph does not keep any more is listed again, as far as it is left.
    pub(super) fn wait_in_race(&mut self) -> Option<Move> {
        let (among, until, limit_us) = self.race.as_mut()?;
        if *until == Until::Rest && !self.follows {
            *until = Until::First;
        }
        let wait = Wait {
            until: *until,
            limit_us: *limit_us,
            at: ActionKey::action(self.next_action),
        };
        let listed = match until {
            Until::Rest => Vec::new(),
            Until::All | Until::AllAndLater | Until::First | Until::Cancelled => among.clone(),
        };
        let handles = listed.into_iter().map(|local| self.handle(local));
        Some(Move::Block(handles.collect(), wait))
    }

    pub(super) fn race(
        &mut self,
        among: Vec<usize>,
        until: Until,
        limit_us: Option<u64>,
    ) -> Option<Move> {
        let among: Vec<usize> = among.into_iter().filter(|one| self.has(*one)).collect();
        self.tell(&among);
        self.race = (!among.is_empty()).then_some((among, until, limit_us));
        self.queue.pop_front()
    }
}
