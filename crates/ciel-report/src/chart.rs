//! Drawings as SVG: activity over time, rows of tasks, bars, histograms, the graph of functions.
//!
//! All lengths are in pixels of a drawing that is scaled to the width of the page. Colours are
//! classes of the page's style, so they follow light and dark. It does not know what is drawn.
//! Read next: `page`.

use std::fmt::Write;

use crate::words::{duration, escaped, shortened};

/// Width of the wide drawings.
pub const WIDTH: f64 = 1000.0;

/// Colours of groups; the last one is for all that have none of their own.
pub const COLOURS: usize = 9;

/// A rectangle in a drawing over time.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Its row, from 0.
    pub row: usize,
    /// From when, in microseconds.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// Its class in the style.
    pub class: String,
    /// What is shown when it is pointed at.
    pub title: String,
}

/// Writes to a text, which cannot fail.
macro_rules! put {
    ($text:expr, $($words:tt)*) => {
        write!($text, $($words)*).expect("a text takes everything")
    };
}

/// Times at which a span of so many microseconds has marks: 4 to 10 round ones.
fn marks(end: u64) -> Vec<u64> {
    let mut step = 1;
    while end / step > 10 {
        let leading = step / 10u64.pow(step.ilog10());
        step = match leading {
            2 => step / 2 * 5,
            _ => step * 2,
        };
    }
    (0..=end / step).map(|mark| mark * step).collect()
}

fn begin(width: f64, height: f64, label: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">",
        escaped(label)
    )
}

/// The lines and times beneath a drawing over time.
fn time_axis(svg: &mut String, end: u64, height: f64) {
    for mark in marks(end) {
        let x = place(mark, end);
        let anchor = match x {
            _ if x < 20.0 => "start",
            _ if x > WIDTH - 20.0 => "end",
            _ => "middle",
        };
        put!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{height:.0}\"/>"
        );
        let y = height + 14.0;
        let words = duration(mark);
        put!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{words}</text>"
        );
    }
}

fn place(time: u64, end: u64) -> f64 {
    time as f64 / end.max(1) as f64 * WIDTH
}

/// Numbers over time, stacked: for each part of the time one number for each colour.
pub fn areas(parts: &[Vec<f64>], most: f64, end: u64, label: &str) -> String {
    let height = 170.0;
    let top = most.max(1.0);
    let mut svg = begin(WIDTH, height + 20.0, label);
    time_axis(&mut svg, end, height);
    let mut below = vec![0.0; parts.len()];
    for group in 0..parts.first().map_or(0, Vec::len) {
        let above: Vec<f64> = parts
            .iter()
            .zip(&below)
            .map(|(part, below)| below + part[group])
            .collect();
        if above != below {
            let points = outline(&above, &below, |value| {
                height - value / top * (height - 14.0)
            });
            put!(svg, "<polygon class=\"c{group}\" points=\"{points}\"/>");
        }
        below = above;
    }
    put!(
        svg,
        "<text class=\"on\" x=\"4\" y=\"11\">{top:.1} at most</text></svg>"
    );
    svg
}

/// The points around an area between two lines of steps.
fn outline(above: &[f64], below: &[f64], y: impl Fn(f64) -> f64) -> String {
    let width = WIDTH / above.len() as f64;
    let mut points = String::new();
    for (index, value) in above.iter().enumerate() {
        let (x, y) = (index as f64 * width, y(*value));
        put!(points, "{x:.1},{y:.1} {:.1},{y:.1} ", x + width);
    }
    for (index, value) in below.iter().enumerate().rev() {
        let (x, y) = (index as f64 * width, y(*value));
        put!(points, "{:.1},{y:.1} {x:.1},{y:.1} ", x + width);
    }
    points.trim_end().to_string()
}

