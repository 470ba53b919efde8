//! The critical path of a run, and how long the run would have taken with unlimited cores.
//!
//! Both follow what tasks waited for. It does not know functions, nor how what a task waited for is
//! found. Read next: `families`, then `tables`.

use crate::course::{Course, Doing, Phase};
use crate::families::Families;

/// Steps that a path is followed back at most.
const STEPS_MAX: usize = 200_000;

/// A part of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The place of the task among all courses.
    pub task: usize,
    /// What it did. A wait means that what it waited for is not recorded.
    pub doing: Doing,
    /// From when, in microseconds since the run began.
    pub from: u64,
    /// Until when.
    pub to: u64,
}

/// The chain of phases that led to the last end, in the order of time: none of them could have been
/// shorter without the run being shorter.
pub fn critical(courses: &[Course<'_>], families: &Families) -> Vec<Step> {
    let last = (0..courses.len()).max_by_key(|place| courses[*place].end());
    let mut place = last.map(|task| (task, courses[task].end()));
    let mut steps = Vec::new();
    while let Some((task, until)) = place
        && steps.len() < STEPS_MAX
    {
        place = match phase_before(&courses[task], until) {
            Some(phase) => Some(step_back(courses, families, task, phase, &mut steps)),
            None => courses[task].parent.map(|parent| {
                let spawned = courses[task].spawned.min(until);
                (parent, spawned)
            }),
        };
    }
    steps.reverse();
    steps
}

/// The phase in which a task is just before `until`, up to there.
fn phase_before(course: &Course<'_>, until: u64) -> Option<Phase> {
    let end = course.phases.partition_point(|phase| phase.from < until);
    let phase = *course.phases[..end].last()?;
    let to = phase.to.min(until);
    Some(Phase { to, ..phase })
}

/// Adds what a phase adds to the path, and gives the task and the time from which it came.
fn step_back(
    courses: &[Course<'_>],
    families: &Families,
    task: usize,
    phase: Phase,
    steps: &mut Vec<Step>,
) -> (usize, u64) {
    let Phase { doing, from, to } = phase;
    let cause = match doing {
        Doing::Run | Doing::Queue => None,
        Doing::Wait => families.cause(courses, task, &phase),
    };
    let (next, began) = match cause.map(|cause| (cause, courses[cause].end())) {
        Some((cause, end)) if (from + 1..=to).contains(&end) => ((cause, end), end),
        _ => ((task, from), from),
    };
    if began < to {
        let step = Step {
            task,
            doing,
            from: began,
            to,
        };
        steps.push(step);
    }
    next
}

/// Where a task is in the run with unlimited cores.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// When its present phase began in the recorded run, and what it does in it.
    from: u64,
    doing: Option<Doing>,
    /// When that phase would have begun.
    would_be: u64,
}

impl Clock {
    /// When the task would have come to where it was at a recorded time.
    fn at(&self, recorded: u64) -> u64 {
        match self.doing {
            Some(Doing::Run) => self.would_be + recorded.saturating_sub(self.from),
            Some(Doing::Queue | Doing::Wait) | None => self.would_be,
        }
    }
}

/// What changes in the recorded run, in the order in which changes of one time happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    RunEnded(usize),
    Spawned,
    QueueEnded(usize),
    WaitEnded(usize),
}

