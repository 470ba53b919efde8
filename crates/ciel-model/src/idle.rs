//! How many cores are idle, and for how many of them nobody has promised a task yet.
//!
//! The engine counts; workers that keep children claim a core before they make tasks of some, so
//! that one idle core does not cost a promotion in every worker. All of it is one number of 64
//! bits, which processes share and change in one step. It is a hint: who dies with a claim loses
//! it, and [`Claim`] notices that nothing happens any more. Beside the number is a bell, which the
//! engine rings when cores become idle while workers listen. This module knows no memory.

/// Bytes that engine and workers share: the number, then those below, all in the machine's order.
/// What is behind them in the file is in [`assist`](crate::assist).
pub const SHARED_BYTES: usize = 24;

/// Where the bell is in these: a number of 32 bits that changes when it rings.
pub const BELL_AT: usize = 8;

/// Where the number of 32 bits is that says how many workers listen. One that was killed meanwhile
/// is counted for ever: then the bell rings for nobody.
pub const LISTENERS_AT: usize = 12;

/// Where the engine's process is, as a number of 32 bits, and the one of its descriptor of a pipe:
/// a byte in that wakes a worker which has nothing to do, since there are calls for it.
pub const ENGINE_AT: usize = 16;
/// See [`ENGINE_AT`].
pub const PIPE_AT: usize = 20;

/// Looks of a worker at numbers that do not change, after which it takes the claims for lost.
const LOST_LOOKS: u32 = 8;

/// Beats of a worker, of a millisecond, for which a child may run in place: then it becomes a task,
/// so that its result is recorded, and a lost worker loses little.
const BEATS_MIN: u32 = 10;

/// The same for each core: all workers together send such tasks to one engine, which takes no more
/// of them where there are more cores.
const BEATS_PER_CORE: u32 = 2;

/// Looks of a worker in the time of one beat, while a core that it has claimed waits for tasks.
const LOOKS: u32 = 8;

/// Idle cores as the engine and its workers share them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleCores {
    count: u16,
    unclaimed: u16,
    /// All cores.
    cores: u16,
    /// Changes so far, so that each makes another number.
    changes: u16,
}

impl IdleCores {
    /// None of so many cores is idle.
    pub fn of(cores: usize) -> IdleCores {
        IdleCores {
            cores: u16::try_from(cores).unwrap_or(u16::MAX),
            ..IdleCores::default()
        }
    }

    /// The number that is shared.
    pub fn to_bits(self) -> u64 {
        let parts = [self.count, self.unclaimed, self.cores, self.changes];
        let shifted = |bits, part| bits << 16 | u64::from(part);
        parts.into_iter().fold(0, shifted)
    }

    /// What such a number says.
    pub fn from_bits(bits: u64) -> IdleCores {
        IdleCores {
            count: (bits >> 48) as u16,
            unclaimed: (bits >> 32) as u16,
            cores: (bits >> 16) as u16,
            changes: bits as u16,
        }
    }

    /// Beats for which a child may run in place of a task.
    pub fn beats_max(self) -> u32 {
        BEATS_MIN.max(BEATS_PER_CORE * u32::from(self.cores))
    }

    /// Idle cores for which no task waits.
    pub fn count(self) -> u32 {
        self.count.into()
    }

    /// Idle cores for which no worker has promised tasks either.
    pub fn unclaimed(self) -> u32 {
        self.unclaimed.into()
    }

    /// Whether a strand sends its tasks at once when it has spawned so many: as many as there are
    /// idle cores, and whenever there are twice as many, so that many cost few messages.
    pub fn want(self, spawned: u32) -> bool {
        let count = self.count();
        count > 0 && spawned.is_multiple_of(count) && (spawned / count).is_power_of_two()
    }

    /// The engine has counted so many; none if it knew that. Cores that have become idle are
    /// unclaimed, and those that have a task by now are the ones that were claimed.
    pub fn counted(self, count: usize) -> Option<IdleCores> {
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        let more = count.saturating_sub(self.count);
        (count != self.count).then(|| self.changed(count, self.unclaimed.saturating_add(more)))
    }

