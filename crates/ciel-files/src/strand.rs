//! A strand and its place in the chain of all strands in serial order.
//!
//! Between any two neighbours lies a node. The strand before it leaves its state there when it has
//! written its last byte, or while it waits for the strand behind, which looks there whether its
//! turn has come and absorbs what has ended. So a state is touched by one strand at a time, nodes
//! exist only where strands may run at the same time, and locks are taken in one direction: against
//! serial order. It does not know threads. Read next: `part`, then `fork`.

use std::io;
use std::sync::PoisonError;

use crate::error::FileError;
use crate::gauges;
use crate::part::Part;
use crate::sync::{Arc, Mutex, MutexGuard};
use crate::target::Target;

/// A pointer of a strand into a file that is open in local mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) file: u64,
    pub(crate) at: u64,
}

/// The state of a strand.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The thread from whose first open all these strands descend.
    pub(crate) root: u64,
    /// What it has written and the files have not received; few files, so a list.
    parts: Vec<Part>,
    /// Its pointers into files that are open in local mode.
    pub(crate) pointers: Vec<Pointer>,
    /// Through which it learns that its turn has come; none for the first strand of all.
    pub(crate) node: Option<Arc<Node>>,
    /// A strand of this scope has panicked, so the serial elision runs nothing behind it before the
    /// scope ends.
    pub(crate) panicked_in: Option<u64>,
    /// It begins behind this scope, of which a strand has panicked and others have left strands
    /// that still run: what comes from these is not written, and this is.
    resumes_behind: Option<u64>,
}

impl State {
    /// A strand that begins behind a fork.
    pub(crate) fn forked(root: u64, pointers: Vec<Pointer>, node: Option<Arc<Node>>) -> Box<State> {
        Box::new(State {
            root,
            pointers,
            node,
            ..State::default()
        })
    }

    /// Whether it has a strand before it, and has written nothing itself.
    pub(crate) fn is_vacant(&self) -> bool {
        self.node.is_some() && self.parts.is_empty() && self.panicked_in.is_none()
    }

    fn place(&self, target: &Arc<Target>) -> Option<usize> {
        self.parts
            .iter()
            .position(|part| Arc::ptr_eq(&part.target, target))
    }

    /// A file that this strand has opened: all of it is behind what precedes.
    pub(crate) fn opened(&mut self, target: Arc<Target>) {
        self.parts.push(Part::new(target, true));
    }

    fn part(&mut self, target: &Arc<Target>) -> io::Result<usize> {
        if let Some(place) = self.place(target) {
            return Ok(place);
        }
        if self.root != target.root || self.node.is_none() {
            let path = target.path.clone();
            target.check()?;
            return Err(FileError::NotAStrand { path }.into());
        }
        self.parts.push(Part::new(target.clone(), false));
        Ok(self.parts.len() - 1)
    }

    /// Writes behind all that this strand has written. What comes behind a panic is not written.
    ///
    /// # Errors
    /// A write failed, or the strand descends from another thread.
    #[inline]
    pub(crate) fn write(&mut self, target: &Arc<Target>, bytes: &[u8]) -> io::Result<()> {
        // Most strands write to one file, and most writes fit its buffer.
        match self.gather_first(target, bytes) {
            true => Ok(()),
            false => self.write_elsewhere(target, bytes),
        }
    }

    #[inline]
    fn gather_first(&mut self, target: &Arc<Target>, bytes: &[u8]) -> bool {
        if self.panicked_in.is_none()
            && let Some(first) = self.parts.first_mut()
            && Arc::ptr_eq(&first.target, target)
        {
            return first.gather(bytes);
        }
        false
    }

    #[cold]
    fn write_elsewhere(&mut self, target: &Arc<Target>, bytes: &[u8]) -> io::Result<()> {
        if self.panicked_in.is_some() {
            return Ok(());
        }
        let place = self.part(target)?;
        if self.parts[place].gather(bytes) {
            return Ok(());
        }
        target.check()?;
        self.leads(target)?;
        if self.panicked_in.is_some() {
            return Ok(());
        }
        let place = self.part(target)?;
        self.parts[place].write_through(bytes)
    }

    /// Whether bytes fit the buffer; if so, they are written behind all that this strand has
    /// written. What comes behind a panic is not written.
    #[inline]
    pub(crate) fn gather(&mut self, target: &Arc<Target>, bytes: &[u8]) -> bool {
        self.gather_first(target, bytes) || self.gather_elsewhere(target, bytes)
    }

    #[cold]
    fn gather_elsewhere(&mut self, target: &Arc<Target>, bytes: &[u8]) -> bool {
        let is_cut = self.panicked_in.is_some();
        is_cut || matches!(self.part(target), Ok(place) if self.parts[place].gather(bytes))
    }

    /// Takes over the strands that have ended before this one, as far as they follow one another.
    pub(crate) fn absorb(&mut self) {
        let mut behind = Vec::new();
        while let Some(before) = self.take_before() {
            behind.push(std::mem::replace(self, *before));
        }
        if let Some(own) = behind.first() {
            self.pointers.clone_from(&own.pointers);
        }
        // The first one takes the others, so that nothing is copied twice.
        for next in behind.into_iter().rev() {
            self.join(next);
        }
    }

    /// The strand before this one, if it has ended. Behind a scope in which one has panicked, that
    /// is known to be all up to there: what is between is told from this strand by it.
    fn take_before(&self) -> Option<Box<State>> {
        let node = self.node.as_ref()?;
        let mut before = node.take_ended_before()?;
        if self.resumes_behind.is_some() {
            before.absorb();
            if before.panicked_in.is_none() {
                node.end_before(before);
                return None;
            }
        }
        Some(before)
    }

