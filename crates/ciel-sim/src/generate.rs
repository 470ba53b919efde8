//! Random scenarios: one seed, one scenario.
//!
//! Programs are small (at most [`WEIGHT_MAX`] tasks) and use every feature now and then; faults
//! are few. It does not know what is right or wrong. Read next: `judge`.

use crate::program::{Act, Definition, Fault, Kind, Needs, Scenario};
use crate::random::Random;
use crate::row::processes;

/// Tasks that a random program spawns at most.
pub const WEIGHT_MAX: usize = 60;

/// References that a task is assumed to be given when its acts are chosen.
const INPUTS_ASSUMED: usize = 2;

/// References that are released are among so many.
const RELEASED_BELOW: usize = 8;

/// The scenario of a seed for a world of several sites: all strands can be replayed, so that no
/// site is needed, and workers receive starts ahead.
pub fn scenario_at_sites(seed: u64) -> Scenario {
    let mut scenario = scenario(seed);
    for task in &mut scenario.tasks {
        task.replayable = true;
        // Readers ask the home for what they read, so they are for a world with one site.
        if task.needs == Needs::Streams {
            task.needs = Needs::Everything;
        }
        task.streams = None;
    }
    scenario.ahead = true;
    match seed % 8 {
        0 => scenario.tasks = chain(),
        4 => scenario.tasks = processes(seed, 30),
        _ => return scenario,
    }
    scenario.serial = false;
    scenario
}

/// A root that spawns short tasks of one pool, each of which needs the one before it.
fn chain() -> Vec<Definition> {
    let links = (0..12).map(|index: usize| {
        let before = index.checked_sub(1);
        Act::Spawn(1, before.into_iter().collect())
    });
    let root = Definition {
        acts: links.chain([Act::Get(11)]).collect(),
        ..Definition::default()
    };
    let link = Definition {
        kind: Kind::Pool('a'),
        needs: Needs::Everything,
        acts: vec![Act::Print("link,".to_string())],
        ..Definition::default()
    };
    vec![root, link]
}

/// The scenario of that seed.
pub fn scenario(seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let slots = [1, 2, 4][random.below(3)];
    let serial = random.one_in(6);
    let policy = random.below(6);
    let count = 3 + random.below(10);
    let mut tasks: Vec<Definition> = (0..count)
        .map(|index| options(&mut random, index))
        .collect();
    let ahead = !serial && share_a_pool(seed, &mut tasks);
    let mut weights = vec![1; count];
    for index in (0..count).rev() {
        let acts = Acts::new(&mut random, index, &tasks, &mut weights).all();
        tasks[index].acts = acts;
    }
    let mut faults = faults(&mut random);
    let in_place = add_rollbacks(seed, &mut faults);
    let checkpoints = random.one_in(2);
    let waits = !serial && seed % 12 == 3;
    if waits {
        tasks = parents(seed);
    }
    let cancels = seed % 12 == 7;
    if cancels {
        tasks = cancellers(seed);
        faults.retain(|(_, fault)| *fault != Fault::CancelJob);
    }
    let streams = seed % 12 == 11;
    if streams {
        tasks = pipelines(seed);
        // Only a retry of their spawner undoes the spawn of a reader, and this one has no retries.
        faults.retain(|(_, fault)| !matches!(fault, Fault::RollBack(_)));
    }
    let straggles = seed % 12 == 9;
    if straggles {
        tasks = stragglers(seed);
    }
    let processes_only = !serial && seed % 12 == 5;
    if processes_only {
        tasks = processes(seed, 8);
    }
    add_releases(seed, &mut tasks);
    weigh_inputs(seed, &mut tasks);
    Scenario {
        seed,
        slots,
        serial,
        keep_going: policy == 0,
        fail_fast: policy == 1,
        checkpoints,
        ahead,
        in_place: in_place && !waits && !cancels && !streams && !straggles && !processes_only,
        check: !straggles && seed % 5 == 2,
        stragglers: straggles || seed.is_multiple_of(4),
        held_bytes: None,
        children_max: None,
        scarce: None,
        memory: None,
        tasks,
        faults,
        expectations: Vec::new(),
    }
}

