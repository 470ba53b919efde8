//! Tasks folded by function: how many, how long, who spawned whom.
//!
//! It does not know the order of time. Read next: `tables`.

use std::collections::{BTreeMap, HashMap};

use ciel_view::records::{CountsRecord, FunctionRecord};

use crate::course::{Course, Doing};

/// What is known of the tasks of a function.
#[derive(Debug, Default)]
pub struct Function {
    /// Its name.
    pub what: String,
    /// The executor of its tasks; empty if none of them is recorded.
    pub executor: String,
    /// How many there were, exact.
    pub counts: FunctionRecord,
    /// For how long each recorded task ran, in microseconds, in ascending order.
    pub ran_us: Vec<u64>,
    /// For how long recorded tasks waited for a slot, in microseconds.
    pub queued_us: u64,
    /// Recorded tasks that took the result that an earlier run kept.
    pub kept: u64,
    /// Why recorded tasks took none though one was looked up, with how many of them did so.
    pub reruns: BTreeMap<String, u64>,
    /// The most memory that the process of a recorded task had, in bytes; 0 if that is not known.
    pub memory_bytes: u64,
}

impl Function {
    /// For how long its recorded tasks ran, in microseconds.
    pub fn total_us(&self) -> u64 {
        self.ran_us.iter().sum()
    }

    /// The time below which a share of its recorded tasks ran, from 0 to 1.
    pub fn quantile_us(&self, share: f64) -> u64 {
        let place = (share * self.ran_us.len() as f64).ceil() as usize;
        let place = place.saturating_sub(1);
        self.ran_us.get(place).copied().unwrap_or(0)
    }
}

/// All functions of a run, those that ran longest first.
#[derive(Debug)]
pub struct Functions {
    /// One for each name.
    pub all: Vec<Function>,
    /// How often recorded tasks of one function spawned recorded tasks of another, by places in
    /// `all`.
    pub edges: BTreeMap<(usize, usize), u64>,
    /// The place in `all` of each recorded task's function, in the order of the courses.
    pub of: Vec<usize>,
}

impl Functions {
    /// Those of all courses, and of tasks that are counted only.
    pub fn new(courses: &[Course<'_>], counts: Option<&CountsRecord>) -> Functions {
        let mut all: HashMap<&str, Function> = HashMap::new();
        for record in counts.iter().flat_map(|counts| &counts.functions) {
            let function = all.entry(&record.what).or_default();
            function.counts = record.clone();
        }
        for course in courses {
            add(all.entry(&course.record.what).or_default(), course);
        }
        let mut all: Vec<Function> = all
            .into_iter()
            .map(|(what, function)| finished(what, function))
            .collect();
        all.sort_by(|one, two| {
            let key =
                |one: &Function| std::cmp::Reverse((one.total_us(), one.counts.counts.spawned));
            key(one)
                .cmp(&key(two))
                .then_with(|| one.what.cmp(&two.what))
        });
        let places: HashMap<&str, usize> = all
            .iter()
            .enumerate()
            .map(|(place, function)| (function.what.as_str(), place))
            .collect();
        let of = courses
            .iter()
            .map(|course| places[course.record.what.as_str()]);
        let of: Vec<usize> = of.collect();
        let edges = edges(courses, &of);
        Functions { all, edges, of }
    }
}

fn add(function: &mut Function, course: &Course<'_>) {
    let record = course.record;
    if function.executor.is_empty() {
        function.executor.clone_from(&record.executor);
    }
    if course.runs().next().is_some() || record.ran_us > 0 {
        function.ran_us.push(record.ran_us);
    }
    function.memory_bytes = function.memory_bytes.max(record.memory_bytes.unwrap_or(0));
    function.kept += u64::from(course.was_kept());
    if let Some(reason) = &record.rerun {
        *function.reruns.entry(reason.clone()).or_default() += 1;
    }
    let queued = course.phases.iter();
    let queued = queued.filter(|phase| phase.doing == Doing::Queue);
    function.queued_us += queued.map(|phase| phase.length()).sum::<u64>();
}

fn finished(what: &str, mut function: Function) -> Function {
    function.what = what.to_string();
    function.counts.what = what.to_string();
    function.ran_us.sort_unstable();
    function
}

fn edges(courses: &[Course<'_>], of: &[usize]) -> BTreeMap<(usize, usize), u64> {
    let mut edges = BTreeMap::new();
    for (place, course) in courses.iter().enumerate() {
        if let Some(parent) = course.parent {
            *edges.entry((of[parent], of[place])).or_default() += 1;
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::courses;
    use crate::samples::run;

    #[test]
    fn functions_are_in_the_order_of_their_time_with_their_quantiles() {
        let root = Some(("root", 1));
        let tasks = [
            run("root", 1, None, 0, 5),
            run("part", 2, root, 1, 11),
            run("part", 3, root, 1, 31),
            run("part", 4, root, 1, 21),
        ];
        let courses = courses(&tasks, 31);
        let functions = Functions::new(&courses, None);
        let names: Vec<&str> = functions.all.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(names, ["part", "root"]);
        let part = &functions.all[0];
        assert_eq!(part.total_us(), 60);
        assert_eq!(
            [0.5, 0.95, 1.0].map(|share| part.quantile_us(share)),
            [20, 30, 30]
        );
        assert_eq!(functions.edges, BTreeMap::from([((1, 0), 3)]));
    }

    #[test]
    fn function_of_which_nothing_is_recorded_is_counted() {
        let counted = FunctionRecord {
            what: "leaf".to_string(),
            in_place: 7,
            ..FunctionRecord::default()
        };
        let counts = CountsRecord {
            functions: vec![counted],
        };
        let functions = Functions::new(&[], Some(&counts));
        assert_eq!(functions.all[0].counts.in_place, 7);
        assert_eq!(functions.all[0].quantile_us(0.5), 0);
    }
}