/// Microseconds that the run would have taken if every task had run as soon as it was ready: an
/// estimate, since tasks that run side by side slow each other down.
pub fn with_unlimited_cores(courses: &[Course<'_>], families: &Families) -> u64 {
    let mut clocks = vec![Clock::default(); courses.len()];
    for (at, change, task) in changes(courses) {
        let course = &courses[task];
        let clock = clocks[task];
        clocks[task] = match change {
            Change::Spawned => Clock {
                from: at,
                doing: course.phases.first().map(|phase| phase.doing),
                would_be: course.parent.map_or(at, |parent| clocks[parent].at(at)),
            },
            Change::RunEnded(phase) => next(course, phase, clock.at(at)),
            Change::QueueEnded(phase) => next(course, phase, clock.would_be),
            Change::WaitEnded(phase) => {
                let wait = course.phases[phase];
                let cause = families.cause(courses, task, &wait).into_iter();
                let children = match wait.from == course.spawned {
                    true => &[],
                    false => families.ended_during(task, &wait),
                };
                let causes = cause.chain(children.iter().map(|(_, child)| *child));
                let ready = causes.map(|cause| clocks[cause].would_be).max();
                next(course, phase, clock.would_be.max(ready.unwrap_or(0)))
            }
        };
    }
    clocks.iter().map(|clock| clock.would_be).max().unwrap_or(0)
}

/// The clock of a task at the end of a phase.
fn next(course: &Course<'_>, phase: usize, would_be: u64) -> Clock {
    Clock {
        from: course.phases[phase].to,
        doing: course.phases.get(phase + 1).map(|phase| phase.doing),
        would_be,
    }
}

fn changes(courses: &[Course<'_>]) -> Vec<(u64, Change, usize)> {
    let mut changes = Vec::new();
    for (task, course) in courses.iter().enumerate() {
        changes.push((course.spawned, Change::Spawned, task));
        for (index, phase) in course.phases.iter().enumerate() {
            let change = match phase.doing {
                Doing::Run => Change::RunEnded(index),
                Doing::Queue => Change::QueueEnded(index),
                Doing::Wait => Change::WaitEnded(index),
            };
            changes.push((phase.to, change, task));
        }
    }
    changes.sort_unstable();
    changes
}

#[cfg(test)]
mod tests {
    use ciel_graph::Moment;
    use ciel_view::records::TaskRecord;

    use super::*;
    use crate::course::courses;
    use crate::samples::{run, task};

    /// A root that spawns two tasks of 10 µs at once and waits for both, on one core.
    fn two_on_one_core() -> Vec<TaskRecord> {
        let root = [
            (0, Moment::Spawned),
            (0, Moment::Ready),
            (0, Moment::Started),
            (2, Moment::Suspended),
            (21, Moment::Woken),
            (21, Moment::Resumed),
            (25, Moment::Finished),
        ];
        let second = [
            (1, Moment::Spawned),
            (1, Moment::Ready),
            (11, Moment::Started),
            (21, Moment::Finished),
        ];
        vec![
            task("root", 1, None, &root),
            run("part", 2, Some(("root", 1)), 1, 11),
            task("part", 3, Some(("root", 1)), &second),
        ]
    }

    fn step(task: usize, doing: Doing, from: u64, to: u64) -> Step {
        Step {
            task,
            doing,
            from,
            to,
        }
    }

    #[test]
    fn path_leads_through_the_child_that_finished_last_and_its_wait_for_a_slot() {
        let tasks = two_on_one_core();
        let courses = courses(&tasks, 25);
        let steps = critical(&courses, &Families::new(&courses));
        let expected = [
            step(0, Doing::Run, 0, 1),
            step(2, Doing::Queue, 1, 11),
            step(2, Doing::Run, 11, 21),
            step(0, Doing::Run, 21, 25),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn path_covers_the_run_without_gaps() {
        let tasks = two_on_one_core();
        let courses = courses(&tasks, 25);
        let steps = critical(&courses, &Families::new(&courses));
        assert_eq!((steps[0].from, steps[steps.len() - 1].to), (0, 25));
        assert!(steps.windows(2).all(|pair| pair[0].to == pair[1].from));
    }

    #[test]
    fn with_unlimited_cores_nobody_waits_for_a_slot() {
        let tasks = two_on_one_core();
        let courses = courses(&tasks, 25);
        // The second part would run from 1 to 11, so the root would continue at 11 for 4 more.
        assert_eq!(with_unlimited_cores(&courses, &Families::new(&courses)), 15);
    }

    #[test]
    fn task_that_needs_its_sibling_starts_after_it_with_any_number_of_cores() {
        let second = [
            (1, Moment::Spawned),
            (11, Moment::Ready),
            (11, Moment::Started),
            (21, Moment::Finished),
        ];
        let mut tasks = two_on_one_core();
        tasks[2] = task("part", 3, Some(("root", 1)), &second);
        let courses = courses(&tasks, 25);
        let families = Families::new(&courses);
        assert_eq!(with_unlimited_cores(&courses, &families), 25);
        let steps = critical(&courses, &families);
        assert_eq!(steps[1], step(1, Doing::Run, 1, 11));
    }

    #[test]
    fn wait_for_what_is_not_recorded_is_a_step_of_its_own() {
        let root = [
            (0, Moment::Started),
            (2, Moment::Suspended),
            (9, Moment::Woken),
            (9, Moment::Resumed),
            (10, Moment::Finished),
        ];
        let tasks = [task("root", 1, None, &root)];
        let courses = courses(&tasks, 10);
        let steps = critical(&courses, &Families::new(&courses));
        assert_eq!(steps[1], step(0, Doing::Wait, 2, 9));
    }
}
