//! What tasks waited for, as far as their times tell.
//!
//! The records say when a wait ended, not with what. A wait ends in the same event as what it waits
//! for, so at the same time. It does not know what follows from that. Read next: `path`.

use std::collections::HashMap;

use crate::course::{Course, Phase};

/// How far a task is followed to those that spawned it.
const DEPTH_MAX: usize = 100_000;

/// Tasks that ended at one time of which it is asked whether a wait ended with them.
const CANDIDATES_MAX: usize = 64;

/// Who spawned whom, and what ended when.
#[derive(Debug)]
pub struct Families {
    /// For each task, when its children ended, and which, in the order in which they did.
    children: Vec<Vec<(u64, usize)>>,
    /// The tasks that ended at a time.
    ended: HashMap<u64, Vec<usize>>,
}

impl Families {
    /// Those of all courses.
    pub fn new(courses: &[Course<'_>]) -> Families {
        let mut children = vec![Vec::new(); courses.len()];
        let mut ended: HashMap<u64, Vec<usize>> = HashMap::new();
        for (place, course) in courses.iter().enumerate() {
            if !course.has_ended() {
                continue;
            }
            ended.entry(course.end()).or_default().push(place);
            if let Some(parent) = course.parent {
                children[parent].push((course.end(), place));
            }
        }
        children.iter_mut().for_each(|all| all.sort_unstable());
        Families { children, ended }
    }

    /// The task with whose end a wait of `task` ended: one that descends from `task` or, if the
    /// wait was for inputs, from the task that spawned it.
    pub fn cause(&self, courses: &[Course<'_>], task: usize, wait: &Phase) -> Option<usize> {
        let is_for_inputs = wait.from == courses[task].spawned;
        let above = match is_for_inputs {
            true => courses[task].parent?,
            false => task,
        };
        let at_its_end = self.ended.get(&wait.to).map_or(&[][..], Vec::as_slice);
        let mut candidates = at_its_end.iter().rev().take(CANDIDATES_MAX);
        let exact = candidates.find(|one| **one != task && descends(courses, **one, above));
        exact.copied().or_else(|| {
            let (_, last) = *self.ended_during(above, wait).last()?;
            (last != task).then_some(last)
        })
    }

    /// The children of a task that ended during a phase, in the order in which they did.
    pub fn ended_during(&self, parent: usize, phase: &Phase) -> &[(u64, usize)] {
        let all = &self.children[parent];
        let first = all.partition_point(|(at, _)| *at <= phase.from);
        let end = all.partition_point(|(at, _)| *at <= phase.to);
        &all[first..end.max(first)]
    }
}

fn descends(courses: &[Course<'_>], task: usize, above: usize) -> bool {
    let mut place = task;
    for _ in 0..DEPTH_MAX {
        match courses[place].parent {
            Some(parent) if parent == above => return true,
            Some(parent) => place = parent,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use ciel_graph::Moment;

    use super::*;
    use crate::course::courses;
    use crate::samples::{run, task};

    #[test]
    fn wait_ends_with_the_descendant_that_ended_at_that_time() {
        let handed_over = [
            (1, Moment::Spawned),
            (1, Moment::Started),
            (4, Moment::TailSpawned),
        ];
        let waits = [
            (0, Moment::Started),
            (2, Moment::Suspended),
            (20, Moment::Woken),
            (20, Moment::Resumed),
            (30, Moment::Finished),
        ];
        let tasks = [
            task("root", 1, None, &waits),
            task("loop", 2, Some(("root", 1)), &handed_over),
            run("loop", 3, Some(("loop", 2)), 4, 20),
            run("other", 4, None, 4, 20),
        ];
        let courses = courses(&tasks, 30);
        let families = Families::new(&courses);
        let wait = courses[0].phases[1];
        assert_eq!((wait.from, wait.to), (2, 20));
        assert_eq!(families.cause(&courses, 0, &wait), Some(2));
    }

    #[test]
    fn wait_whose_cause_ended_at_no_such_time_ended_with_the_last_child() {
        let waits = [
            (0, Moment::Started),
            (2, Moment::Suspended),
            (21, Moment::Woken),
        ];
        let tasks = [
            task("root", 1, None, &waits),
            run("part", 2, Some(("root", 1)), 1, 9),
            run("part", 3, Some(("root", 1)), 1, 20),
        ];
        let courses = courses(&tasks, 30);
        let families = Families::new(&courses);
        assert_eq!(families.cause(&courses, 0, &courses[0].phases[1]), Some(2));
    }
}
