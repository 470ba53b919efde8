//! The pure machine of the spawner: who runs, who ended, what was left behind by whom.
//!
//! A task is running until its first process has ended, and ending until its leftovers are gone.
//! Leftovers come to the spawner as adopted children; they are distinguished by process group and
//! by mark. The daemons of a task that still runs are left alone. This machine does not know
//! clocks, signals, `/proc` or the socket. Next: `server`, which drives it.

use std::collections::BTreeMap;

use crate::limits::{LEFT_NAMED_MAX, LEFTOVERS_MS_MAX};
use crate::{Cookie, Exit, Left, Report};

/// What the machine wants done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Kill this child; answer with `on_kill_failed` when that is not permitted.
    Kill(u32),
    /// Report to the engine.
    Report(Report),
}

/// What is known of an adopted child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    pub pid: u32,
    pub group: u32,
    /// The value of the cookie's variable.
    pub marks: Option<Vec<u8>>,
    pub command: String,
}

/// The tasks and adopted children of one spawner. Times are milliseconds of any clock.
pub(crate) struct Ledger {
    cookie: Cookie,
    tasks: BTreeMap<u64, Task>,
    by_pid: BTreeMap<u32, u64>,
    adopted: BTreeMap<u32, Adopted>,
}

struct Task {
    pid: u32,
    name: String,
    state: State,
    left: Vec<Left>,
    left_count: u32,
    signalled: Signalled,
}

/// Whom the engine signalled: those that die of it are no news.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signalled {
    Nobody,
    Group,
    Tree,
}

enum State {
    Running,
    Ending { exit: Exit, deadline_ms: u64 },
}

struct Adopted {
    owner: Owner,
    group: u32,
    command: String,
    doomed: Doom,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Task(u64),
    /// It carries this run's mark, but its task is over.
    PastTask,
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doom {
    No,
    Dying,
    /// It may not be killed, so the spawner does not wait for its end.
    Untouchable,
}

impl Ledger {
    /// A ledger without tasks.
    pub(crate) fn new(cookie: Cookie) -> Ledger {
        let (tasks, by_pid, adopted) = Default::default();
        Ledger {
            cookie,
            tasks,
            by_pid,
            adopted,
        }
    }

    /// Whether the number is in use.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.tasks.contains_key(&id)
    }

    /// The first process of a task and the task's name, while that process can be signalled.
    pub(crate) fn running(&self, id: u64) -> Option<(u32, &str)> {
        let task = self.tasks.get(&id)?;
        matches!(task.state, State::Running).then_some((task.pid, task.name.as_str()))
    }

    /// The first processes of all running tasks.
    pub(crate) fn running_pids(&self) -> impl Iterator<Item = u32> {
        let running = |task: &&Task| matches!(task.state, State::Running);
        self.tasks.values().filter(running).map(|task| task.pid)
    }

    /// The adopted children of a task.
    pub(crate) fn adopted_by(&self, id: u64) -> impl Iterator<Item = u32> {
        let owned = move |adopted: &Adopted| adopted.owner == Owner::Task(id);
        self.adopted
            .iter()
            .filter(move |(_, adopted)| owned(adopted))
            .map(|(&pid, _)| pid)
    }

    /// A task's first process was started.
    pub(crate) fn on_started(&mut self, id: u64, pid: u32, name: &str) {
        let (name, state) = (name.to_owned(), State::Running);
        let task = Task {
            pid,
            name,
            state,
            left: Vec::new(),
            left_count: 0,
            signalled: Signalled::Nobody,
        };
        let before = self.tasks.insert(id, task);
        assert!(before.is_none(), "task {id} is started twice");
        self.by_pid.insert(pid, id);
    }

    /// The engine sent a signal to the process group of a task.
    pub(crate) fn on_group_signalled(&mut self, id: u64) {
        if let Some(task) = self.tasks.get_mut(&id)
            && task.signalled == Signalled::Nobody
        {
            task.signalled = Signalled::Group;
        }
    }