    /// All strands of a scope have ended, and this one continues behind it. One of them has
    /// panicked if `has_panicked`; what it cuts ends here.
    pub(crate) fn end_scope(&mut self, scope: u64, has_panicked: bool) {
        self.absorb();
        if self.panicked_in == Some(scope) {
            self.panicked_in = None;
        } else if has_panicked && self.panicked_in.is_none() {
            self.resume_behind(scope);
        }
    }

    /// Continues behind strands that were forked for ever within a scope, and still run.
    #[cold]
    fn resume_behind(&mut self, scope: u64) {
        let node = Node::new();
        let mut behind = State::forked(self.root, self.pointers.clone(), Some(node.clone()));
        behind.resumes_behind = Some(scope);
        node.end_before(Box::new(std::mem::replace(self, *behind)));
    }

    /// Whether everything before this strand is in the file; what it has written is there now, but
    /// for its buffer.
    ///
    /// # Errors
    /// A write failed.
    pub(crate) fn leads(&mut self, target: &Arc<Target>) -> io::Result<bool> {
        self.absorb();
        let place = self.place(target);
        if self.panicked_in.is_some() {
            return Ok(false);
        }
        if place.is_some_and(|place| self.parts[place].leads()) {
            return Ok(true);
        }
        let Some(node) = &self.node else {
            return Ok(false);
        };
        if !node.is_reached(target)? {
            return Ok(false);
        }
        match place {
            Some(place) => self.parts[place].lead()?,
            None => self.parts.push(Part::new(target.clone(), true)),
        }
        Ok(true)
    }

    /// Puts what it has written into the file, if its turn has come; otherwise it stays.
    ///
    /// # Errors
    /// A write failed.
    pub(crate) fn flush(&mut self, target: &Arc<Target>) -> io::Result<bool> {
        let leads = self.leads(target)?;
        if leads && let Some(place) = self.place(target) {
            self.parts[place].empty_buffer()?;
        }
        Ok(leads)
    }

    /// Puts into the files what belongs there and cannot be asked for any more.
    pub(crate) fn settle(&mut self) {
        self.absorb();
        let targets: Vec<Arc<Target>> = self.parts.iter().map(|part| part.target.clone()).collect();
        for target in targets {
            // Nobody is left to whom the failure of a write could be reported.
            let _ = self.flush(&target);
        }
        self.parts.retain_mut(|part| !part.is_done());
    }

    /// Forgets a file that is closed.
    pub(crate) fn forget(&mut self, target: &Arc<Target>) {
        if let Some(place) = self.place(target) {
            self.parts.swap_remove(place);
        }
    }

    /// Appends what the next strand in serial order has written. The failure of a write is kept by
    /// its file, whose next call reports it.
    pub(crate) fn join(&mut self, next: State) {
        gauges::strands_joined();
        if self.panicked_in.is_some() && self.panicked_in != next.resumes_behind {
            return;
        }
        self.panicked_in = next.panicked_in;
        for part in next.parts {
            match self.place(&part.target) {
                Some(place) => drop(self.parts[place].join(part)),
                None => self.parts.push(part),
            }
        }
        self.parts.retain_mut(|part| !part.is_done());
    }
}

/// The place between two strands that follow one another.
#[derive(Debug, Default)]
pub(crate) struct Node(Mutex<Slot>);

#[derive(Debug, Default)]
struct Slot {
    before: Option<Before>,
    /// The strand behind, if it has ended and the one before waits for it.
    ended: Option<Box<State>>,
}

/// The strand before a node.
#[derive(Debug)]
enum Before {
    /// It has written its last byte.
    Ended(Box<State>),
    /// It continues when the strand behind has ended.
    Waits(Box<State>),
}

impl Drop for Node {
    fn drop(&mut self) {
        gauges::node_freed();
    }
}

impl Node {
    /// A node to which nothing has come yet.
    pub(crate) fn new() -> Arc<Node> {
        gauges::node_created();
        Arc::new(Node::default())
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The strand before has written its last byte.
    pub(crate) fn end_before(&self, state: Box<State>) {
        self.slot().before = Some(Before::Ended(state));
    }

    /// The strand before, if it has ended.
    pub(crate) fn take_ended_before(&self) -> Option<Box<State>> {
        let mut slot = self.slot();
        match slot.before.take() {
            Some(Before::Ended(state)) => Some(state),
            other => {
                slot.before = other;
                None
            }
        }
    }

    /// The strand before waits for the one behind.
    pub(crate) fn wait(&self, state: Box<State>) {
        self.slot().before = Some(Before::Waits(state));
    }

    /// The strand before, if it waits here.
    pub(crate) fn take_waiting(&self) -> Option<Box<State>> {
        match self.slot().before.take() {
            Some(Before::Ended(state) | Before::Waits(state)) => Some(state),
            None => None,
        }
    }

    /// Whether the strand before waits, and all that precedes the one behind is in the file now.
    ///
    /// # Errors
    /// A write failed.
    pub(crate) fn is_reached(&self, target: &Arc<Target>) -> io::Result<bool> {
        match &mut self.slot().before {
            Some(Before::Waits(state)) => state.flush(target),
            Some(Before::Ended(_)) | None => Ok(false),
        }
    }

    /// The strand behind has ended, and the one before waits for it.
    pub(crate) fn end_behind(&self, state: Box<State>) {
        self.slot().ended = Some(state);
    }

    /// The strand behind, which has ended.
    pub(crate) fn take_ended(&self) -> Option<Box<State>> {
        self.slot().ended.take()
    }
}
