//! The network between home and sites: frames as bytes, with fates.
//!
//! A frame is lost, comes twice, or comes late, so that later ones overtake it; all frames of a
//! site that is cut off are lost, in one direction or both. It does not know what frames carry.
//! Read next: `ciel_engine::link`.

use std::collections::BTreeMap;

use ciel_engine::link::Timing;
use ciel_engine::message::SiteKey;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Common, Happening};

/// Far shorter than a timeout of a task, and far longer than a frame takes.
pub(super) const TIMING: Timing = Timing {
    resend_us: 3_000,
    beat_us: 10_000,
    silence_us: 50_000,
};

/// Microseconds that most frames take at most, and those that are held up.
const DELAYS_US: [usize; 2] = [40, 4_000];

/// Where a frame travels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Way {
    ToHome(SiteKey),
    ToSite(SiteKey),
}

/// Which directions of a site are cut off, and until when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) until: u64,
    pub(super) to_home: bool,
    pub(super) to_site: bool,
}

/// Frames on their way.
#[derive(Debug, Default)]
pub(super) struct Network {
    frames: BTreeMap<u64, Vec<u8>>,
    sent: u64,
    /// The latest frame that has arrived on each way.
    arrived: BTreeMap<Way, u64>,
    pub(super) cuts: BTreeMap<SiteKey, Cut>,
}

impl Common<'_> {
    /// Sends a frame; its fate is decided now.
    pub(super) fn send<T: Serialize>(&mut self, way: Way, frame: &T) {
        if self.is_cut(way) {
            return;
        }
        if self.random.one_in(16) {
            self.met.lost += 1;
            return;
        }
        let copies = match self.random.one_in(16) {
            true => 2,
            false => 1,
        };
        self.met.repeated += copies - 1;
        let bytes = postcard::to_stdvec(frame).expect("a frame can be encoded");
        for _ in 0..copies {
            self.network.sent += 1;
            let number = self.network.sent;
            self.network.frames.insert(number, bytes.clone());
            let most = DELAYS_US[usize::from(self.random.one_in(8))];
            let at = self.now + 5 + self.random.below(most) as u64;
            self.schedule(at, Happening::Arrival(way, number));
        }
    }

    /// The bytes of a frame that arrives; those of one whose way was cut meanwhile are lost.
    pub(super) fn take_frame(&mut self, way: Way, number: u64) -> Option<Vec<u8>> {
        let bytes = self.network.frames.remove(&number)?;
        if self.is_cut(way) {
            return None;
        }
        let latest = self.network.arrived.entry(way).or_default();
        self.met.reordered += u64::from(*latest > number);
        *latest = number.max(*latest);
        Some(bytes)
    }

    fn is_cut(&self, way: Way) -> bool {
        let (Way::ToHome(site) | Way::ToSite(site)) = way;
        self.network.cuts.get(&site).is_some_and(|cut| {
            let is_this = match way {
                Way::ToHome(_) => cut.to_home,
                Way::ToSite(_) => cut.to_site,
            };
            is_this && self.now < cut.until
        })
    }
}

/// The frame of bytes that a machine of this world has sent.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes).expect("what was encoded can be decoded")
}
