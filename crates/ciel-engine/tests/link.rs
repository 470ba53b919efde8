//! Links over networks that lose, repeat and reorder; and who may speak for a site.

#![allow(missing_docs)]

use ciel_engine::link::{
    Body, Frame, FromSessions, Link, OtherIncarnation, Sessions, Timing, WINDOW,
};
use ciel_engine::message::{SiteKey, ToHome, ToSite};
use ciel_model::TaskKey;
use proptest::prelude::*;

const TIMING: Timing = Timing {
    resend_us: 100,
    beat_us: 1000,
    silence_us: 5000,
};

const SITE: SiteKey = SiteKey(1);

fn link() -> Link<u32, u32> {
    Link::new(0, 1, TIMING)
}

fn numbers(frames: &[Frame<u32>]) -> Vec<u64> {
    let number = |frame: &Frame<u32>| match frame.body {
        Body::Message(number, _) => number,
        Body::Beat | Body::Fenced => 0,
    };
    frames.iter().map(number).collect()
}

#[test]
fn message_is_sent_again_until_it_is_acknowledged() {
    let (mut near, mut far) = (link(), link());
    let mut frames = Vec::new();
    near.send(0, 7, &mut frames);
    near.tick(99, &mut frames);
    assert_eq!(numbers(&frames), [1]);
    near.tick(100, &mut frames);
    assert_eq!(numbers(&frames), [1, 1]);
    let mut messages = Vec::new();
    for frame in frames.drain(..) {
        assert_eq!(far.receive(120, frame, &mut messages), Ok(()));
    }
    assert_eq!(messages, [7]);
    // It is acknowledged soon, without waiting for the next beat.
    assert_eq!(far.next_deadline(), 145);
    far.tick(145, &mut frames);
    assert_eq!(numbers(&frames), [0]);
    assert_eq!(near.receive(150, frames.remove(0), &mut messages), Ok(()));
    near.tick(900, &mut frames);
    assert_eq!(numbers(&frames), [] as [u64; 0]);
}

#[test]
fn messages_that_come_in_another_order_are_delivered_in_theirs() {
    let (mut near, mut far) = (link(), link());
    let (mut frames, mut messages) = (Vec::new(), Vec::new());
    for message in [10, 20, 30] {
        near.send(0, message, &mut frames);
    }
    for index in [2, 1] {
        assert_eq!(far.receive(1, frames[index].clone(), &mut messages), Ok(()));
    }
    assert_eq!(messages, [] as [u32; 0]);
    assert_eq!(far.receive(2, frames[0].clone(), &mut messages), Ok(()));
    assert_eq!(messages, [10, 20, 30]);
}

#[test]
fn message_beyond_the_window_is_not_kept_and_must_be_sent_again() {
    let mut far = link();
    let mut messages = Vec::new();
    let frame = |number: u64| Frame {
        incarnation: 1,
        acknowledged: 0,
        body: Body::Message(number, number as u32),
    };
    let window = WINDOW as u64;
    for number in [window + 1, u64::MAX].into_iter().chain(1..=window) {
        assert_eq!(far.receive(1, frame(number), &mut messages), Ok(()));
    }
    assert_eq!(messages.len(), WINDOW);
    assert_eq!(far.receive(2, frame(window + 1), &mut messages), Ok(()));
    assert_eq!(messages.last(), Some(&(window as u32 + 1)));
}

#[test]
fn acknowledgement_of_what_was_never_sent_is_ignored() {
    let mut near = link();
    let (mut frames, mut messages) = (Vec::new(), Vec::new());
    near.send(0, 7, &mut frames);
    for acknowledged in [2, u64::MAX] {
        let beat = Frame {
            incarnation: 1,
            acknowledged,
            body: Body::Beat,
        };
        assert_eq!(near.receive(1, beat, &mut messages), Ok(()));
    }
    near.tick(100, &mut frames);
    assert_eq!(numbers(&frames), [1, 1]);
}

#[test]
fn frame_of_another_incarnation_changes_nothing() {
    let mut far = link();
    let frame = Frame {
        incarnation: 2,
        acknowledged: 0,
        body: Body::Message(1, 7),
    };
    let mut messages = Vec::new();
    let refused = far.receive(1, frame, &mut messages);
    assert_eq!((refused, messages.len()), (Err(OtherIncarnation), 0));
}

fn of(incarnation: u64) -> Frame<ToHome> {
    let task = TaskKey(incarnation);
    Frame {
        incarnation,
        acknowledged: 0,
        body: Body::Message(1, ToHome::ContinuationLost { task }),
    }
}

fn told(out: &[FromSessions]) -> Vec<&'static str> {
    let word = |from: &FromSessions| match from {
        FromSessions::Frame(_, frame) if frame.body == Body::<ToSite>::Fenced => "fenced",
        FromSessions::Frame(..) => "frame",
        FromSessions::Received(..) => "received",
        FromSessions::Lost(_) => "lost",
    };
    out.iter().map(word).collect()
}

#[test]
fn site_that_was_silent_for_too_long_is_fenced_until_it_joins_anew() {
    let mut sessions = Sessions::new(TIMING);
    let mut out = Vec::new();
    sessions.receive(0, SITE, of(1), &mut out);
    sessions.tick(5000, &mut out);
    sessions.receive(5001, SITE, of(1), &mut out);
    sessions.send(5002, SITE, ToSite::JobEnded, &mut out);
    assert_eq!(told(&out), ["received", "lost", "fenced"]);
    out.clear();
    sessions.receive(5003, SITE, of(2), &mut out);
    assert_eq!(told(&out), ["received"]);
}

#[test]
fn site_that_joins_anew_before_its_silence_was_noticed_is_lost_first() {
    let mut sessions = Sessions::new(TIMING);
    let mut out = Vec::new();
    sessions.receive(0, SITE, of(1), &mut out);
    sessions.receive(10, SITE, of(2), &mut out);
    sessions.receive(20, SITE, of(1), &mut out);
    assert_eq!(told(&out), ["received", "lost", "received", "fenced"]);
}

proptest! {
    /// Whatever happens to frames, messages arrive once and in order as long as some get through.
    #[test]
    fn messages_arrive_once_and_in_order(fates in prop::collection::vec(0u8..6, 400)) {
        let (mut near, mut far) = (link(), link());
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        let (mut messages, mut none) = (Vec::new(), Vec::new());
        for (step, fate) in fates.iter().enumerate() {
            let now = step as u64 * 20;
            if step < 100 {
                near.send(now, step as u32, &mut forth);
            }
            near.tick(now, &mut forth);
            far.tick(now, &mut back);
            if *fate == 0 {
                forth.reverse();
            }
            let kept: Vec<Frame<u32>> = match fate {
                1 => Vec::new(),
                2 => forth.iter().chain(&forth).cloned().collect(),
                _ => std::mem::take(&mut forth),
            };
            forth.clear();
            for frame in kept {
                prop_assert_eq!(far.receive(now, frame, &mut messages), Ok(()));
            }
            for frame in back.drain(..).filter(|_| *fate != 3) {
                prop_assert_eq!(near.receive(now, frame, &mut none), Ok(()));
            }
        }
        let expected: Vec<u32> = (0..messages.len() as u32).collect();
        prop_assert_eq!(&messages, &expected);
        prop_assert!(messages.len() >= 90, "{} arrived", messages.len());
    }
}