/// A root that spawns parents, each of which waits for its children while others run above it, all
/// in workers of one pool: tasks 1 to 3, of which one is pure and one asks for the first; then the
/// children, short ones and one that takes longer than a replay.
fn parents(seed: u64) -> Vec<Definition> {
    let mut random = Random::new(seed ^ 0x9a7e);
    let pooled = |acts| Definition {
        kind: Kind::Pool('a'),
        acts,
        ..Definition::default()
    };
    let count = 3 + random.below(6);
    // Each is given an object of its own, or those that are pure would share one result.
    let mut root: Vec<Act> = (0..count).map(|_| Act::Construct(Vec::new())).collect();
    root.extend((0..count).map(|given| Act::Spawn(1 + random.below(3), vec![given])));
    root.extend((count..2 * count).map(Act::Get));
    let mut tasks = vec![pooled(root)];
    for index in 1..4 {
        let count = 1 + random.below(4);
        let mut acts = vec![Act::Print(format!("{index}a,"))];
        acts.extend((0..count).map(|_| Act::Spawn(4 + random.below(3), Vec::new())));
        if index == 3 {
            acts.push(Act::First((1..=count).collect(), None));
            acts.extend((1..count).map(|_| Act::Rest(None)));
        }
        acts.extend((1..=count).map(Act::Get));
        acts.push(Act::Pause(random.below(80_000) as u64));
        acts.push(Act::Print(format!("{index}b,")));
        tasks.push(pooled(acts));
    }
    tasks[2].pure = true;
    for us in [50, 400, 9_000] {
        tasks.push(pooled(vec![Act::Pause(us), Act::Print(format!("{us},"))]));
    }
    tasks
}

/// A root that spawns pipelines of commands, or of tasks of workers, which also spawn task 1 and
/// wait for it: each but the first of one reads the one before it as a stream, to its end or not at
/// all; some streams have several readers, and the root itself is one of them. Some stages fail,
/// once or always.
fn pipelines(seed: u64) -> Vec<Definition> {
    let mut random = Random::new(seed ^ 0x57_2e_a3);
    let mut tasks = vec![Definition::default()];
    let in_workers = random.one_in(2);
    if in_workers {
        tasks.push(in_worker(vec![Act::Pause(random.below(300) as u64)]));
    }
    let (mut root, mut ends) = (Vec::new(), Vec::new());
    let mut locals = 0;
    for _ in 0..1 + random.below(3) {
        let length = 2 + random.below(4);
        let once = random.one_in(2) && !in_workers;
        for place in 0..length {
            let is_last = place + 1 == length;
            let mut stage = stage(&mut random, tasks.len(), (place, is_last), once);
            if in_workers {
                stage = Definition {
                    needs: stage.needs,
                    streams: stage.streams,
                    retries: stage.retries,
                    ..in_worker(waiting(&mut random, stage.acts, place.min(1)))
                };
            }
            let readers = match is_last && !once {
                true => 1 + random.below(3),
                false => 1,
            };
            let given = (place > 0).then(|| locals - 1);
            for _ in 0..readers {
                root.push(Act::Spawn(tasks.len(), given.into_iter().collect()));
            }
            locals += readers;
            ends.extend((locals - readers..locals).filter(|_| is_last || !once));
            tasks.push(stage);
        }
    }
    root.extend(ends.into_iter().map(Act::Catch));
    tasks[0].acts = root;
    tasks
}

/// A task of a worker, which can be replayed.
fn in_worker(acts: Vec<Act>) -> Definition {
    Definition {
        kind: Kind::Pool('a'),
        acts,
        ..Definition::default()
    }
}

/// The same acts, with up to two spawns of task 1 among them, each of which is waited for at some
/// later place; the task is given so many inputs.
fn waiting(random: &mut Random, mut acts: Vec<Act>, inputs: usize) -> Vec<Act> {
    for child in 0..random.below(3) {
        let first = if child == 0 { 0 } else { acts.len() };
        let at = first + random.below(acts.len() + 1 - first);
        acts.insert(at, Act::Spawn(1, Vec::new()));
        let at = at + 1 + random.below(acts.len() - at);
        acts.insert(at, Act::Get(inputs + child));
    }
    acts
}

