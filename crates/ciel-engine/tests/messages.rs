//! Everything that home and site say to each other can be encoded, and comes out as it went in.

#![allow(missing_docs)]

use std::fmt::Debug;
use std::sync::Arc;

use ciel_engine::message::{Notice, Offer, ToHome, ToSite};
use ciel_graph::{self as graph, Ahead, Assignment, Awaited, Entry, Output};
use ciel_model::{
    AttemptNumber, Class, Descriptor, Failure, FailureKind, Form, Handle, Label, Name, OrderLabel,
    Pairing, Pool, Resolution, Resources, SingleReader, StrandKey, TaskKey, Value, WaitEnd,
};
use ciel_node::{AttemptKey, Capacity, Slot, WorkerKey};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

const KINDS_TO_SITE: u8 = 14;

const KINDS_TO_HOME: u8 = 10;

/// What the fields of a message are made from.
#[derive(Clone, Debug)]
struct Seed {
    number: u64,
    small: u32,
    bytes: Vec<u8>,
    flag: bool,
}

impl Seed {
    fn attempt(&self) -> AttemptKey {
        AttemptKey {
            task: TaskKey(self.number),
            number: AttemptNumber(self.small),
        }
    }

    fn slot(&self) -> Slot {
        match self.small % 3 {
            0 => Slot::Thread,
            1 => Slot::Process,
            _ => Slot::Worker(WorkerKey(self.number)),
        }
    }

    fn label(&self) -> Label {
        Label {
            what: "t".into(),
            name: Name(u128::from(self.number) << 40),
        }
    }

    fn failure(&self) -> Failure {
        Failure::new(FailureKind::TaskError, self.label(), "failed").with_hint("none")
    }

    fn known(&self) -> Vec<(Handle, Resolution)> {
        let value = Value::inline(Form::Json, self.bytes.clone());
        let name = self.label().name;
        let ready = Resolution::Ready { name, value };
        let failed = Resolution::Failed(Arc::new(self.failure()));
        vec![(Handle(self.small), ready), (Handle(1), failed)]
    }

    fn class(&self) -> Class {
        match self.flag {
            true => Class::Pooled(Pool::new("p", 2)),
            false => Class::Process,
        }
    }

    fn resources(&self) -> Resources {
        Resources {
            millicores: self.small,
            ..Resources::default()
        }
    }

    fn ended(&self) -> Option<WaitEnd> {
        self.flag.then(|| WaitEnd {
            cancels: false,
            places: vec![self.small],
            timed_out: true,
            rest: true,
        })
    }

    fn assignment(&self) -> Box<Assignment> {
        let entry = match self.small % 4 {
            0 => Entry::Start(self.known()),
            1 => Entry::Replay {
                inputs: self.known(),
                facts: Vec::new(),
                until: self.small.into(),
            },
            2 => Entry::Restore {
                bytes: self.bytes.clone().into(),
                answers: self.known(),
                facts: Vec::new(),
            },
            _ => Entry::Resume(self.known()),
        };
        Box::new(Assignment {
            task: TaskKey(self.number),
            attempt: AttemptNumber(self.small),
            strand: StrandKey(self.number),
            label: self.label(),
            position: Name(3),
            next_action: self.number,
            next_handle: Handle(self.small),
            descriptor: Arc::new(Descriptor::plain("p", self.class(), "t", b"t".as_slice())),
            entry,
            streams: Vec::new(),
            ended: self.ended(),
        })
    }

    fn ahead(&self) -> Ahead {
        Ahead {
            assignment: self.assignment(),
            awaited: vec![Awaited {
                input: Handle(0),
                producer: TaskKey(self.number),
                output: self.small,
            }],
        }
    }

