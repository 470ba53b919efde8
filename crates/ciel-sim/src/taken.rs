//! A list of references that a task takes one after the other, as script and oracle keep it.
//!
//! It does not know how waits end. Read next: `script`.

use ciel_model::WaitEnd;

/// The last list of which a task waited for the first: its references, by the task's numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    among: Vec<usize>,
    given: Vec<bool>,
}

impl Taken {
    /// What the task was not given.
    pub(crate) fn left(&self) -> Vec<usize> {
        let all = self.among.iter().zip(&self.given);
        let left = all.filter(|(_, given)| !**given);
        left.map(|(local, _)| *local).collect()
    }

    /// All of them, by place.
    pub(crate) fn among(&self) -> &[usize] {
        &self.among
    }

    /// A wait has ended: for the rest of this list, or for the first of a new one.
    pub(crate) fn end(&mut self, ended: &WaitEnd, listed: Vec<usize>) {
        if ended.cancels {
            return;
        }
        if !ended.rest {
            self.given = vec![false; listed.len()];
            self.among = listed;
        }
        for place in &ended.places {
            self.given[*place as usize] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_is_taken_from_the_list_and_a_new_list_begins_anew() {
        let ended = |places: &[u32], rest| WaitEnd {
            places: places.to_vec(),
            timed_out: false,
            rest,
            cancels: false,
        };
        let mut taken = Taken::default();
        assert_eq!(taken.left(), []);
        taken.end(&ended(&[1], false), vec![4, 5, 6]);
        assert_eq!(taken.left(), [4, 6]);
        taken.end(&ended(&[2], true), Vec::new());
        assert_eq!((taken.left(), taken.among()), (vec![4], &[4, 5, 6][..]));
        taken.end(&ended(&[], false), vec![4]);
        assert_eq!(taken.left(), [4]);
    }
}