fn stage(
    random: &mut Random,
    index: usize,
    (place, is_last): (usize, bool),
    once: bool,
) -> Definition {
    let retries = [0, 0, 2][random.below(3)];
    let mut acts = vec![Act::Print(format!("{index}a,"))];
    acts.push(Act::Pause(random.below(900) as u64));
    if place > 0 && !random.one_in(5) {
        acts.push(Act::Get(0));
    }
    match random.below(8) {
        0 if retries > 0 => acts.push(Act::Flake(1)),
        1 => acts.push(Act::Fail(index as u32)),
        _ => {}
    }
    acts.push(Act::Pause(random.below(900) as u64));
    acts.push(Act::Print(format!("{index}b,")));
    Definition {
        kind: Kind::Process,
        replayable: false,
        live: false,
        needs: match place {
            0 => Needs::Nothing,
            _ => Needs::Streams,
        },
        streams: (!is_last).then_some(once),
        retries,
        acts,
        ..Definition::default()
    }
}

/// A root that spawns pure tasks, of which some run for much longer than the others; what they give
/// has parts, or they print or spawn, so that not all can be overtaken.
fn stragglers(seed: u64) -> Vec<Definition> {
    let mut random = Random::new(seed ^ 0x57a6);
    let count = 8 + random.below(8);
    let mut root: Vec<Act> = (0..count).map(|_| Act::Construct(Vec::new())).collect();
    root.extend((0..count).map(|given| Act::Spawn(1, vec![given])));
    root.extend((count..2 * count).map(Act::Get));
    let root = Definition {
        replayable: true,
        acts: root,
        ..Definition::default()
    };
    let mut acts = vec![Act::Straggle(5_000)];
    let extra = random.below(6);
    acts.extend(match extra {
        0 => vec![Act::Print("1,".to_string())],
        1 => vec![Act::Spawn(2, Vec::new())],
        2 => vec![Act::Construct(vec![0]), Act::Publish(0)],
        _ => Vec::new(),
    });
    let replayable = random.one_in(2) || extra == 1;
    let task = Definition {
        kind: match random.one_in(2) {
            true => Kind::Process,
            false => Kind::Pool('a'),
        },
        pure: true,
        live: false,
        replayable,
        retries: random.below(2) as u32,
        acts,
        ..Definition::default()
    };
    vec![root, task, Definition::default()]
}

/// A root and tasks that spawn, pass on, cancel, and receive what may be cancelled; nothing fails
/// by itself. What they may name is not restricted, so many a cancellation has no effect.
fn cancellers(seed: u64) -> Vec<Definition> {
    let mut random = Random::new(seed ^ 0xca2ce1);
    let count = 3 + random.below(4);
    let task = |index| {
        let task = canceller(&mut random, index);
        let acts = canceller_acts(&mut random, index, count - index - 1, task.pure);
        Definition { acts, ..task }
    };
    (0..count).map(task).collect()
}

/// The acts of a canceller that so many definitions follow.
fn canceller_acts(random: &mut Random, index: usize, later: usize, pure: bool) -> Vec<Act> {
    let mut locals = if index == 0 { 0 } else { INPUTS_ASSUMED };
    let mut acts = vec![Act::Print(format!("{index}a,"))];
    let spawns = if later == 0 { 0 } else { 1 + random.below(3) };
    for _ in 0..spawns {
        let given = some_of(random, locals);
        acts.push(Act::Spawn(index + 1 + random.below(later), given));
        locals += 1;
        acts.push(Act::Print(format!("{index}b,")));
    }
    for _ in 0..2 + random.below(4) {
        acts.push(match random.below(10) {
            0..2 => Act::Pause(random.below(1500) as u64),
            2..7 if pure => Act::Ask,
            2..6 => Act::Cancel(some_of(random, locals)),
            6 => Act::First(some_of(random, locals), Some(random.below(400) as u64)),
            7 => Act::Construct(some_of(random, locals)),
            8 => Act::Watch(random.below(locals.max(1))),
            _ => Act::Catch(random.below(locals.max(1))),
        });
        locals += usize::from(matches!(acts.last(), Some(Act::Construct(_))));
    }
    acts.push(Act::Print(format!("{index}c,")));
    acts.push(match random.below(6) {
        0 if locals > 0 => Act::Delegate(random.below(locals)),
        1 if later > 0 => Act::Tail(index + 1 + random.below(later), some_of(random, locals)),
        2 if locals > 0 => Act::Get(random.below(locals)),
        _ => Act::Return(some_of(random, locals)),
    });
    acts
}