    /// A worker promises tasks for at most so many cores; none if all are claimed.
    pub fn claimed(self, cores_max: u32) -> Option<(IdleCores, u32)> {
        let cores = u32::from(self.unclaimed).min(cores_max);
        let left = self.unclaimed - cores as u16;
        (cores > 0).then(|| (self.changed(self.count, left), cores))
    }

    /// A worker has no tasks for so many cores that it has claimed.
    pub fn returned(self, cores: u32) -> IdleCores {
        let cores = u16::try_from(cores).unwrap_or(u16::MAX);
        self.changed(self.count, self.unclaimed.saturating_add(cores))
    }

    /// All claims are lost.
    pub fn renewed(self) -> IdleCores {
        self.changed(self.count, self.count)
    }

    fn changed(self, count: u16, unclaimed: u16) -> IdleCores {
        IdleCores {
            count,
            unclaimed: unclaimed.min(count),
            cores: self.cores,
            changes: self.changes.wrapping_add(1),
        }
    }
}

/// What one worker has claimed, and what it saw when it last looked.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    cores: u32,
    seen: IdleCores,
    looks: u32,
    /// Looks at unclaimed cores since the last claim.
    passed: u32,
}

impl Claim {
    /// Cores for which tasks are due.
    pub fn cores(&self) -> u32 {
        self.cores
    }

    /// Looks at the shared number, and claims at most so many cores, unless some are claimed
    /// already. So many looks are passed up first as strands have to become tasks `before` their
    /// children can: who has none can serve the core with fewer messages, and with larger children.
    /// Returns the number to be shared instead, if it changes, and how many cores those are: they
    /// are claimed once the caller has shared it, and has called `take`.
    pub fn look(
        &mut self,
        shared: IdleCores,
        cores_max: u32,
        before: usize,
    ) -> Option<(IdleCores, u32)> {
        if self.cores > 0 {
            return None;
        }
        if shared != self.seen {
            (self.seen, self.looks) = (shared, 0);
        }
        let is_lost = self.looks >= LOST_LOOKS;
        self.looks = self.looks.saturating_add(1);
        let shared = if is_lost { shared.renewed() } else { shared };
        let claimed = shared.claimed(cores_max)?;
        let is_early = (self.passed as usize) < before;
        self.passed = self.passed.saturating_add(1);
        (!is_early).then_some(claimed)
    }

    /// The number is shared: the worker has these cores.
    pub fn take(&mut self, cores: u32) {
        (self.cores, self.passed) = (cores, 0);
    }

    /// Tasks for the cores are on their way, or there will be none: how many cores those are.
    pub fn end(&mut self) -> u32 {
        std::mem::take(&mut self.cores)
    }
}

/// When a worker that keeps children looks at them again: at the next beat, or, while a core that
/// it has claimed waits for tasks, several times until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Looks until the next beat, which is the last of them; 0 if there is no other.
    looks: u32,
}

impl Pace {
    /// The next look comes after the time of a beat, divided by this.
    pub fn divisor(self) -> u32 {
        match self.looks {
            0 => 1,
            _ => LOOKS,
        }
    }

    /// Whether the next look is a beat.
    pub fn is_beat(self) -> bool {
        self.looks <= 1
    }

