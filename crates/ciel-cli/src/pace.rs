//! How long the rest of a job may take, from how many tasks have ended lately.
//!
//! Tasks spawn tasks, so the estimate is about those that are known. It knows no clock: each sample
//! carries its time. Read next: `observer`, which shows it.

use std::collections::VecDeque;

/// Samples that are kept; the oldest one begins the time that is looked at.
const SAMPLES_MAX: usize = 16;

/// Microseconds between two samples that are kept.
const SAMPLE_EVERY_US: u64 = 1_000_000;

/// Microseconds that must have been looked at before there is an estimate.
const LOOKED_US_MIN: u64 = 1_000_000;

/// Numbers of ended tasks with their times.
#[derive(Debug, Default)]
pub struct Pace {
    /// Microseconds since the run began, and tasks that have ended by then; the newest last.
    samples: VecDeque<(u64, u64)>,
}

impl Pace {
    /// Takes the number of `ended` tasks at a time in microseconds; returns the microseconds in
    /// which `pending` more end at the pace of the last samples, if that can be told.
    pub fn remaining_us(&mut self, now_us: u64, ended: u64, pending: u64) -> Option<u64> {
        let due = |last: &(u64, u64)| now_us >= last.0.saturating_add(SAMPLE_EVERY_US);
        if self.samples.back().is_none_or(due) {
            self.samples.push_back((now_us, ended));
            if self.samples.len() > SAMPLES_MAX {
                self.samples.pop_front();
            }
        }
        let &(from_us, before) = self.samples.front()?;
        let looked_us = now_us.saturating_sub(from_us);
        let fresh = ended.saturating_sub(before);
        if looked_us < LOOKED_US_MIN || fresh == 0 || pending == 0 {
            return None;
        }
        let remaining = u128::from(looked_us) * u128::from(pending) / u128::from(fresh);
        u64::try_from(remaining).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn steady_pace_gives_the_time_of_the_rest() {
        let mut pace = Pace::default();
        assert_eq!(pace.remaining_us(SECOND, 0, 100), None);
        assert_eq!(pace.remaining_us(3 * SECOND / 2, 5, 95), None);
        assert_eq!(pace.remaining_us(2 * SECOND, 10, 90), Some(9 * SECOND));
        assert_eq!(pace.remaining_us(3 * SECOND, 20, 80), Some(8 * SECOND));
        assert_eq!(pace.remaining_us(11 * SECOND, 100, 0), None);
    }

    #[test]
    fn tasks_that_ended_before_the_process_began_are_no_pace() {
        let mut pace = Pace::default();
        pace.remaining_us(0, 1000, 10);
        assert_eq!(pace.remaining_us(5 * SECOND, 1000, 10), None);
        assert_eq!(pace.remaining_us(10 * SECOND, 1005, 5), Some(10 * SECOND));
    }

    #[test]
    fn slow_beginning_is_forgotten() {
        let mut pace = Pace::default();
        for second in 0..100 {
            pace.remaining_us(second * SECOND, 0, 100);
        }
        for second in 0..16 {
            pace.remaining_us((100 + second) * SECOND, second, 100);
        }
        assert_eq!(pace.remaining_us(116 * SECOND, 16, 84), Some(84 * SECOND));
    }
}