/// Bars in rows over time.
pub fn bars(bars: &[Bar], rows: usize, row_height: f64, end: u64, label: &str) -> String {
    let height = rows as f64 * row_height;
    let mut svg = begin(WIDTH, height + 20.0, label);
    time_axis(&mut svg, end, height);
    for bar in bars {
        let x = place(bar.from, end);
        let width = (place(bar.to, end) - x).max(0.5);
        let (y, high) = (bar.row as f64 * row_height + 1.0, row_height - 2.0);
        let (class, title) = (&bar.class, escaped(&bar.title));
        put!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" \
             height=\"{high:.1}\"><title>{title}</title></rect>"
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Bins of a histogram.
const BINS: usize = 22;

/// How times are distributed: a histogram with a logarithmic axis from the least to the greatest.
pub fn histogram(times_us: &[u64], class: &str) -> String {
    let (Some(least), Some(most)) = (times_us.first(), times_us.last()) else {
        return String::new();
    };
    let (low, high) = ((*least).max(1) as f64, (*most).max(1) as f64);
    let span = (high / low).ln().max(f64::MIN_POSITIVE);
    let mut bins = [0u64; BINS];
    for time in times_us {
        let at = ((*time).max(1) as f64 / low).ln() / span * BINS as f64;
        bins[(at as usize).min(BINS - 1)] += 1;
    }
    let highest = bins.iter().max().copied().unwrap_or(1) as f64;
    let words = format!("from {} to {}", duration(*least), duration(*most));
    let mut svg = format!("<svg class=\"small\" viewBox=\"0 0 132 24\"><title>{words}</title>");
    put!(
        svg,
        "<line class=\"grid\" x1=\"0\" x2=\"132\" y1=\"23.5\" y2=\"23.5\"/>"
    );
    for (index, count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
        let high = (*count as f64 / highest * 22.0).max(1.5);
        let (x, y) = (index as f64 * 6.0, 23.0 - high);
        put!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.0}\" y=\"{y:.1}\" width=\"5\" height=\"{high:.1}\"/>"
        );
    }
    svg.push_str("</svg>");
    svg
}

/// A function in the drawing of the graph.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// Its name.
    pub name: String,
    /// A line beneath it.
    pub note: String,
    /// Its class in the style.
    pub class: String,
    /// How far it is from the root.
    pub layer: usize,
}

const BOX_WIDTH: f64 = 172.0;
const BOX_HEIGHT: f64 = 40.0;
const LAYER_HEIGHT: f64 = 86.0;
/// Boxes side by side; a layer with more has several lines.
const BOXES_MAX: usize = 5;

/// Functions in layers with arrows from each to those that it spawned; `edges` has the places of
/// both and the words at the arrow.
pub fn graph(nodes: &[GraphNode], edges: &[(usize, usize, String)], label: &str) -> String {
    let (corners, lines) = corners(nodes);
    let height = lines as f64 * LAYER_HEIGHT - (LAYER_HEIGHT - BOX_HEIGHT) + 4.0;
    let mut svg = begin(WIDTH, height, label);
    svg.push_str(
        "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" \
         markerHeight=\"6\" orient=\"auto\" markerUnits=\"userSpaceOnUse\">\
         <path class=\"head\" d=\"M0,0 L8,4 L0,8 z\"/></marker></defs>",
    );
    for (from, to, words) in edges {
        arrow(&mut svg, corners[*from], corners[*to], words);
    }
    for (node, (x, y)) in nodes.iter().zip(&corners) {
        let (name, note) = (escaped(&shortened(&node.name, 23)), escaped(&node.note));
        put!(
            svg,
            "<g><title>{}</title><rect class=\"box\" x=\"{x:.0}\" y=\"{y:.0}\" \
             width=\"{BOX_WIDTH:.0}\" height=\"{BOX_HEIGHT:.0}\" rx=\"5\"/>\
             <rect class=\"{}\" x=\"{x:.0}\" y=\"{y:.0}\" width=\"5\" height=\"{BOX_HEIGHT:.0}\"/>\
             <text class=\"on\" x=\"{:.0}\" y=\"{:.0}\">{name}</text>\
             <text x=\"{:.0}\" y=\"{:.0}\">{note}</text></g>",
            escaped(&node.name),
            node.class,
            x + 13.0,
            y + 17.0,
            x + 13.0,
            y + 32.0,
        );
    }
    svg.push_str("</svg>");
    svg
}

