//! How many tasks of each function ran at each time of a run.
//!
//! It does not know how it is drawn. Read next: `chart`.

use crate::course::Course;

/// Tasks that ran at the same time, on average, for each part of a run and each group of functions.
#[derive(Debug, PartialEq)]
pub struct Activity {
    /// For each part of equal length, one number for each group.
    pub parts: Vec<Vec<f64>>,
}

impl Activity {
    /// That of all courses from 0 to `end` microseconds, in `parts` parts; `group` says to which of
    /// `groups` the task of a course belongs.
    pub fn new(
        courses: &[Course<'_>],
        end: u64,
        parts: usize,
        groups: usize,
        group: impl Fn(usize) -> usize,
    ) -> Activity {
        let width = (end as f64 / parts as f64).max(f64::MIN_POSITIVE);
        let mut sums = vec![vec![0.0; groups]; parts];
        for (place, course) in courses.iter().enumerate() {
            for phase in course.runs() {
                add(
                    &mut sums,
                    group(place),
                    width,
                    phase.from as f64,
                    phase.to as f64,
                );
            }
        }
        Activity { parts: sums }
    }

    /// The greatest number of tasks in any part.
    pub fn most(&self) -> f64 {
        let totals = self.parts.iter().map(|part| part.iter().sum());
        totals.fold(0.0, f64::max)
    }
}

fn add(sums: &mut [Vec<f64>], group: usize, width: f64, from: f64, to: f64) {
    let last = sums.len() - 1;
    let first = ((from / width) as usize).min(last);
    let end = ((to / width) as usize).min(last);
    for (index, sum) in sums.iter_mut().enumerate().take(end + 1).skip(first) {
        let begin = from.max(index as f64 * width);
        let until = to.min((index + 1) as f64 * width);
        sum[group] += (until - begin).max(0.0) / width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::courses;
    use crate::samples::run;

    #[test]
    fn task_counts_in_each_part_for_the_share_of_it_in_which_it_ran() {
        let tasks = [run("a", 1, None, 5, 25), run("b", 2, None, 10, 20)];
        let courses = courses(&tasks, 40);
        let activity = Activity::new(&courses, 40, 4, 2, |place| place);
        let expected = [[0.5, 0.0], [1.0, 1.0], [0.5, 0.0], [0.0, 0.0]];
        assert_eq!(activity.parts, expected);
        assert_eq!(activity.most(), 2.0);
    }
}
