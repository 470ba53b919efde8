//! The page: its parts in their order.
//!
//! Every part is bounded, so the page of a run with a hundred thousand tasks is about as long as
//! that of one with a thousand; what is left out is said. It does not know files. Read next:
//! `tables`, `chart`.

use ciel_view::inspect::RunView;
use ciel_view::records::CountsRecord;

use crate::activity::Activity;
use crate::chart::{self, Bar, COLOURS, GraphNode};
use crate::course::{Course, Doing, courses};
use crate::families::Families;
use crate::functions::Functions;
use crate::layers::layers;
use crate::path::{Step, critical, with_unlimited_cores};
use crate::rows::rows;
use crate::tables::{self, Logs, colour, swatch};
use crate::words::{counted, duration, escaped, grouped};

/// How every page begins, by which one is recognised.
pub const BEGINNING: &str = "<!doctype html>\n<html lang=\"en\" data-page=\"ciel-report\">";

const STYLE: &str = include_str!("page.css");

/// Parts of time of the drawing of activity.
const PARTS: usize = 250;

/// Bars that a drawing has at most, the longest ones.
const BARS_MAX: usize = 2500;

/// Rows of the timeline; what lies in further ones is not drawn.
const ROWS_MAX: usize = 48;

/// Functions in the drawing of the graph.
const NODES_MAX: usize = 30;

/// All that the parts of the page are made from.
struct Facts<'a> {
    run: &'a RunView,
    courses: Vec<Course<'a>>,
    functions: Functions,
    path: Vec<Step>,
    /// Microseconds up to its end, or up to the last thing that is recorded of it.
    end: u64,
    /// As long, with unlimited cores.
    unlimited: u64,
}

/// The page about a run, of which `run` has all tasks that are recorded; at most a few megabytes.
pub fn page(run: &RunView, logs: &Logs) -> String {
    let facts = Facts::new(run);
    let title = escaped(&run.run.command.join(" "));
    let mut page = format!(
        "{BEGINNING}\n<head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} – ciel report</title><style>\n{STYLE}</style></head>\n<body>\n\
         <h1>{title}</h1>\n"
    );
    page.push_str(&heading(&facts));
    page.push_str(&tiles(&facts));
    page.push_str(&failures(&facts, logs));
    page.push_str(&activity(&facts));
    page.push_str(&timeline(&facts));
    page.push_str(&path(&facts));
    page.push_str(&functions(&facts));
    page.push_str(&graph(&facts));
    page.push_str(&slowest(&facts));
    page.push_str(&recorded(&facts));
    page.push_str("</body></html>\n");
    page
}

impl Facts<'_> {
    fn new(run: &RunView) -> Facts<'_> {
        let last = run.tasks.iter().map(|task| task.ended_us()).max();
        let end = run
            .end
            .as_ref()
            .map_or(last.unwrap_or(0), |end| end.elapsed_us);
        let courses = courses(&run.tasks, end);
        let families = Families::new(&courses);
        let path = critical(&courses, &families);
        let unlimited = with_unlimited_cores(&courses, &families).min(end);
        let functions = Functions::new(&courses, run.counts.as_ref());
        Facts {
            run,
            courses,
            functions,
            path,
            end,
            unlimited,
        }
    }

    /// Microseconds that recorded tasks ran, in all.
    fn ran_us(&self) -> u64 {
        let runs = self.courses.iter().flat_map(Course::runs);
        runs.map(|phase| phase.length()).sum()
    }

    fn spawned(&self) -> u64 {
        let counted = self.run.counts.as_ref().map_or(0, CountsRecord::spawned);
        counted.max(self.courses.len() as u64)
    }

    fn group(&self, task: usize) -> usize {
        self.functions.of[task].min(COLOURS - 1)
    }
}

fn heading(facts: &Facts<'_>) -> String {
    let run = &facts.run.run;
    let (id, folder) = (escaped(&run.run), escaped(&run.folder));
    let resumed = match run.resumed {
        true => {
            " It was resumed after its process had been lost; times of before are those of the \
                 process that recorded them."
        }
        false => "",
    };
    format!("<p class=\"soft\">Run <code>{id}</code> in <code>{folder}</code>.{resumed}</p>\n")
}