    fn to_site(&self, kind: u8) -> ToSite {
        let attempt = self.attempt();
        let label = OrderLabel {
            position: self.number,
            epoch: u64::from(self.small),
        };
        match kind {
            0 => ToSite::Offer(Box::new(Offer {
                attempt,
                label,
                class: self.class(),
                resources: self.resources(),
                replay_us: self.flag.then_some(self.number),
                is_root: self.flag,
                is_limited: !self.flag,
                near: [Name(7).into()].into(),
                begun_in: self.flag.then_some(attempt),
                pairing: Pairing {
                    reads: self.flag.then_some(attempt.task),
                    reader: SingleReader::Waits,
                },
            })),
            1 => ToSite::Relabel { attempt, label },
            2 => ToSite::Withdraw { attempt },
            3 => ToSite::Begin(self.assignment()),
            4 => ToSite::Refuse { attempt },
            5 => ToSite::Prefetch {
                behind: attempt,
                starts: vec![self.ahead()],
            },
            6 => ToSite::Continue {
                attempt,
                answers: self.known(),
                ended: self.ended(),
            },
            7 => ToSite::Recalled {
                attempt,
                known: self.known(),
            },
            8 => ToSite::Notify {
                attempt,
                notice: match self.flag {
                    true => Notice::FewChildren,
                    false => Notice::Settled(Handle(self.small)),
                },
            },
            9 => ToSite::Suspend {
                attempt,
                parked: self.flag,
            },
            10 => ToSite::Stop { attempt },
            11 => ToSite::ReadOn { attempt },
            12 => ToSite::ReaderWaits { attempt },
            _ => ToSite::JobEnded,
        }
    }

    fn to_home(&self, kind: u8) -> ToHome {
        let attempt = self.attempt();
        match kind {
            0 => ToHome::Joined {
                capacity: Capacity {
                    resources: self.resources(),
                    threads: self.small,
                    serial: self.flag,
                },
            },
            1 => ToHome::Placed {
                attempt,
                slot: self.slot(),
            },
            2 => ToHome::Acted(graph::Event::TaskFinished {
                task: attempt.task,
                attempt: attempt.number,
                outputs: vec![Output::Value(Value::inline(Form::Json, self.bytes.clone()))],
                printed: self.flag,
                audit: None,
            }),
            3 => ToHome::Wrote {
                attempt,
                after: self.number,
                bytes: self.bytes.clone().into(),
            },
            4 => ToHome::TooSmall {
                attempt,
                lacking: "cores".to_owned(),
            },
            5 => ToHome::ContinuationLost { task: attempt.task },
            6 => ToHome::SpawnedBegun(graph::Event::TaskRecalled {
                task: attempt.task,
                attempt: attempt.number,
            }),
            7 => ToHome::WorkerCaches {
                worker: WorkerKey(self.number),
                held: vec![self.label().name],
                dropped: vec![Name(u128::from(self.small))],
            },
            8 => ToHome::CachesLost {
                worker: WorkerKey(self.number),
            },
            _ => ToHome::MayPrefetch {
                behind: attempt,
                line: vec![attempt.task],
                lent: vec![attempt],
                keeps_strands: self.flag,
            },
        }
    }
}

fn seeds() -> impl Strategy<Value = Seed> {
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    (any::<u64>(), any::<u32>(), bytes, any::<bool>()).prop_map(|(number, small, bytes, flag)| {
        Seed {
            number,
            small,
            bytes,
            flag,
        }
    })
}

fn assert_same<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: &T) {
    let bytes = postcard::to_stdvec(message).unwrap();
    let (back, rest) = postcard::take_from_bytes::<T>(&bytes).unwrap();
    assert_eq!(&back, message);
    assert!(rest.is_empty(), "{message:?} leaves {rest:?}");
}

proptest! {
    #[test]
    fn messages_come_out_as_they_went_in(seed in seeds()) {
        for kind in 0..KINDS_TO_SITE {
            assert_same(&seed.to_site(kind));
        }
        for kind in 0..KINDS_TO_HOME {
            assert_same(&seed.to_home(kind));
        }
    }
}
