//! A home with three sites: which of them a task goes to, by what each has of its inputs.

#![allow(missing_docs)]

use std::sync::Arc;

use ciel_coordinator::Coordinator;
use ciel_engine::home::{FromHome, Home};
use ciel_engine::message::{SiteKey, ToHome, ToSite};
use ciel_graph::{self as graph, Output, Policy, Step};
use ciel_model::{
    AttemptNumber, Class, Content, Descriptor, Form, Handle, Input, Name, Options, Pool, Resources,
    SegmentedQueue, TaskKey, Value, Weights,
};
use ciel_node::{AttemptKey, Capacity, Slot, WorkerKey};

const ROOT: AttemptKey = attempt_of(0);

const fn attempt_of(task: u64) -> AttemptKey {
    AttemptKey {
        task: TaskKey(task),
        number: AttemptNumber(0),
    }
}

/// Three sites of one core each. The root runs at site 0, and each task that it spawns is a process
/// at the site that it goes to.
struct Sites {
    home: Home,
    spawned: u64,
}

/// What a site with so many cores says first.
fn joined(cores: u32) -> ToHome {
    let resources = Resources {
        millicores: 1000 * cores,
        ..Resources::default()
    };
    let capacity = Capacity {
        resources,
        threads: 1,
        serial: false,
    };
    ToHome::Joined { capacity }
}

impl Sites {
    fn new() -> Sites {
        let state = Coordinator::new(Policy::default(), false);
        let mut sites = Sites {
            home: Home::new(state),
            spawned: 0,
        };
        for site in 0..3 {
            assert_eq!(sites.hear(site, joined(1)), None);
        }
        let mut out = SegmentedQueue::default();
        let root = graph::Event::RootSubmitted {
            name: Name::of_root(b"test"),
            descriptor: Arc::new(Descriptor::plain(
                "s",
                Class::Coordination,
                "s",
                b"s".as_slice(),
            )),
        };
        sites.home.tell(0, root, &mut out);
        assert_eq!(offered(out), Some(0));
        sites.begin(0, 0);
        sites
    }

    /// A site says something; the site to which a task is offered then.
    fn hear(&mut self, site: u32, message: ToHome) -> Option<u32> {
        let mut out = SegmentedQueue::default();
        self.home.receive(0, SiteKey(site), message, &mut out);
        self.home.check_all();
        offered(out)
    }

    fn begin(&mut self, site: u32, task: u64) {
        let slot = match task {
            0 => Slot::Thread,
            _ => Slot::Process,
        };
        let attempt = attempt_of(task);
        self.hear(site, ToHome::Placed { attempt, slot });
    }

    /// The root spawns a task that takes the outputs of those tasks; its key, and where it goes.
    fn spawn(&mut self, class: Class, inputs: &[Input]) -> (u64, u32) {
        self.spawn_weighing(class, inputs, [])
    }

    /// The same; its program gives its inputs these locality weights.
    fn spawn_weighing<const N: usize>(
        &mut self,
        class: Class,
        inputs: &[Input],
        weights: [Option<u32>; N],
    ) -> (u64, u32) {
        self.spawn_as(
            Descriptor::plain("p", class, "t", b"t".as_slice()).with(|it| {
                it.inputs = inputs.to_vec();
                it.options = Arc::new(Options {
                    weights: Weights::new(weights).into(),
                    ..Options::default()
                });
            }),
        )
    }

    /// The same of a whole call.
    fn spawn_as(&mut self, descriptor: Descriptor) -> (u64, u32) {
        let action = self.spawned;
        self.spawned += 1;
        let step = Step::Spawn {
            action,
            first: Handle(action as u32),
            descriptor: Arc::new(descriptor),
        };
        let event = graph::Event::TaskStepped {
            task: ROOT.task,
            attempt: ROOT.number,
            step,
        };
        let site = self.hear(0, ToHome::Acted(event)).expect("it is offered");
        (self.spawned, site)
    }

    /// A task ends at its site with a file of so many bytes.
    fn end(&mut self, (task, site): (u64, u32), length: u64) {
        let content = Content::File {
            name: file_of(task),
            length,
            digest: None,
        };
        let value = Value {
            content,
            ..Value::inline(Form::Bytes, b"".as_slice())
        };
        let event = graph::Event::TaskFinished {
            task: TaskKey(task),
            attempt: AttemptNumber(0),
            outputs: vec![Output::Value(value)],
            printed: false,
            audit: None,
        };
        assert_eq!(self.hear(site, ToHome::Acted(event)), None);
    }

    /// Tasks at sites 1 and 2, which have ended with files of these lengths.
    fn with_files(lengths: [u64; 2]) -> Sites {
        let mut sites = Sites::new();
        let made = [(); 2].map(|()| sites.spawn(Class::Process, &[]));
        assert_eq!(made, [(1, 1), (2, 2)], "each goes to a site that is idle");
        for ((task, site), length) in made.into_iter().zip(lengths) {
            sites.begin(site, task);
            sites.end((task, site), length);
        }
        sites
    }

    /// Where a task goes that takes both files.
    fn spawn_reader(&mut self) -> (u64, u32) {
        self.spawn(Class::Process, &[0, 1].map(Handle).map(Input::value))
    }