fn tiles(facts: &Facts<'_>) -> String {
    let failure = facts.run.end.as_ref().map(|end| end.failure.is_some());
    let (state, class) = match (facts.run.live, failure) {
        (true, _) => ("runs", ""),
        (false, Some(false)) => ("ended well", ""),
        (false, Some(true)) => ("failed", "bad"),
        (false, None) => ("interrupted", "bad"),
    };
    let average = facts.ran_us() as f64 / facts.end.max(1) as f64;
    let functions = facts.functions.all.iter();
    let failed: u64 = functions.map(|one| one.counts.counts.failed).sum();
    let tiles = [
        (state.to_string(), class, "the job"),
        (duration(facts.end), "", "from its start to its end"),
        (grouped(facts.spawned()), "", "tasks spawned"),
        (
            grouped(failed),
            if failed > 0 { "bad" } else { "" },
            "tasks failed",
        ),
        (
            format!("{average:.1}"),
            "",
            "tasks ran at a time, on average",
        ),
        (
            duration(facts.unlimited),
            "",
            "with unlimited cores, estimated",
        ),
    ];
    let tile = |(value, class, label): (String, &str, &str)| {
        format!("<div class=\"tile\"><b class=\"{class}\">{value}</b><span>{label}</span></div>")
    };
    let tiles: String = tiles.into_iter().map(tile).collect();
    format!("<div class=\"tiles\">{tiles}</div>\n")
}

fn failures(facts: &Facts<'_>, logs: &Logs) -> String {
    let list = tables::failed(&facts.courses, logs);
    let job = facts
        .run
        .end
        .as_ref()
        .and_then(|end| end.failure.as_deref());
    match (job, list.is_empty()) {
        (None, true) => String::new(),
        (Some(job), true) => format!("<h2>Failure</h2>\n<pre>{}</pre>\n", escaped(job)),
        (_, false) => format!("<h2>Failed tasks</h2>\n{list}\n"),
    }
}

fn keys(facts: &Facts<'_>) -> String {
    let mut keys = String::from("<p>");
    let functions = facts.functions.all.iter().enumerate();
    let with_time = functions.filter(|(_, function)| !function.ran_us.is_empty());
    for (place, function) in with_time.take(COLOURS - 1) {
        let name = escaped(&crate::words::shortened(&function.what, 32));
        let swatch = swatch(&colour(place));
        keys.push_str(&format!("<span class=\"key\">{swatch}{name}</span>"));
    }
    if facts.functions.all.len() >= COLOURS {
        let swatch = swatch(&colour(COLOURS - 1));
        keys.push_str(&format!("<span class=\"key\">{swatch}others</span>"));
    }
    keys.push_str("</p>\n");
    keys
}

fn activity(facts: &Facts<'_>) -> String {
    let group = |task| facts.group(task);
    let activity = Activity::new(&facts.courses, facts.end, PARTS, COLOURS, group);
    let label = "tasks that ran at a time, by function";
    let drawing = chart::areas(&activity.parts, activity.most(), facts.end, label);
    let keys = keys(facts);
    format!("<h2>Tasks that ran at a time</h2>\n{keys}{drawing}\n")
}

fn timeline(facts: &Facts<'_>) -> String {
    let mut spans: Vec<(u64, u64, usize)> = Vec::new();
    for (task, course) in facts.courses.iter().enumerate() {
        spans.extend(course.runs().map(|phase| (phase.from, phase.to, task)));
    }
    spans.sort_unstable();
    let times: Vec<(u64, u64)> = spans.iter().map(|(from, to, _)| (*from, *to)).collect();
    let (places, count) = rows(&times);
    let all = spans.len();
    let mut drawn: Vec<(usize, (u64, u64, usize))> = places.into_iter().zip(spans).collect();
    drawn.retain(|(row, _)| *row < ROWS_MAX);
    drawn.sort_by_key(|(_, (from, to, _))| std::cmp::Reverse(to - from));
    drawn.truncate(BARS_MAX);
    let bars: Vec<Bar> = drawn
        .iter()
        .map(|(row, (from, to, task))| Bar {
            row: *row,
            from: *from,
            to: *to,
            class: colour(facts.functions.of[*task]),
            title: title(facts, *task, *from, *to),
        })
        .collect();
    let rest = match all - bars.len() {
        0 => String::new(),
        _ => format!(
            " Of {} the {} longest are drawn.",
            counted(all as u64, "stretch").replace("stretchs", "stretches"),
            grouped(bars.len() as u64)
        ),
    };
    let label = "when each task ran";
    let drawing = chart::bars(&bars, count.clamp(1, ROWS_MAX), 14.0, facts.end, label);
    format!(
        "<h2>Timeline</h2>\n<p class=\"soft\">Each bar is a stretch in which a task ran without \
         waiting; point at it for its name.{rest}</p>\n{drawing}\n"
    )
}

