//! One job from its first start to its end, killed and resumed between them.
//!
//! It does not know what the job is. Read first: `jobs`, `sinks`, `victims`.

use std::fs;
use std::time::Duration;

use crate::jobs::Known;
use crate::sinks::{SINKS, Sink};
use crate::support::random::Random;
use crate::support::{Ended, Live, Place};
use crate::victims::{HARMLESS, OF_COMMANDS, Victim};

/// Kills of one job at most; after that it may end. A task that has lost its process is rerun up to
/// as many times.
const KILLS_MAX: u64 = 3;

/// A job that is killed at random.
pub struct Round<'a> {
    known: &'a Known,
    seed: u64,
    random: Random,
    place: Place,
    sink: Sink,
    /// Kills that are still to come.
    left: u64,
    killed: Vec<(Victim, Duration)>,
    /// What was shown when each process had died.
    shown: Vec<String>,
    stderr: String,
}

/// What was tried in a round.
pub struct Tried {
    /// The name of the job.
    pub job: String,
    /// Where its output went.
    pub sink: Sink,
    /// Who was killed, in order.
    pub killed: Vec<Victim>,
}

impl<'a> Round<'a> {
    /// The round with this seed.
    pub fn new(known: &'a Known, seed: u64) -> Round<'a> {
        let mut random = Random::new(seed);
        let place = known.job.place();
        let sink = SINKS[random.below(SINKS.len() as u64) as usize];
        sink.prepare(&place);
        Round {
            known,
            seed,
            left: 1 + random.below(KILLS_MAX),
            random,
            place,
            sink,
            killed: Vec::new(),
            shown: Vec::new(),
            stderr: String::new(),
        }
    }

    /// Starts the job until it has ended by itself, and compares.
    pub fn run(mut self) -> Tried {
        let mut is_first = true;
        loop {
            let command = self.known.job.command(&self.place, self.sink);
            let live = self.sink.start(command, &self.place, is_first);
            let is_dead = self.disturb(&live);
            let ended = live.end_of(&format!("it ends: {}", self.about()));
            let shown = self.sink.shown(&self.place, &ended);
            self.stderr += &format!("\n-- start\n{}", ended.stderr);
            let was_killed = is_dead && ended.signal.is_some();
            if !was_killed || has_left(&self.place) {
                self.expect_same(&shown, &ended, was_killed);
                return self.tried();
            }
            self.shown.push(shown);
            is_first = false;
        }
    }

    fn tried(&self) -> Tried {
        Tried {
            job: self.known.job.name.clone(),
            sink: self.sink,
            killed: self.killed.iter().map(|(victim, _)| *victim).collect(),
        }
    }

    /// Kills at random moments while the process lives; whether it was killed itself.
    fn disturb(&mut self, live: &Live) -> bool {
        while self.left > 0 {
            let victim = self.victim();
            let micros = self.random.below(self.known.lasts.as_micros() as u64);
            let moment = Duration::from_micros(micros);
            std::thread::park_timeout(moment);
            if !victim.kill(&self.place, live, &mut self.random) {
                return false;
            }
            self.killed.push((victim, moment));
            self.left -= 1;
            if victim.ends_the_run() {
                return true;
            }
        }
        false
    }

    /// Half of those of a job with commands are commands.
    fn victim(&mut self) -> Victim {
        let victims = match self.known.job.has_commands && self.random.below(2) == 0 {
            true => &OF_COMMANDS[..],
            false => &HARMLESS[..],
        };
        victims[self.random.below(victims.len() as u64) as usize]
    }

    /// A run that was killed after its last step has nothing more to show, and leaves to the next
    /// run what it would have removed.
    fn expect_same(&self, shown: &str, ended: &Ended, was_killed: bool) {
        let about = self.about();
        self.known.expect_same(&self.place, shown, &about);
        if was_killed {
            self.place.await_nobody();
        } else {
            assert_eq!(ended.code, Some(0), "{about}");
            self.known.expect_nothing_left(&self.place, &about);
        }
        for before in &self.shown {
            assert!(shown.starts_with(before), "{about}\n{before}");
        }
    }

    fn about(&self) -> String {
        let (job, seed) = (&self.known.job.name, self.seed);
        let (sink, killed) = (self.sink, &self.killed);
        format!(
            "{job}, seed {seed}, to {sink:?}, {killed:?}: {}",
            self.stderr
        )
    }
}

/// Whether a run has made its last step.
fn has_left(place: &Place) -> bool {
    let runs = fs::read_dir(place.path(".ciel/runs"));
    let mut folders = runs.into_iter().flatten().map(|run| run.unwrap().path());
    folders.any(|run| run.join("ended").exists() && !run.join("outcome").exists())
}