    /// The engine requests that the whole tree of a task is killed.
    pub(crate) fn on_tree_killed(&mut self, id: u64) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.signalled = Signalled::Tree;
        }
    }

    /// A child was collected.
    pub(crate) fn on_reaped(&mut self, now_ms: u64, pid: u32, exit: Exit) {
        self.adopted.remove(&pid);
        if let Some(id) = self.by_pid.remove(&pid) {
            let task = self
                .tasks
                .get_mut(&id)
                .expect("a first process has its task");
            task.state = State::Ending {
                exit,
                deadline_ms: now_ms + LEFTOVERS_MS_MAX,
            };
        }
    }

    /// Whether a look at the children is due: some task is ending.
    pub(crate) fn wants_look(&self) -> bool {
        self.tasks
            .values()
            .any(|task| matches!(task.state, State::Ending { .. }))
    }

    /// When the machine must be settled again although nothing happened.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let deadline = |task: &Task| match task.state {
            State::Ending { deadline_ms, .. } => Some(deadline_ms),
            State::Running => None,
        };
        self.tasks.values().filter_map(deadline).min()
    }

    /// Which of these children must be traced: adopted ones whose owner is not known.
    pub(crate) fn strangers(&self, children: &[u32]) -> Vec<u32> {
        let known = |pid: &u32| {
            let adopted = self.adopted.get(pid);
            self.by_pid.contains_key(pid)
                || adopted.is_some_and(|a| a.owner != Owner::Unknown || a.doomed != Doom::No)
        };
        children.iter().copied().filter(|pid| !known(pid)).collect()
    }

    /// Whether a task or an adopted child has this number.
    pub(crate) fn knows(&self, pid: u32) -> bool {
        self.by_pid.contains_key(&pid) || self.adopted.contains_key(&pid)
    }

    /// Whether an adopted child was traced before.
    pub(crate) fn has_adopted(&self, pid: u32) -> bool {
        self.adopted.contains_key(&pid)
    }

    /// An adopted child was traced.
    pub(crate) fn on_traced(&mut self, trace: Trace) {
        let owner = self.owner_of(&trace);
        let Trace {
            pid,
            group,
            command,
            ..
        } = trace;
        let adopted = Adopted {
            owner,
            group,
            command,
            doomed: Doom::No,
        };
        self.adopted.insert(pid, adopted);
    }

    fn owner_of(&self, trace: &Trace) -> Owner {
        let mark = trace
            .marks
            .as_deref()
            .and_then(|marks| self.cookie.task_in(marks));
        let named = |task: &Task| mark.is_some_and(|mark| mark == task.name.as_bytes());
        let owns = |task: &Task| task.pid == trace.group || named(task);
        match self.tasks.iter().find(|(_, task)| owns(task)) {
            Some((&id, _)) => Owner::Task(id),
            None if mark.is_some() => Owner::PastTask,
            None => Owner::Unknown,
        }
    }

    /// A child may not be killed.
    pub(crate) fn on_kill_failed(&mut self, pid: u32) {
        if let Some(adopted) = self.adopted.get_mut(&pid) {
            adopted.doomed = Doom::Untouchable;
        }
    }

    /// Dooms processes without an owner, and reports the tasks that ended with nothing left.
    pub(crate) fn settle(&mut self, now_ms: u64, actions: &mut Vec<Action>) {
        self.doom_leftovers(actions);
        let over = |id: u64, task: &Task| match task.state {
            State::Running => false,
            State::Ending { deadline_ms, .. } => now_ms >= deadline_ms || !self.waits(id),
        };
        let over: Vec<u64> = self
            .tasks
            .iter()
            .filter(|(id, task)| over(**id, task))
            .map(|(&id, _)| id)
            .collect();
        for id in over {
            let task = self.tasks.remove(&id).expect("it was just found");
            let State::Ending { exit, .. } = task.state else {
                continue;
            };
            let Task {
                pid,
                left,
                left_count,
                ..
            } = task;
            actions.push(Action::Report(Report::Exited {
                id,
                pid,
                exit,
                left,
                left_count,
            }));
        }
    }

    fn waits(&self, id: u64) -> bool {
        let mut adopted = self.adopted.values();
        adopted.any(|adopted| adopted.owner == Owner::Task(id) && adopted.doomed == Doom::Dying)
    }

    fn doom_leftovers(&mut self, actions: &mut Vec<Action>) {
        let nobody_runs = self.running_pids().next().is_none();
        let ending = |task: &Task| matches!(task.state, State::Ending { .. });
        let heir = self
            .tasks
            .iter()
            .find(|(_, task)| ending(task))
            .map(|(&id, _)| id);
        for (&pid, adopted) in &mut self.adopted {
            let forfeit = match adopted.owner {
                Owner::Task(id) => self.tasks.get(&id).is_none_or(ending),
                Owner::PastTask => true,
                Owner::Unknown => nobody_runs,
            };
            if adopted.doomed != Doom::No || !forfeit {
                continue;
            }
            adopted.doomed = Doom::Dying;
            actions.push(Action::Kill(pid));
            if let (Owner::PastTask | Owner::Unknown, Some(heir)) = (adopted.owner, heir) {
                adopted.owner = Owner::Task(heir);
            }
            if let Owner::Task(id) = adopted.owner
                && let Some(task) = self.tasks.get_mut(&id)
            {
                task.name_left(pid, adopted);
            }
        }
    }
}