fn title(facts: &Facts<'_>, task: usize, from: u64, to: u64) -> String {
    let label = crate::words::shortened(&facts.courses[task].record.label(), 80);
    format!("{label}: {} from {}", duration(to - from), duration(from))
}

fn path(facts: &Facts<'_>) -> String {
    let mut steps = facts.path.clone();
    steps.sort_by_key(|step| std::cmp::Reverse(step.to - step.from));
    steps.truncate(BARS_MAX);
    let bars: Vec<Bar> = steps
        .iter()
        .map(|step| Bar {
            row: 0,
            from: step.from,
            to: step.to,
            class: match step.doing {
                Doing::Run => colour(facts.functions.of[step.task]),
                Doing::Queue => "queue".to_string(),
                Doing::Wait => "wait".to_string(),
            },
            title: title(facts, step.task, step.from, step.to),
        })
        .collect();
    let drawing = chart::bars(&bars, 1, 26.0, facts.end, "the critical path");
    let table = tables::path(&facts.path, &facts.functions);
    let (end, unlimited) = (duration(facts.end), duration(facts.unlimited));
    format!(
        "<h2>Critical path</h2>\n<p>The chain of tasks that led to the end of the run: to make the \
         run shorter, make one of these shorter. Grey is a wait for a slot, which more cores would \
         end, or for a worker to start. The run took {end}; if every task had run as soon as it \
         was ready, it would have taken about {unlimited}.</p>\n{drawing}\n{table}\n"
    )
}

fn functions(facts: &Facts<'_>) -> String {
    let table = tables::functions(&facts.functions);
    let reruns = match tables::reruns(&facts.functions) {
        table if table.is_empty() => table,
        table => format!("<h2>Why tasks ran</h2>\n{table}\n"),
    };
    format!(
        "<h2>Functions</h2>\n<p class=\"soft\">The number of tasks is exact; times are those of \
         the recorded tasks, without their waits. In place: calls that ran inside the task that \
         spawned them; their time is part of that task's. Kept: tasks that took the result of an \
         earlier run.</p>\n{table}\n{reruns}"
    )
}

fn graph(facts: &Facts<'_>) -> String {
    let edges = &facts.functions.edges;
    if edges.is_empty() {
        return String::new();
    }
    let shown = facts.functions.all.len().min(NODES_MAX);
    let layers = layers(edges, shown);
    let nodes: Vec<GraphNode> = facts.functions.all[..shown]
        .iter()
        .enumerate()
        .map(|(place, function)| GraphNode {
            name: function.what.clone(),
            note: format!(
                "{}, {}",
                counted(
                    function
                        .counts
                        .counts
                        .spawned
                        .max(function.ran_us.len() as u64),
                    "task"
                ),
                duration(function.total_us())
            ),
            class: colour(place),
            layer: layers[place],
        })
        .collect();
    let edges: Vec<(usize, usize, String)> = edges
        .iter()
        .filter(|((from, to), _)| *from < shown && *to < shown)
        .map(|((from, to), count)| (*from, *to, grouped(*count)))
        .collect();
    let rest = match facts.functions.all.len() - shown {
        0 => String::new(),
        more => format!(
            " {} that ran for less are left out.",
            counted(more as u64, "function")
        ),
    };
    let drawing = chart::graph(&nodes, &edges, "which functions spawned which");
    format!(
        "<h2>Which functions spawned which</h2>\n<p class=\"soft\">Numbers at the arrows count \
         recorded tasks.{rest}</p>\n{drawing}\n"
    )
}

fn slowest(facts: &Facts<'_>) -> String {
    if facts.courses.is_empty() {
        return String::new();
    }
    let table = tables::slowest(&facts.courses);
    format!("<h2>Longest tasks</h2>\n{table}\n")
}

