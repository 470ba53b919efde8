//! The tables of the page: functions, the critical path, the slowest and the failed tasks.
//!
//! It does not know where a table stands. Read next: `page`.

use std::collections::BTreeMap;

use ciel_view::records::TaskState;

use crate::chart::{COLOURS, histogram};
use crate::course::{Course, Doing};
use crate::functions::{Function, Functions};
use crate::path::Step;
use crate::words::{counted, duration, escaped, grouped, shortened, size};

/// What tasks wrote apart from the ordered output, by label.
pub type Logs = BTreeMap<String, String>;

/// Functions in the table; the others are counted beneath it.
const FUNCTIONS_MAX: usize = 60;

/// Slowest tasks that are listed.
const SLOWEST_MAX: usize = 20;

/// Failed tasks that are listed.
const FAILED_MAX: usize = 50;

/// Characters of a failure, and of what a failed task wrote.
const TEXT_CHARACTERS_MAX: usize = 8000;

/// Characters of a name.
const NAME_CHARACTERS_MAX: usize = 48;

/// The class of a function's colour, by its place.
pub fn colour(place: usize) -> String {
    format!("c{}", place.min(COLOURS - 1))
}

/// All functions: how many tasks, how long, how distributed.
pub fn functions(functions: &Functions) -> String {
    let total: u64 = functions.all.iter().map(Function::total_us).sum();
    let mut table = String::from(
        "<div class=\"scroll\"><table><tr><th>function</th><th class=\"number\">tasks</th>\
         <th class=\"number\">in place</th><th class=\"number\">kept</th>\
         <th class=\"number\">failed</th><th class=\"number\">ran, in all</th>\
         <th class=\"number\">share</th>\
         <th class=\"number\">median</th><th class=\"number\">95 %</th>\
         <th class=\"number\">longest</th><th class=\"number\">queued</th>\
         <th class=\"number\">memory</th><th>distribution of running times</th></tr>",
    );
    for (place, function) in functions.all.iter().enumerate().take(FUNCTIONS_MAX) {
        table.push_str(&function_row(place, function, total));
    }
    table.push_str("</table></div>");
    let more = functions.all.len().saturating_sub(FUNCTIONS_MAX);
    if more > 0 {
        let more = counted(more as u64, "more function");
        table.push_str(&format!(
            "<p class=\"soft\">and {more}, which ran for less.</p>"
        ));
    }
    table
}

fn function_row(place: usize, function: &Function, total: u64) -> String {
    let counts = &function.counts.counts;
    let recorded = function.ran_us.len() as u64;
    let share = 100.0 * function.total_us() as f64 / total.max(1) as f64;
    let times = match recorded {
        0 => [const { String::new() }; 3],
        _ => [0.5, 0.95, 1.0].map(|share| duration(function.quantile_us(share))),
    };
    let failed = counts.failed + counts.cancelled;
    let numbers = [
        grouped(counts.spawned.max(recorded)),
        or_blank(function.counts.in_place),
        or_blank(function.kept),
        or_blank(failed),
        duration(function.total_us()),
        format!("{share:.0} %"),
    ];
    let numbers = numbers.into_iter().chain(times);
    let cells: String = numbers
        .chain([
            time_or_blank(function.queued_us),
            size_or_blank(function.memory_bytes),
        ])
        .map(|text| format!("<td class=\"number\">{text}</td>"))
        .collect();
    let class = colour(place);
    let name = escaped(&shortened(&function.what, NAME_CHARACTERS_MAX));
    format!(
        "<tr><td title=\"{} {}\"><span class=\"key\">{}</span><span class=\"name\">{name}</span>\
         </td>{cells}<td>{}</td></tr>",
        escaped(&function.executor),
        escaped(&function.what),
        swatch(&class),
        histogram(&function.ran_us, &class),
    )
}

fn time_or_blank(us: u64) -> String {
    match us {
        0 => String::new(),
        _ => duration(us),
    }
}

fn size_or_blank(bytes: u64) -> String {
    match bytes {
        0 => String::new(),
        _ => size(bytes),
    }
}

fn or_blank(number: u64) -> String {
    match number {
        0 => String::new(),
        _ => grouped(number),
    }
}