impl Task {
    fn name_left(&mut self, pid: u32, adopted: &Adopted) {
        let expected = match self.signalled {
            Signalled::Nobody => false,
            Signalled::Group => adopted.group == self.pid,
            Signalled::Tree => true,
        };
        if expected {
            return;
        }
        self.left_count += 1;
        if self.left.len() < LEFT_NAMED_MAX {
            self.left.push(Left {
                pid,
                command: adopted.command.clone(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    const EXIT: Exit = Exit {
        status: Status::Code(0),
        user_us: 1,
        system_us: 2,
        resident_bytes_max: 3,
    };

    fn ledger(tasks: &[(u64, u32, &str)]) -> Ledger {
        let mut ledger = Ledger::new(Cookie::new("run").unwrap());
        for (id, pid, name) in tasks {
            ledger.on_started(*id, *pid, name);
        }
        ledger
    }

    fn trace(pid: u32, group: u32, marks: &str) -> Trace {
        let marks = (!marks.is_empty()).then(|| marks.as_bytes().to_vec());
        Trace {
            pid,
            group,
            marks,
            command: format!("c{pid}"),
        }
    }

    fn settled(ledger: &mut Ledger, now_ms: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        ledger.settle(now_ms, &mut actions);
        actions
    }

    fn exited(id: u64, pid: u32, left: &[u32]) -> Action {
        let left: Vec<_> = left
            .iter()
            .map(|&pid| Left {
                pid,
                command: format!("c{pid}"),
            })
            .collect();
        let left_count = left.len() as u32;
        Action::Report(Report::Exited {
            id,
            pid,
            exit: EXIT,
            left,
            left_count,
        })
    }

    #[test]
    fn task_without_leftovers_is_reported_at_once() {
        let mut ledger = ledger(&[(1, 10, "a")]);
        ledger.on_reaped(0, 10, EXIT);
        assert_eq!(settled(&mut ledger, 0), [exited(1, 10, &[])]);
        assert!(!ledger.has(1) && !ledger.wants_look());
    }

    #[test]
    fn leftover_is_killed_first_and_named_when_it_is_gone() {
        let mut ledger = ledger(&[(1, 10, "a")]);
        ledger.on_reaped(0, 10, EXIT);
        ledger.on_traced(trace(11, 11, "run:a"));
        assert_eq!(settled(&mut ledger, 0), [Action::Kill(11)]);
        assert_eq!(settled(&mut ledger, 1), []);
        ledger.on_reaped(2, 11, EXIT);
        assert_eq!(settled(&mut ledger, 2), [exited(1, 10, &[11])]);
    }

    #[test]
    fn daemon_of_a_running_task_is_spared_until_that_task_ends() {
        let mut ledger = ledger(&[(1, 10, "a"), (2, 20, "b")]);
        ledger.on_reaped(0, 20, EXIT);
        ledger.on_traced(trace(11, 11, "run:a"));
        assert_eq!(settled(&mut ledger, 0), [exited(2, 20, &[])]);
        ledger.on_reaped(1, 10, EXIT);
        assert_eq!(settled(&mut ledger, 1), [Action::Kill(11)]);
    }

    #[test]
    fn leftover_without_a_mark_is_known_by_its_group() {
        let mut ledger = ledger(&[(1, 10, "a"), (2, 20, "b")]);
        ledger.on_reaped(0, 10, EXIT);
        ledger.on_traced(trace(11, 10, ""));
        assert_eq!(settled(&mut ledger, 0), [Action::Kill(11)]);
    }

    #[test]
    fn stranger_is_spared_while_anybody_runs_and_asked_about_again() {
        let mut ledger = ledger(&[(1, 10, "a"), (2, 20, "b")]);
        ledger.on_reaped(0, 10, EXIT);
        ledger.on_traced(trace(11, 11, ""));
        assert_eq!(settled(&mut ledger, 0), [exited(1, 10, &[])]);
        assert_eq!(ledger.strangers(&[20, 11]), [11]);
        ledger.on_reaped(1, 20, EXIT);
        assert_eq!(settled(&mut ledger, 1), [Action::Kill(11)]);
        ledger.on_reaped(2, 11, EXIT);
        assert_eq!(settled(&mut ledger, 2), [exited(2, 20, &[11])]);
    }

    #[test]
    fn leftover_of_a_task_that_is_over_is_killed_although_others_run() {
        let mut ledger = ledger(&[(1, 10, "a"), (2, 20, "b")]);
        ledger.on_reaped(0, 10, EXIT);
        assert_eq!(settled(&mut ledger, 0), [exited(1, 10, &[])]);
        ledger.on_traced(trace(11, 11, "run:a"));
        assert_eq!(settled(&mut ledger, 1), [Action::Kill(11)]);
    }

    #[test]
    fn leftover_that_does_not_die_holds_the_report_back_until_the_deadline() {
        let mut ledger = ledger(&[(1, 10, "a")]);
        ledger.on_reaped(5, 10, EXIT);
        ledger.on_traced(trace(11, 11, "run:a"));
        settled(&mut ledger, 5);
        let deadline_ms = ledger.deadline_ms().unwrap();
        assert_eq!(settled(&mut ledger, deadline_ms - 1), []);
        assert_eq!(settled(&mut ledger, deadline_ms), [exited(1, 10, &[11])]);
    }

    #[test]
    fn leftover_that_may_not_be_killed_is_named_and_not_waited_for() {
        let mut ledger = ledger(&[(1, 10, "a")]);
        ledger.on_reaped(0, 10, EXIT);
        ledger.on_traced(trace(11, 11, "run:a"));
        settled(&mut ledger, 0);
        ledger.on_kill_failed(11);
        assert_eq!(settled(&mut ledger, 0), [exited(1, 10, &[11])]);
    }

    #[test]
    fn leftovers_of_a_killed_tree_are_no_news() {
        let mut ledger = ledger(&[(1, 10, "a")]);
        ledger.on_tree_killed(1);
        ledger.on_reaped(0, 10, EXIT);
        ledger.on_traced(trace(11, 11, "run:a"));
        assert_eq!(settled(&mut ledger, 0), [Action::Kill(11)]);
        ledger.on_reaped(1, 11, EXIT);
        assert_eq!(settled(&mut ledger, 1), [exited(1, 10, &[])]);
    }

    #[test]
    fn members_of_a_signalled_group_are_no_news_but_those_that_fled_are() {
        let mut ledger = ledger(&[(1, 10, "a")]);
        ledger.on_group_signalled(1);
        ledger.on_reaped(0, 10, EXIT);
        ledger.on_traced(trace(11, 10, "run:a"));
        ledger.on_traced(trace(12, 12, "run:a"));
        assert_eq!(
            settled(&mut ledger, 0),
            [Action::Kill(11), Action::Kill(12)]
        );
        ledger.on_reaped(1, 11, EXIT);
        ledger.on_reaped(1, 12, EXIT);
        assert_eq!(settled(&mut ledger, 1), [exited(1, 10, &[12])]);
    }

    #[test]
    fn many_leftovers_are_counted_and_some_named() {
        let mut ledger = ledger(&[(1, 10, "a")]);
        ledger.on_reaped(0, 10, EXIT);
        (100..200).for_each(|pid| ledger.on_traced(trace(pid, pid, "run:a")));
        settled(&mut ledger, 0);
        (100..200).for_each(|pid| ledger.on_reaped(0, pid, EXIT));
        let actions = settled(&mut ledger, 0);
        let [
            Action::Report(Report::Exited {
                left, left_count, ..
            }),
        ] = &actions[..]
        else {
            panic!("{actions:?}")
        };
        assert_eq!((left.len(), *left_count), (LEFT_NAMED_MAX, 100));
    }
}