fn some_of(random: &mut Random, locals: usize) -> Vec<usize> {
    let count = random.below(3).min(locals);
    (0..count).map(|_| random.below(locals)).collect()
}

fn canceller(random: &mut Random, index: usize) -> Definition {
    let kind = match random.below(6) {
        _ if index == 0 => Kind::Thread,
        0..2 => Kind::Thread,
        2 => Kind::Process,
        _ => Kind::Pool(if random.one_in(3) { 'b' } else { 'a' }),
    };
    Definition {
        kind,
        live: random.below(10) < 7,
        lazy: index > 0 && random.one_in(8),
        pure: index > 0 && random.one_in(4),
        needs: [Needs::Nothing, Needs::Nothing, Needs::Rest][random.below(3)],
        ..Definition::default()
    }
}

/// In every other scenario most scripts run in workers of one pool, which prefetch.
fn share_a_pool(seed: u64, tasks: &mut [Definition]) -> bool {
    let mut random = Random::new(!seed);
    let ahead = random.one_in(2);
    for task in tasks.iter_mut().skip(1) {
        if ahead && task.kind == Kind::Thread && !random.one_in(4) {
            task.kind = Kind::Pool('a');
        }
    }
    ahead
}

/// In every other scenario tasks release references between their acts.
fn add_releases(seed: u64, tasks: &mut [Definition]) {
    let mut random = Random::new(seed.rotate_left(32) ^ 0x2e1ea5);
    if random.one_in(2) {
        return;
    }
    for task in tasks {
        let acts = std::mem::take(&mut task.acts);
        for act in acts {
            let spawns = matches!(act, Act::Spawn(..));
            if random.one_in(if spawns { 2 } else { 4 }) {
                let count = 1 + random.below(3);
                let which = (0..count).map(|_| random.below(RELEASED_BELOW));
                task.acts.push(Act::Release(which.collect()));
            }
            task.acts.push(act);
        }
    }
}

/// In every third scenario strands are rolled back; in every other one children run in place, which
/// is what it returns.
fn add_rollbacks(seed: u64, faults: &mut Vec<(u64, Fault)>) -> bool {
    let mut random = Random::new(seed.rotate_left(16) ^ 0x5bd1);
    let count = [0, 0, 0, 0, 2, 5][random.below(6)];
    for _ in 0..count {
        let at = random.below(2500) as u64;
        faults.push((at, Fault::RollBack(random.below(100))));
    }
    faults.sort_by_key(|(at, _)| *at);
    random.one_in(2)
}

fn options(random: &mut Random, index: usize) -> Definition {
    if index == 0 {
        return Definition::default();
    }
    let kind = match random.below(8) {
        0..4 => Kind::Thread,
        4 | 5 => Kind::Process,
        _ => Kind::Pool([b'a', b'b', b'c', b'd'][random.below(4)] as char),
    };
    let thread = kind == Kind::Thread;
    Definition {
        replayable: random.below(10) < if thread { 8 } else { 6 },
        live: random.below(10) < if thread { 7 } else { 3 },
        lazy: random.one_in(7),
        pure: random.one_in(4),
        needs: [
            Needs::Nothing,
            Needs::Nothing,
            Needs::Everything,
            Needs::Rest,
        ][random.below(4)],
        retries: if random.one_in(3) {
            1 + random.below(3) as u32
        } else {
            0
        },
        weight: 100,
        cores: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 9][random.below(16)],
        streams: None,
        timeout: !thread && random.one_in(3),
        outputs: if random.one_in(5) { 2 } else { 1 },
        acts: Vec::new(),
        kind,
    }
}

/// The first inputs of some tasks have another locality weight than the usual one.
fn weigh_inputs(seed: u64, tasks: &mut [Definition]) {
    for (index, task) in (seed / 4..).zip(tasks) {
        task.weight = [100, 0, 100, 300, 100, u32::MAX][(index % 6) as usize];
    }
}

fn faults(random: &mut Random) -> Vec<(u64, Fault)> {
    let count = [0, 0, 1, 2, 4][random.below(5)];
    let mut faults: Vec<(u64, Fault)> = (0..count)
        .map(|_| {
            let fault = match random.below(26) {
                0..8 => Fault::KillProcess,
                8..14 => Fault::KillWorker,
                14..18 => Fault::KillNode,
                18..24 => Fault::KillEngine,
                _ => Fault::CancelJob,
            };
            (random.below(2500) as u64, fault)
        })
        .collect();
    faults.sort_by_key(|(at, _)| *at);
    faults
}