    /// The same; its program weighs the first file so.
    fn spawn_weighing_reader(&mut self, percent: u32) -> (u64, u32) {
        let inputs = [0, 1].map(Handle).map(Input::value);
        self.spawn_weighing(Class::Process, &inputs, [Some(percent)])
    }

    fn caches(&mut self, site: u32, held: &[u64], dropped: &[u64]) {
        let files = |tasks: &[u64]| tasks.iter().copied().map(file_of).collect();
        let message = ToHome::WorkerCaches {
            worker: WorkerKey(7),
            held: files(held),
            dropped: files(dropped),
        };
        assert_eq!(self.hear(site, message), None);
    }

    /// Where a task of a pool goes that names the second file.
    fn spawn_pooled(&mut self) -> (u64, u32) {
        let class = Class::Pooled(Pool::new("p", 1));
        self.spawn(class, &[Input::reference(Handle(1))])
    }
}

/// The site to which a task is offered, if one is.
fn offered(mut out: SegmentedQueue<FromHome>) -> Option<u32> {
    std::iter::from_fn(|| out.pop_front()).find_map(|told| match told {
        FromHome::Send(site, ToSite::Offer(_)) => Some(site.0),
        _ => None,
    })
}

fn file_of(task: u64) -> Name {
    Name(u128::from(task) << 64)
}

#[test]
fn task_goes_to_the_idle_site_that_has_most_bytes_of_its_inputs() {
    assert_eq!(Sites::with_files([1000, 999]).spawn_reader().1, 1);
    assert_eq!(Sites::with_files([999, 1000]).spawn_reader().1, 2);
}

#[test]
fn task_goes_to_the_idle_site_that_has_what_its_program_weighs_most() {
    assert_eq!(
        Sites::with_files([300, 999]).spawn_weighing_reader(400).1,
        1
    );
    assert_eq!(
        Sites::with_files([300, 999]).spawn_weighing_reader(300).1,
        2
    );
    assert_eq!(Sites::with_files([999, 1]).spawn_weighing_reader(0).1, 2);
}

/// A weight of 0 says that the task makes no use of what workers keep of an input.
#[test]
fn file_without_weight_is_not_near() {
    let mut sites = Sites::with_files([1, 1000]);
    sites.caches(2, &[2], &[]);
    let class = Class::Pooled(Pool::new("p", 1));
    let inputs = [Input::reference(Handle(1))];
    let unweighed = sites.spawn_weighing(class, &inputs, [Some(0)]);
    assert_eq!(unweighed.1, 1, "the first of the idle sites");
}

#[test]
fn task_does_not_wait_for_the_site_that_has_its_inputs_while_another_one_is_idle() {
    let mut sites = Sites::with_files([1, 1000]);
    assert_eq!(sites.spawn_reader().1, 2);
    assert_eq!(sites.spawn_reader().1, 1);
}

#[test]
fn site_has_what_a_task_took_that_began_there() {
    let mut sites = Sites::with_files([1, 1000]);
    let first = sites.spawn_reader();
    let second = sites.spawn_reader();
    sites.begin(second.1, second.0);
    sites.end(second, 7);
    assert_eq!((first.1, second.1), (2, 1));
    // Site 2 is as idle as site 1 when its reader has ended, too.
    sites.begin(first.1, first.0);
    sites.end(first, 7);
    assert_eq!(
        sites.spawn_reader().1,
        1,
        "both have all, and it comes first"
    );
}

#[test]
fn site_that_is_lost_has_nothing_any_more() {
    let mut sites = Sites::with_files([1, 1000]);
    let mut out = SegmentedQueue::default();
    sites.home.lose_site(0, SiteKey(2), &mut out);
    sites.home.check_all();
    sites.hear(2, joined(1));
    assert_eq!(sites.spawn_reader().1, 1);
}

#[test]
fn task_goes_to_the_idle_site_whose_worker_keeps_what_it_made_of_a_file() {
    let mut sites = Sites::with_files([1, 1000]);
    sites.caches(1, &[2], &[]);
    assert_eq!(sites.spawn_pooled().1, 1);

    let mut sites = Sites::with_files([1, 1000]);
    sites.caches(1, &[2], &[]);
    sites.caches(1, &[], &[2]);
    assert_eq!(sites.spawn_pooled().1, 2, "it keeps that no more");

    let mut sites = Sites::with_files([1, 1000]);
    sites.caches(1, &[2], &[]);
    let worker = WorkerKey(7);
    assert_eq!(sites.hear(1, ToHome::CachesLost { worker }), None);
    assert_eq!(sites.spawn_pooled().1, 2, "its worker is gone");
}

#[test]
fn task_goes_to_a_site_that_is_large_enough_although_others_do_nothing() {
    let mut sites = Sites::new();
    sites.hear(3, joined(2));
    let large = || {
        let call = Descriptor::plain("p", Class::Process, "t", b"t".as_slice());
        call.with(|it| Arc::make_mut(&mut it.options).resources.millicores = 2000)
    };
    for task in 1..=3 {
        assert_eq!(sites.spawn_as(large()), (task, 3));
    }
    let (_, site) = sites.spawn(Class::Process, &[]);
    assert_ne!(site, 3);
}