    /// After that look; `is_due` is whether a claimed core waits for tasks.
    pub fn after(self, is_due: bool) -> Pace {
        let looks = match self.is_beat() {
            true if is_due => LOOKS,
            true => 0,
            false => self.looks - 1,
        };
        Pace { looks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(count: usize) -> IdleCores {
        IdleCores::of(64).counted(count).expect("some are idle")
    }

    fn look(claim: &mut Claim, shared: &mut IdleCores) -> u32 {
        if let Some((next, cores)) = claim.look(*shared, 1, 0) {
            *shared = next;
            claim.take(cores);
        }
        claim.cores()
    }

    #[test]
    fn each_idle_core_is_claimed_once() {
        let mut shared = idle(2);
        let mut claims = [(); 4].map(|()| Claim::default());
        let claimed: u32 = claims.iter_mut().map(|one| look(one, &mut shared)).sum();
        assert_eq!(claimed, 2);
        assert_eq!(shared.count(), 2);
    }

    #[test]
    fn core_that_becomes_idle_can_be_claimed_while_others_are_claimed() {
        let (mut shared, mut first, mut second) = (idle(1), Claim::default(), Claim::default());
        assert_eq!(look(&mut first, &mut shared), 1);
        shared = shared.counted(2).expect("it changes");
        assert_eq!(look(&mut second, &mut shared), 1);
        assert!(shared.claimed(1).is_none());
        // The task of the first one has come.
        shared = shared.counted(1).expect("it changes");
        assert!(shared.claimed(1).is_none());
    }

    #[test]
    fn core_of_a_worker_without_tasks_for_it_is_for_another_one() {
        let (mut shared, mut first, mut second) = (idle(1), Claim::default(), Claim::default());
        look(&mut first, &mut shared);
        assert_eq!(look(&mut second, &mut shared), 0);
        shared = shared.returned(first.end());
        assert_eq!(look(&mut second, &mut shared), 1);
    }

    #[test]
    fn claims_of_which_nothing_comes_are_lost_after_some_looks() {
        let (mut shared, mut gone, mut other) = (idle(1), Claim::default(), Claim::default());
        look(&mut gone, &mut shared);
        let looks = (0..20).position(|_| look(&mut other, &mut shared) > 0);
        assert_eq!(looks, Some(LOST_LOOKS as usize));
    }

    #[test]
    fn more_cores_are_not_returned_than_are_idle() {
        let shared = idle(1).returned(5);
        assert_eq!(shared.claimed(9).expect("one is idle").1, 1);
        assert!(IdleCores::default().returned(3).claimed(1).is_none());
        assert!(IdleCores::default().renewed().claimed(1).is_none());
    }

    #[test]
    fn who_has_children_at_hand_claims_before_others() {
        let (mut shared, mut far, mut near) = (idle(1), Claim::default(), Claim::default());
        assert!(far.look(shared, 1, 2).is_none());
        assert!(far.look(shared, 1, 2).is_none());
        assert_eq!(look(&mut near, &mut shared), 1);
        assert!(far.look(shared, 1, 2).is_none());
        shared = shared.returned(near.end());
        assert!(far.look(shared, 1, 2).is_some());
    }

    #[test]
    fn idle_cores_want_as_many_tasks_as_they_are_and_then_twice_as_many() {
        let wanted = |count: u64| -> Vec<u32> {
            let shared = IdleCores::from_bits(count << 48);
            (0..=24).filter(|spawned| shared.want(*spawned)).collect()
        };
        assert!(wanted(0).is_empty());
        assert_eq!(wanted(1), [1, 2, 4, 8, 16]);
        assert_eq!(wanted(3), [3, 6, 12, 24]);
    }

    #[test]
    fn children_run_in_place_for_longer_where_more_workers_send_tasks() {
        let beats = [1, 5, 16, 64].map(|cores| IdleCores::of(cores).beats_max());
        assert_eq!(beats, [10, 10, 32, 128]);
        assert_eq!(IdleCores::default().beats_max(), 10);
    }

    /// While a claimed core waited, beats were two periods apart, and nobody looked in the second.
    #[test]
    fn beats_are_as_far_apart_while_a_claimed_core_waits() {
        for is_due in [true, false] {
            let mut pace = Pace::default();
            let mut times = Vec::new();
            let mut time = 0.0;
            while times.len() < 4 {
                time += 1.0 / f64::from(pace.divisor());
                if pace.is_beat() {
                    times.push(time);
                }
                pace = pace.after(is_due);
            }
            assert_eq!(times, [1.0, 2.0, 3.0, 4.0]);
        }
    }

    #[test]
    fn number_says_the_same_on_the_other_side() {
        let shared = idle(64).claimed(3).expect("they are idle").0;
        assert_eq!(IdleCores::from_bits(shared.to_bits()), shared);
    }
}