/// Chooses the acts of one definition.
struct Acts<'a> {
    random: &'a mut Random,
    index: usize,
    tasks: &'a [Definition],
    weights: &'a mut [usize],
    locals: usize,
    acts: Vec<Act>,
}

impl<'a> Acts<'a> {
    fn new(
        random: &'a mut Random,
        index: usize,
        tasks: &'a [Definition],
        weights: &'a mut [usize],
    ) -> Acts<'a> {
        let locals = if index == 0 { 0 } else { INPUTS_ASSUMED };
        Acts {
            random,
            index,
            tasks,
            weights,
            locals,
            acts: Vec::new(),
        }
    }

    fn all(mut self) -> Vec<Act> {
        let count = self.random.below(10) + if self.index == 0 { 6 } else { 0 };
        for _ in 0..count {
            let act = self.one();
            let raced = matches!(act, Some(Act::First(..)));
            self.acts.extend(act);
            if raced {
                self.take_rest();
            }
        }
        let last = self.last();
        self.acts.extend(last);
        self.acts
    }

    fn one(&mut self) -> Option<Act> {
        let own = &self.tasks[self.index];
        let (retries, timeout, pure) = (own.retries, own.timeout, own.pure);
        let raced = self.acts.iter().any(Act::is_race);
        Some(match self.random.below(44) {
            0..10 => {
                let letter = (b'a' + self.acts.len() as u8 % 26) as char;
                Act::Print(format!("{}{letter},", self.index))
            }
            10..22 => {
                let (task, given) = self.child()?;
                self.locals += self.tasks[task].outputs as usize;
                Act::Spawn(task, given)
            }
            22..28 => Act::Get(self.local()),
            28..31 => Act::Catch(self.local()),
            31 | 32 => {
                let inside = self.some();
                self.locals += 1;
                Act::Construct(inside)
            }
            // The outputs of an attempt stay when another one runs its races again: the serial
            // program does not determine which of the two is right.
            33 if raced && retries > 0 => return None,
            33 => Act::Publish(self.random.below(2) as u32),
            34 => Act::Ask,
            35 | 36 => Act::Pause(self.random.below(1000) as u64),
            37 if retries > 0 => Act::Flake(1 + self.random.below(retries as usize + 1) as u32),
            38 if timeout && self.random.one_in(2) => Act::Hang,
            39 if self.random.one_in(2) => Act::Fail(self.index as u32),
            40 | 41 if !pure => Act::First(self.some(), None),
            42 if !pure => Act::First(self.some(), Some(self.random.below(500) as u64)),
            43 => Act::Watch(self.local()),
            _ => return None,
        })
    }

    /// Sometimes a task takes more of the list of which it has waited for the first.
    fn take_rest(&mut self) {
        for _ in 0..self.random.below(3) {
            let limit = self.random.one_in(3);
            let limit = limit.then(|| self.random.below(500) as u64);
            self.acts.push(Act::Rest(limit));
        }
    }

    fn last(&mut self) -> Option<Act> {
        match self.random.below(6) {
            0 | 1 => Some(Act::Return(self.some())),
            2 if self.locals > 0 => Some(Act::Delegate(self.local())),
            3 => {
                let (task, given) = self.child()?;
                self.tasks[task]
                    .may_follow()
                    .then_some(Act::Tail(task, given))
            }
            _ => None,
        }
    }

    fn child(&mut self) -> Option<(usize, Vec<usize>)> {
        let later = self.tasks.len() - self.index - 1;
        if later == 0 {
            return None;
        }
        let task = self.index + 1 + self.random.below(later);
        let weight = self.weights[self.index] + self.weights[task];
        if weight > WEIGHT_MAX {
            return None;
        }
        self.weights[self.index] = weight;
        let given = self.some();
        Some((task, given))
    }

    fn local(&mut self) -> usize {
        self.random.below(self.locals.max(1))
    }

    fn some(&mut self) -> Vec<usize> {
        some_of(self.random, self.locals)
    }
}
