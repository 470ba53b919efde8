//! The home's ends of the links to all sites, and which incarnation of each site counts.
//!
//! A site that was silent for too long is lost for good in that incarnation: if it sends another
//! message, it is notified, drops its attempts, and joins as the next one. It does not know how the
//! home handles a lost site. Read next: `link`.

use std::collections::BTreeMap;

use ciel_model::Micros;

use super::{Body, Frame, Link, Timing};
use crate::message::{SiteKey, ToHome, ToSite};

/// What comes of frames and of time.
#[derive(Clone, Debug, PartialEq)]
pub enum FromSessions {
    /// Send that to a site.
    Frame(SiteKey, Frame<ToSite>),
    /// A message of a site.
    Received(SiteKey, ToHome),
    /// A site is lost, with all that ran there.
    Lost(SiteKey),
}

#[derive(Clone, Debug, Default)]
struct Session {
    /// The highest known incarnation.
    incarnation: u64,
    /// Nothing if that incarnation is lost.
    link: Option<Link<ToSite, ToHome>>,
}

/// All links of a home.
#[derive(Clone, Debug)]
pub struct Sessions {
    timing: Timing,
    sessions: BTreeMap<SiteKey, Session>,
}

impl Sessions {
    /// Those of a home before the first message of a site.
    pub fn new(timing: Timing) -> Sessions {
        Sessions {
            timing,
            sessions: BTreeMap::new(),
        }
    }

    /// When [`Sessions::tick`] is wanted at the latest.
    pub fn next_deadline(&self) -> Option<Micros> {
        let links = self.sessions.values().filter_map(|site| site.link.as_ref());
        links.map(Link::next_deadline).min()
    }

    /// Sends a message to a site; nothing if it is lost.
    pub fn send(
        &mut self,
        now: Micros,
        site: SiteKey,
        message: ToSite,
        out: &mut Vec<FromSessions>,
    ) {
        let session = self.sessions.get_mut(&site);
        if let Some(link) = session.and_then(|session| session.link.as_mut()) {
            let mut frames = Vec::new();
            link.send(now, message, &mut frames);
            out.extend(
                frames
                    .into_iter()
                    .map(|frame| FromSessions::Frame(site, frame)),
            );
        }
    }

    /// Takes a frame of a site. A higher incarnation than the known one replaces it; a lower one,
    /// or one that is lost, is fenced.
    pub fn receive(
        &mut self,
        now: Micros,
        site: SiteKey,
        frame: Frame<ToHome>,
        out: &mut Vec<FromSessions>,
    ) {
        let session = self.sessions.entry(site).or_default();
        if frame.incarnation > session.incarnation {
            if session.link.take().is_some() {
                out.push(FromSessions::Lost(site));
            }
            session.incarnation = frame.incarnation;
            session.link = Some(Link::new(now, frame.incarnation, self.timing));
        }
        let incarnation = frame.incarnation;
        let mut messages = Vec::new();
        let link = session.link.as_mut();
        if link.is_none_or(|link| link.receive(now, frame, &mut messages).is_err()) {
            let fence = Frame {
                incarnation,
                acknowledged: 0,
                body: Body::Fenced,
            };
            out.push(FromSessions::Frame(site, fence));
        }
        let received = messages.into_iter();
        out.extend(received.map(|message| FromSessions::Received(site, message)));
    }

    /// Appends what is due by now.
    pub fn tick(&mut self, now: Micros, out: &mut Vec<FromSessions>) {
        for (site, session) in &mut self.sessions {
            let Some(link) = &mut session.link else {
                continue;
            };
            if link.is_silent(now) {
                session.link = None;
                out.push(FromSessions::Lost(*site));
                continue;
            }
            let mut frames = Vec::new();
            link.tick(now, &mut frames);
            out.extend(
                frames
                    .into_iter()
                    .map(|frame| FromSessions::Frame(*site, frame)),
            );
        }
    }
}