/// What the page rests on.
fn recorded(facts: &Facts<'_>) -> String {
    let recorded = facts.courses.len() as u64;
    let in_place: u64 = facts
        .functions
        .all
        .iter()
        .map(|one| one.counts.in_place)
        .sum();
    let sampled = match facts.spawned().saturating_sub(recorded + in_place) {
        0 => format!("All {} are recorded one by one.", counted(recorded, "task")),
        missing => format!(
            "Of {} {} recorded one by one: the failed ones, and a sample of the others, because \
             the history of a run is bounded. Drawings, times, the critical path and the \
             estimate are those of the recorded tasks; {} missing in them.",
            counted(facts.spawned() - in_place, "task"),
            match recorded {
                1 => "1 is".to_string(),
                _ => format!("{} are", grouped(recorded)),
            },
            match missing {
                1 => "1 task is".to_string(),
                _ => format!("{} tasks are", grouped(missing)),
            },
        ),
    };
    let in_place = match in_place {
        0 => String::new(),
        _ => format!(" Calls in place ({}) are counted only.", grouped(in_place)),
    };
    format!(
        "<h2>What this page rests on</h2>\n<p class=\"soft\">{sampled}{in_place} What a task \
         waited for is inferred from times: from the descendant, or for inputs the sibling, whose \
         end is the end of the wait. The estimate for unlimited cores takes every task to be as \
         long as it was. Memory is recorded of tasks that have a process of their own; it is at \
         least that of the process from which theirs was made, some megabytes.</p>\n"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ciel_graph::Moment;
    use ciel_view::records::{RunRecord, TaskRecord};

    use super::*;
    use crate::samples::{run, task};

    fn view(tasks: Vec<TaskRecord>) -> RunView {
        RunView {
            held: None,
            run: RunRecord {
                run: "1a201b0a901-073ab".to_string(),
                command: vec!["job.py".to_string(), "<&>".to_string()],
                started_s: 0,
                pid: 1,
                folder: "/home/x".to_string(),
                resumed: false,
            },
            live: false,
            resumable: false,
            counts: None,
            tasks,
            left_out: 0,
            waiting: BTreeMap::new(),
            store: None,
            end: None,
        }
    }

    /// A root with many children, some of which failed.
    fn many(count: u32) -> RunView {
        let root = Some(("main", 0));
        let story = |from: u64, last| {
            [
                (from, Moment::Spawned),
                (from, Moment::Ready),
                (from + 1, Moment::Started),
                (from + 5, last),
            ]
        };
        let mut tasks = vec![run("main", 0, None, 0, 10 * u64::from(count))];
        for number in 1..count {
            let last = match number % 100 {
                7 => Moment::Failed,
                _ => Moment::Finished,
            };
            let what = format!("part{}", number % 12);
            tasks.push(task(
                &what,
                number,
                root,
                &story(u64::from(number) * 7, last),
            ));
        }
        view(tasks)
    }

    /// Whether every element that is opened is closed, in order.
    fn is_well_formed(page: &str) -> bool {
        let mut open = Vec::new();
        for part in page.split('<').skip(1) {
            let tag = part.split('>').next().unwrap_or_default();
            let name = tag.split([' ', '/']).next().unwrap_or_default();
            let is_void = ["!doctype", "meta"].contains(&name) || tag.ends_with('/');
            match tag.strip_prefix('/') {
                Some(closed) if open.pop() != Some(closed) => return false,
                Some(_) => {}
                None if !is_void => open.push(name),
                None => {}
            }
        }
        open.is_empty()
    }

    #[test]
    fn page_is_well_formed_and_needs_nothing_else() {
        for view in [view(Vec::new()), many(2), many(500)] {
            let page = page(&view, &Logs::new());
            assert!(page.starts_with(BEGINNING) && is_well_formed(&page));
            for outside in ["http:", "https:", "src=", "@import", "<script", "<link"] {
                assert!(!page.contains(outside), "{outside}");
            }
            for number in ["NaN", "inf\"", "inf,", "inf<", "inf "] {
                assert!(!page.contains(number), "{number}");
            }
            assert!(page.contains("job.py &lt;&amp;&gt;"));
        }
    }

    #[test]
    fn page_of_a_hundred_thousand_tasks_is_bounded() {
        let page = page(&many(100_000), &Logs::new());
        assert!(page.len() < 2 << 20, "{} bytes", page.len());
        assert!(is_well_formed(&page));
        assert!(
            page.contains("longest are drawn"),
            "what is left out is said"
        );
    }

    #[test]
    fn tasks_that_are_not_recorded_are_said_to_be_missing() {
        let mut view = many(10);
        view.counts = Some(CountsRecord {
            functions: vec![ciel_view::records::FunctionRecord {
                what: "part1".to_string(),
                counts: ciel_graph::FunctionCounts {
                    spawned: 5000,
                    finished: 5000,
                    ..Default::default()
                },
                in_place: 100,
            }],
        });
        let page = page(&view, &Logs::new());
        assert!(page.contains("Of 4,900 tasks 10 are recorded one by one"));
        assert!(page.contains("4,890 tasks are missing"));
        assert!(page.contains("Calls in place (100)"));
    }
}
