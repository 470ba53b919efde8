//! Figures: what was measured, against which goal, as a line of a table and as JSON.
//!
//! It does not know how anything was measured.

use std::fmt;

use serde_json::{Value, json};

use crate::machine::Machine;

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// FailureDetails only for comparison.
    None,
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

/// One measured quantity.
#[derive(Clone, Debug)]
pub struct Figure {
    name: String,
    unit: &'static str,
    goal: Goal,
    /// The middle one of the rounds, or a quotient of such.
    median: f64,
    /// Every round, as it came.
    rounds: Vec<f64>,
}

impl Figure {
    /// A quantity measured in several rounds; its median counts. There must be a round.
    pub fn of_rounds(name: &str, unit: &'static str, goal: Goal, rounds: Vec<f64>) -> Figure {
        let median = median(&rounds);
        Figure {
            name: name.to_string(),
            unit,
            goal,
            median,
            rounds,
        }
    }

    /// How many times the median of `over` this figure's median is.
    pub fn ratio(&self, name: &str, goal: Goal, over: &Figure) -> Figure {
        let pairs = self.rounds.iter().zip(&over.rounds);
        Figure {
            name: name.to_string(),
            unit: "ratio",
            goal,
            median: self.median / over.median,
            rounds: pairs.map(|(one, other)| one / other).collect(),
        }
    }

    fn best(&self) -> f64 {
        let least = |a: f64, b: f64| a.min(b);
        let most = |a: f64, b: f64| a.max(b);
        match self.goal {
            Goal::AtLeast(_) => self.rounds.iter().copied().fold(f64::MIN, most),
            Goal::AtMost(_) | Goal::None => self.rounds.iter().copied().fold(f64::MAX, least),
        }
    }

    fn is_met(&self) -> Option<bool> {
        match self.goal {
            Goal::None => None,
            Goal::AtMost(most) => Some(self.median <= most),
            Goal::AtLeast(least) => Some(self.median >= least),
        }
    }

    fn json(&self) -> Value {
        let (at_most, at_least) = match self.goal {
            Goal::None => (None, None),
            Goal::AtMost(most) => (Some(most), None),
            Goal::AtLeast(least) => (None, Some(least)),
        };
        json!({
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "best": self.best(),
            "at_most": at_most,
            "at_least": at_least,
            "met": self.is_met(),
            "rounds": self.rounds,
        })
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let goal = match self.goal {
            Goal::None => "–".to_string(),
            Goal::AtMost(most) => format!("≤ {most}"),
            Goal::AtLeast(least) => format!("≥ {least}"),
        };
        let met = match self.is_met() {
            None => "",
            Some(true) => "met",
            Some(false) => "missed",
        };
        let (median, best) = (amount(self.median), amount(self.best()));
        write!(
            f,
            "| {:<42} | {:>9} | {:>9} | {:<8} | {:>7} | {:<6} |",
            self.name, median, best, self.unit, goal, met
        )
    }
}

/// The first two lines of the table.
pub fn heading() -> String {
    format!(
        "| {:<42} | {:>9} | {:>9} | {:<8} | {:>7} | {:<6} |\n|{}|{}:|{}:|{}|{}:|{}|",
        "figure",
        "median",
        "best",
        "unit",
        "goal",
        "",
        "-".repeat(44),
        "-".repeat(10),
        "-".repeat(10),
        "-".repeat(10),
        "-".repeat(8),
        "-".repeat(8)
    )
}

/// Everything, for programs.
pub fn json(machine: &Machine, figures: &[Figure]) -> Value {
    let figures: Vec<Value> = figures.iter().map(Figure::json).collect();
    json!({ "machine": machine.json(), "figures": figures })
}

/// The middle one, or the mean of the two in the middle. There must be one.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    }
}

fn amount(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => format!("{value:.0}"),
        middling if middling >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn ratio_is_of_medians_and_goal_decides_which_end_is_best() {
        let slow = Figure::of_rounds("a", "ms", Goal::None, vec![2.0, 4.0, 6.0]);
        let fast = Figure::of_rounds("b", "ms", Goal::None, vec![2.0, 2.0, 2.0]);
        let ratio = slow.ratio("c", Goal::AtMost(1.5), &fast);
        assert_eq!((ratio.median, ratio.best()), (2.0, 1.0));
        assert_eq!(ratio.is_met(), Some(false));
        let rate = slow.ratio("d", Goal::AtLeast(1.5), &fast);
        assert_eq!((rate.best(), rate.is_met()), (3.0, Some(true)));
    }
}
