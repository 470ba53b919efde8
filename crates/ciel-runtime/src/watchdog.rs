//! Ends a run in which nothing can happen any more.
//!
//! That is a bug of the engine: [`ciel_engine::Engine::stall`] says when an invariant of it or of
//! those who run tasks is broken. Instead of waiting for ever, the run ends with a report, and
//! stays as recorded. It does not know how a run ends. Read next: `io_thread`, which asks here.

use std::rc::Rc;

use ciel_engine::{Alive, Stall};
use ciel_graph::Situation;
use ciel_model::Label;

use crate::engine::Engine;

/// What the input/output thread keeps for its watchdog.
#[derive(Default)]
pub(crate) struct Watchdog {
    /// Each process of a task that is watched holds one more.
    processes: Rc<()>,
    /// What was found at the last look.
    last: Option<Stall>,
}

impl Watchdog {
    /// A process of a task is watched for as long as this is kept.
    pub(crate) fn process(&self) -> Rc<()> {
        self.processes.clone()
    }

    /// The report of a stall that two looks in a row have found: between them every thread has had
    /// the time to go on with what it had in hand.
    pub(crate) fn look(&mut self, engine: &Engine) -> Option<String> {
        let core = engine.lock();
        let alive = Alive {
            threads: !core.turns.is_resting(engine.settings.script_threads()),
            processes: Rc::strong_count(&self.processes) > 1,
        };
        let found = core.engine().stall(alive);
        drop(core);
        let last = std::mem::replace(&mut self.last, found);
        let stall = self.last.as_ref().filter(|now| last.as_ref() == Some(now));
        stall.map(report)
    }
}

fn report(stall: &Stall) -> String {
    let Stall {
        pending,
        lost,
        first,
    } = stall;
    let mut report =
        format!("nothing runs and nothing is ready, but {pending} tasks have not ended");
    if *lost > 0 {
        report += &format!("; {lost} slots are taken by nothing that runs");
    }
    for (task, situation) in first {
        report += &format!("\n  {task}: {}", described(situation));
    }
    report
}

fn described(situation: &Situation) -> String {
    let on = |tasks: &[Label]| {
        let tasks: Vec<String> = tasks.iter().map(Label::to_string).collect();
        tasks.join(", ")
    };
    match situation {
        Situation::Dormant => "lazy, not demanded".to_string(),
        Situation::Known => "known by its digest, not demanded".to_string(),
        Situation::Waiting(tasks) => format!("waiting for {}", on(tasks)),
        Situation::Twin(Some(task)) => format!("waiting for the equal call {task}"),
        Situation::Twin(None) => "waiting for an equal call".to_string(),
        Situation::Ready(_) => "ready".to_string(),
        Situation::Running(_) => "running".to_string(),
        Situation::Held(tasks) => format!("ended, waiting for {}", on(tasks)),
        Situation::Suspended(tasks) => format!("suspended, waiting for {}", on(tasks)),
    }
}

#[cfg(test)]
mod tests {
    use ciel_model::Name;

    use super::*;

    fn label(what: &str) -> Label {
        Label {
            what: what.into(),
            name: Name(7 << 96),
        }
    }

    #[test]
    fn report_names_each_task_and_what_it_waits_for() {
        let stall = Stall {
            pending: 2,
            lost: 1,
            first: vec![
                (label("main"), Situation::Suspended(vec![label("step")])),
                (label("step"), Situation::Running(5)),
            ],
        };
        assert_eq!(
            report(&stall),
            "nothing runs and nothing is ready, but 2 tasks have not ended; 1 slots are taken by \
             nothing that runs\n  main@00000007: suspended, waiting for step@00000007\n  \
             step@00000007: running"
        );
    }
}