/// The upper left corner of each node, and how many lines of boxes there are.
fn corners(nodes: &[GraphNode]) -> (Vec<(f64, f64)>, usize) {
    let layers = nodes
        .iter()
        .map(|node| node.layer)
        .max()
        .map_or(0, |last| last + 1);
    let mut corners = vec![(0.0, 0.0); nodes.len()];
    let mut line = 0;
    for layer in 0..layers {
        let members: Vec<usize> = (0..nodes.len())
            .filter(|place| nodes[*place].layer == layer)
            .collect();
        for row in members.chunks(BOXES_MAX) {
            let gap = WIDTH / row.len() as f64;
            for (index, place) in row.iter().enumerate() {
                let x = gap * (index as f64 + 0.5) - BOX_WIDTH / 2.0;
                corners[*place] = (x, line as f64 * LAYER_HEIGHT + 1.0);
            }
            line += 1;
        }
    }
    (corners, line)
}

fn arrow(svg: &mut String, from: (f64, f64), to: (f64, f64), words: &str) {
    let words = escaped(words);
    if from == to {
        let (x, y) = (from.0 + BOX_WIDTH, from.1 + BOX_HEIGHT / 2.0);
        put!(
            svg,
            "<path class=\"edge\" marker-end=\"url(#head)\" \
             d=\"M{x:.0},{:.0} C{:.0},{:.0} {:.0},{:.0} {x:.0},{:.0}\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\">{words}</text>",
            y - 9.0,
            x + 30.0,
            y - 16.0,
            x + 30.0,
            y + 16.0,
            y + 9.0,
            x + 27.0,
            y + 4.0,
        );
        return;
    }
    let is_down = to.1 > from.1;
    let (leave, reach) = match is_down {
        true => (from.1 + BOX_HEIGHT, to.1),
        false => (from.1, to.1 + BOX_HEIGHT),
    };
    let (x, end) = (from.0 + BOX_WIDTH / 2.0, to.0 + BOX_WIDTH / 2.0);
    let bend = (reach - leave) / 2.0;
    let middle = (x + end) / 2.0;
    put!(
        svg,
        "<path class=\"edge\" marker-end=\"url(#head)\" \
         d=\"M{x:.0},{leave:.0} C{x:.0},{:.0} {end:.0},{:.0} {end:.0},{reach:.0}\"/>\
         <text x=\"{:.0}\" y=\"{:.0}\">{words}</text>",
        leave + bend,
        reach - bend,
        middle + 6.0,
        (leave + reach) / 2.0 + 4.0,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_has_round_marks_that_do_not_crowd() {
        assert_eq!(marks(10), (0..=10).collect::<Vec<u64>>());
        assert_eq!(marks(4_300_000)[1], 500_000);
        for end in [1, 7, 999, 123_456, 86_400_000_000] {
            let count = marks(end).len();
            assert!((1..=11).contains(&count), "{end}: {count}");
        }
    }

    #[test]
    fn bar_lies_at_its_time_and_is_never_invisible() {
        let bar = Bar {
            row: 1,
            from: 500,
            to: 500,
            class: "c0".to_string(),
            title: "<x>".to_string(),
        };
        let svg = bars(&[bar], 2, 10.0, 1000, "timeline");
        assert!(
            svg.contains("x=\"500.00\" y=\"11.0\" width=\"0.50\""),
            "{svg}"
        );
        assert!(svg.contains("&lt;x&gt;"), "{svg}");
    }

    #[test]
    fn histogram_of_equal_times_has_one_bar() {
        let svg = histogram(&[5, 5, 5], "c1");
        assert_eq!(svg.matches("<rect").count(), 1);
        assert_eq!(histogram(&[], "c1"), "");
    }

    #[test]
    fn stacked_areas_lie_on_one_another() {
        let svg = areas(&[vec![1.0, 1.0]], 2.0, 10, "activity");
        assert!(
            svg.contains("points=\"0.0,92.0 1000.0,92.0 1000.0,170.0 0.0,170.0\""),
            "{svg}"
        );
        assert!(
            svg.contains("points=\"0.0,14.0 1000.0,14.0 1000.0,92.0 0.0,92.0\""),
            "{svg}"
        );
    }
}