/// Why tasks ran though a kept result was looked up; empty if none was.
pub fn reruns(functions: &Functions) -> String {
    let with_reasons = functions.all.iter().flat_map(|function| {
        let reasons = function.reruns.iter();
        reasons.map(|(reason, count)| (*count, &function.what, reason))
    });
    let mut rows: Vec<(u64, &String, &String)> = with_reasons.collect();
    rows.sort_by_key(|(count, what, reason)| (std::cmp::Reverse(*count), *what, *reason));
    if rows.is_empty() {
        return String::new();
    }
    let mut table = String::from(
        "<table><tr><th>function</th><th class=\"number\">tasks</th>\
         <th class=\"wide\">why they ran</th></tr>",
    );
    for (count, what, reason) in rows.into_iter().take(FUNCTIONS_MAX) {
        let name = escaped(&shortened(what, NAME_CHARACTERS_MAX));
        table.push_str(&format!(
            "<tr><td class=\"name\">{name}</td><td class=\"number\">{}</td>\
             <td class=\"wide\">{}</td></tr>",
            grouped(count),
            escaped(reason),
        ));
    }
    table.push_str("</table>");
    table
}

/// A small square in a colour.
pub fn swatch(class: &str) -> String {
    format!("<svg viewBox=\"0 0 10 10\"><rect class=\"{class}\" width=\"10\" height=\"10\"/></svg>")
}

/// The critical path folded by function and by what its tasks did.
pub fn path(steps: &[Step], functions: &Functions) -> String {
    let mut sums: BTreeMap<(usize, u8), (u64, u64)> = BTreeMap::new();
    for step in steps {
        let sum = sums
            .entry((functions.of[step.task], rank(step.doing)))
            .or_default();
        *sum = (sum.0 + step.to - step.from, sum.1 + 1);
    }
    let total: u64 = sums.values().map(|(us, _)| us).sum();
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(key, (us, _))| (std::cmp::Reverse(*us), *key));
    let mut table = String::from(
        "<table><tr><th>function</th><th>what it did</th><th class=\"number\">time</th>\
         <th class=\"number\">share</th><th class=\"number\">steps</th></tr>",
    );
    for ((place, rank), (us, count)) in rows.into_iter().take(SLOWEST_MAX) {
        let name = escaped(&shortened(&functions.all[place].what, NAME_CHARACTERS_MAX));
        let share = 100.0 * us as f64 / total.max(1) as f64;
        table.push_str(&format!(
            "<tr><td class=\"name\">{name}</td><td>{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{share:.0} %</td><td class=\"number\">{}</td></tr>",
            DID[rank as usize],
            duration(us),
            grouped(count),
        ));
    }
    table.push_str("</table>");
    table
}

const DID: [&str; 3] = [
    "ran",
    "waited for a slot",
    "waited for what is not recorded",
];

fn rank(doing: Doing) -> u8 {
    match doing {
        Doing::Run => 0,
        Doing::Queue => 1,
        Doing::Wait => 2,
    }
}

