//! Whether a text is a trace as the Trace Event Format has it, and what it shows.

use std::collections::BTreeMap;

use serde_json::Value;

/// What a trace shows.
#[derive(Debug, Default)]
pub struct Shown {
    /// Slices on rows: the name, the row's name, the group's name.
    pub slices: Vec<(String, String, String)>,
    /// Slices of waits.
    pub waits: usize,
    pub arrows: usize,
    /// Why slices ended that did not end well.
    pub ends: Vec<String>,
    /// What concerns all rows.
    pub instants: Vec<String>,
}

type Row = (u64, u64);

/// Where and when it begins and ends.
type Arrow = [Option<(Row, u64)>; 2];

/// Reads a trace. Panics where it is none: slices that do not end or overlap on a row, times that
/// go back, arrows with one end or with an end beside its slice.
pub fn read(text: &str) -> Shown {
    let lines: Vec<Value> = serde_json::from_str(text).unwrap();
    let names = |what: &str, of: &str| -> BTreeMap<Row, String> {
        let headings = lines.iter().filter(|line| line["name"] == what);
        headings
            .map(|line| (row(line), line["args"][of].as_str().unwrap().to_string()))
            .collect()
    };
    let (rows, groups) = (names("thread_name", "name"), names("process_name", "name"));
    let mut shown = Shown::default();
    let mut open: BTreeMap<Row, u64> = BTreeMap::new();
    let mut slices: Vec<(Row, u64, u64)> = Vec::new();
    let mut waits: BTreeMap<String, u64> = BTreeMap::new();
    let mut arrows: BTreeMap<String, Arrow> = BTreeMap::new();
    let mut last: BTreeMap<Row, u64> = BTreeMap::new();
    for line in &lines {
        let (row, at) = (row(line), line["ts"].as_u64().unwrap());
        let id = || line["id"].as_str().unwrap().to_string();
        match line["ph"].as_str().unwrap() {
            "B" => {
                let name = line["name"].as_str().unwrap().to_string();
                shown
                    .slices
                    .push((name, rows[&row].clone(), groups[&row].clone()));
                assert!(open.insert(row, at).is_none(), "two at once: {line}");
            }
            "E" => {
                let begin = open.remove(&row).expect("an end without a beginning");
                slices.push((row, begin, at));
                shown
                    .ends
                    .extend(line["args"]["ended"].as_str().map(str::to_string));
            }
            "b" => assert!(waits.insert(id(), at).is_none(), "waits twice: {line}"),
            "e" => {
                assert!(waits.remove(&id()).unwrap() <= at, "{line}");
                shown.waits += 1;
            }
            "s" => arrows.entry(id()).or_default()[0] = Some((row, at)),
            "f" => {
                assert_eq!(line["bp"], "e");
                arrows.entry(id()).or_default()[1] = Some((row, at));
            }
            "i" => shown
                .instants
                .push(line["name"].as_str().unwrap().to_string()),
            "M" => {}
            other => panic!("no phase {other}: {line}"),
        }
        if matches!(line["ph"].as_str(), Some("B" | "E")) {
            let before = last.insert(row, at).unwrap_or(0);
            assert!(before <= at, "time goes back: {line}");
        }
    }
    assert!(open.is_empty(), "slices without an end: {open:?}");
    assert!(waits.is_empty(), "waits without an end: {waits:?}");
    check_arrows(&arrows, &slices);
    shown.arrows = arrows.len();
    shown
}

/// Each arrow has two ends, forward in time, and each end has a slice around it.
fn check_arrows(arrows: &BTreeMap<String, Arrow>, slices: &[(Row, u64, u64)]) {
    for (id, ends) in arrows {
        let [Some(from), Some(to)] = ends else {
            panic!("the arrow {id} has one end");
        };
        assert!(from.1 <= to.1, "the arrow {id} leads back");
        let around = |end: &(Row, u64)| {
            let is_around = |(row, begin, over): &(Row, u64, u64)| {
                *row == end.0 && (*begin..=*over).contains(&end.1)
            };
            slices.iter().any(is_around)
        };
        assert!(
            around(from) && around(to),
            "the arrow {id} is beside its slices"
        );
    }
}

fn row(line: &Value) -> Row {
    (line["pid"].as_u64().unwrap(), line["tid"].as_u64().unwrap())
}
