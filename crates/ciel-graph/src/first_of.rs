//! A list of references that a task takes one after the other, each as soon as it is resolved.
//!
//! The task names the list once, with a wait for the first of it. From the second wait on the graph
//! keeps the list, between waits as well, so a list of n references costs n steps and not n². It
//! does not know whose list it is. Read next: `rest`.

use ciel_model::Handle;

/// The last list of which a task waited for the first.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct FirstOf {
    on: Vec<Handle>,
    /// By place: the task was given it.
    given: Vec<bool>,
    /// Objects know of the list.
    followed: bool,
    /// Places that are resolved and not given yet.
    arrived: Vec<u32>,
    /// Places that objects know of.
    left: u32,
}

impl FirstOf {
    pub(crate) fn new(on: &[Handle]) -> FirstOf {
        FirstOf {
            on: on.to_vec(),
            given: vec![false; on.len()],
            followed: false,
            arrived: Vec::new(),
            left: 0,
        }
    }

    /// Places that are followed and not resolved.
    pub(crate) fn left(&self) -> u32 {
        self.left
    }

    /// Whether anything is resolved that the task was not given.
    pub(crate) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.followed
    }

    /// Places that the task was not given, with their handles.
    pub(crate) fn rest(&self) -> Vec<(u32, Handle)> {
        let all = (0..).zip(self.on.iter().zip(&self.given));
        let rest = all.filter(|(_, (_, given))| !**given);
        rest.map(|(place, (handle, _))| (place, *handle)).collect()
    }

    /// The task was given these places.
    pub(crate) fn give(&mut self, places: &[u32]) {
        for place in places {
            self.given[*place as usize] = true;
        }
    }

    /// From now on objects know of `left` places; the others that were not given have `arrived`.
    pub(crate) fn follow(&mut self, arrived: Vec<u32>, left: u32) {
        (self.followed, self.arrived, self.left) = (true, arrived, left);
    }

    /// The object at that place is resolved.
    pub(crate) fn arrive(&mut self, place: u32) {
        self.arrived.push(place);
        self.left -= 1;
    }

    /// What is resolved, for the task: places in order, and their handles.
    pub(crate) fn take_arrived(&mut self) -> (Vec<u32>, Vec<Handle>) {
        let mut places = std::mem::take(&mut self.arrived);
        places.sort_unstable();
        self.give(&places);
        let handles = places.iter().map(|place| self.on[*place as usize]);
        let handles = handles.collect();
        (places, handles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_taken_once_in_the_order_of_the_list() {
        let mut list = FirstOf::new(&[Handle(7), Handle(8), Handle(9), Handle(7)]);
        list.give(&[1]);
        let rest: Vec<u32> = list.rest().iter().map(|(place, _)| *place).collect();
        assert_eq!(rest, [0, 2, 3]);
        list.follow(vec![2], 2);
        list.arrive(0);
        assert_eq!((list.left(), list.has_arrived()), (1, true));
        let taken = list.take_arrived();
        assert_eq!(taken, (vec![0, 2], vec![Handle(7), Handle(9)]));
        assert_eq!(list.rest(), [(3, Handle(7))]);
        assert_eq!(list.take_arrived(), (Vec::new(), Vec::new()));
    }
}