/// The tasks that ran longest.
pub fn slowest(courses: &[Course<'_>]) -> String {
    let mut slowest: Vec<&Course<'_>> = courses.iter().collect();
    slowest.sort_by_key(|course| std::cmp::Reverse((course.record.ran_us, course.spawned)));
    let mut table = String::from(
        "<div class=\"scroll\"><table><tr><th>task</th><th class=\"number\">ran</th>\
         <th class=\"number\">spawned at</th><th class=\"number\">ended at</th>\
         <th class=\"number\">memory</th><th class=\"number\">attempts</th><th>state</th>\
         <th class=\"wide\">spawned by</th></tr>",
    );
    for course in slowest.into_iter().take(SLOWEST_MAX) {
        let record = course.record;
        let spawner = record.parent.as_deref().unwrap_or("the job");
        table.push_str(&format!(
            "<tr><td class=\"name\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td>{}</td><td class=\"wide soft\">{} {}</td></tr>",
            escaped(&shortened(&record.label(), NAME_CHARACTERS_MAX)),
            duration(record.ran_us),
            duration(course.spawned),
            duration(course.end()),
            size_or_blank(record.memory_bytes.unwrap_or(0)),
            record.attempts,
            record.state.words(),
            escaped(&shortened(spawner, NAME_CHARACTERS_MAX)),
            escaped(&record.place),
        ));
    }
    table.push_str("</table></div>");
    table
}

/// The tasks that failed by themselves, with the failure and what they wrote; empty if none did.
pub fn failed(courses: &[Course<'_>], logs: &Logs) -> String {
    let failed: Vec<&Course<'_>> = courses
        .iter()
        .filter(|course| course.record.state == TaskState::Failed && course.record.is_origin())
        .collect();
    let mut list = String::new();
    for course in failed.iter().take(FAILED_MAX) {
        let label = course.record.label();
        let failure = course.record.failure.as_deref().unwrap_or_default();
        list.push_str(&format!(
            "<details open><summary><span class=\"name bad\">{}</span> \
             <span class=\"soft\">{} at {}</span></summary><pre>{}</pre>",
            escaped(&shortened(&label, NAME_CHARACTERS_MAX)),
            escaped(&course.record.place),
            duration(course.end()),
            escaped(last_of(failure)),
        ));
        if let Some(text) = logs.get(&label).filter(|text| !text.is_empty()) {
            let text = escaped(last_of(text));
            list.push_str(&format!(
                "<p class=\"soft\">What it wrote:</p><pre>{text}</pre>"
            ));
        }
        list.push_str("</details>");
    }
    if failed.len() > FAILED_MAX {
        let more = counted((failed.len() - FAILED_MAX) as u64, "more failed task");
        list.push_str(&format!("<p class=\"soft\">and {more}.</p>"));
    }
    list
}

/// The end of a long text.
fn last_of(text: &str) -> &str {
    let characters = text.chars().count();
    let left_out = characters.saturating_sub(TEXT_CHARACTERS_MAX);
    let begin = text
        .char_indices()
        .nth(left_out)
        .map_or(text.len(), |(at, _)| at);
    &text[begin..]
}

#[cfg(test)]
mod tests {
    use ciel_graph::Moment;

    use super::*;
    use crate::course::courses;
    use crate::samples::{run, task};

    #[test]
    fn failed_task_is_shown_with_what_it_wrote() {
        let story = [(0, Moment::Started), (4, Moment::Failed)];
        let tasks = [task("part", 7, None, &story), run("part", 8, None, 0, 3)];
        let logs = Logs::from([(tasks[0].label(), "line <1>\n".to_string())]);
        let list = failed(&courses(&tasks, 9), &logs);
        assert_eq!(list.matches("<details").count(), 1);
        assert!(
            list.contains("TaskError: no room") && list.contains("line &lt;1&gt;"),
            "{list}"
        );
    }

    #[test]
    fn end_of_a_long_text_is_kept_whole_characters_only() {
        let text = format!("{}é end", "é".repeat(TEXT_CHARACTERS_MAX));
        let kept = last_of(&text);
        assert_eq!(kept.chars().count(), TEXT_CHARACTERS_MAX);
        assert!(kept.ends_with("é end"));
        assert_eq!(last_of(""), "");
    }

    #[test]
    fn kept_results_and_reasons_are_counted_by_function() {
        let kept = [
            (0, Moment::Spawned),
            (1, Moment::Kept),
            (1, Moment::Finished),
        ];
        let mut tasks = vec![task("part", 1, None, &kept), task("part", 2, None, &kept)];
        for number in 3..6 {
            let mut ran = run("part", number, None, 0, 5);
            ran.rerun = Some("input changed: <a>".to_string());
            tasks.push(ran);
        }
        let courses = courses(&tasks, 9);
        let functions = Functions::new(&courses, None);
        assert_eq!(functions.all[0].kept, 2);
        let table = reruns(&functions);
        let row = "<td class=\"number\">3</td><td class=\"wide\">input changed: &lt;a&gt;</td>";
        assert!(table.contains(row), "{table}");
        assert_eq!(reruns(&Functions::new(&[], None)), "");
    }

    #[test]
    fn rest_of_many_functions_is_counted() {
        let tasks: Vec<_> = (0..70)
            .map(|n| run(&format!("f{n}"), n, None, 0, 5))
            .collect();
        let table = functions(&Functions::new(&courses(&tasks, 9), None));
        assert_eq!(table.matches("<tr>").count(), FUNCTIONS_MAX + 1);
        assert!(table.contains("and 10 more functions"), "{table}");
    }
}
