//! Places behind a strand, for hosts that learn only afterwards what ran elsewhere.
//!
//! A host that is neither rayon nor explicit forks notes where it is, and makes a *detached* strand
//! only for code that another thread has taken. Such a strand has no place in serial order until
//! [`Strand::reduce`] or [`Strand::append`] puts it behind another one: identity and reduction of a
//! list-append reducer over what was written. It does not know how a file is written. Read next:
//! `fork`, `strand`.

use crate::file::File;
use crate::fork::{NO_SCOPE, Strand};
use crate::join::rejoined;
use crate::meeting::Own;
use crate::strand::{Node, Pointer, State};
use crate::sync::Arc;
use crate::thread::{self, Standing};

/// Where a strand is: what a detached strand needs to begin there.
#[derive(Clone, Debug)]
pub struct Place {
    root: u64,
    pointers: Vec<Pointer>,
}

/// The place of the calling strand. A thread without one becomes the root of strands of its own;
/// none on a thread whose strand waits.
pub fn here() -> Option<Place> {
    thread::current_or_root(|own| Place {
        root: own.root,
        pointers: own.pointers.clone(),
    })
}

impl Place {
    /// A place among the strands that may write a file that is open for serial append, without
    /// pointers into files in local mode; none for another mode.
    pub fn among_writers_of(file: &File) -> Option<Place> {
        let pointers = Vec::new();
        file.root().map(|root| Place { root, pointers })
    }

    /// A detached strand. Its pointers begin where those of the place are. What it writes is kept
    /// until it is put behind another one, and is lost if it is dropped before.
    pub fn detached(&self) -> Strand {
        let node = Node::new();
        Strand {
            state: Some(State::forked(
                self.root,
                self.pointers.clone(),
                Some(node.clone()),
            )),
            next: node.clone(),
            scope: NO_SCOPE,
            detached: Some(node),
        }
    }

    /// Whether no pointer belongs to it.
    pub fn has_no_pointers(&self) -> bool {
        self.pointers.is_empty()
    }

    /// Moves the calling strand's pointers into files in local mode back to where they are here.
    pub fn rewind(&self) {
        thread::change_pointers(|pointers| pointers.clone_from(&self.pointers));
    }
}

impl Strand {
    /// Puts a detached strand behind all that this one has written, in constant time.
    ///
    /// # Errors
    /// Gives it back if it has a place already, or descends from another thread.
    pub fn reduce(&mut self, mut right: Strand) -> Result<(), Strand> {
        match self.state.take() {
            Some(own) => {
                let (own, result) = behind(own, &mut right);
                self.state = Some(own);
                if result { Ok(()) } else { Err(right) }
            }
            None => Err(right),
        }
    }

    /// Puts this detached strand behind all that the calling strand has written.
    ///
    /// # Errors
    /// Gives it back if it has a place already, descends from another thread, or the calling
    /// thread has no strand.
    pub fn append(mut self) -> Result<(), Strand> {
        if thread::forking().is_none() {
            return Err(self);
        }
        let here = thread::replace(Standing::default());
        let own = here.own.into_state();
        let own = own.expect("a strand that forks runs here");
        let (own, result) = behind(own, &mut self);
        thread::replace(Standing::of(Own::Begun(own)));
        if result { Ok(()) } else { Err(self) }
    }
}

/// A strand with a detached one behind it, and whether that could be done.
fn behind(own: Box<State>, right: &mut Strand) -> (Box<State>, bool) {
    let fits = |state: &State| state.root == own.root;
    let Some(node) = right.detached.as_ref() else {
        return (own, false);
    };
    if !right.state.as_deref().is_some_and(fits) {
        return (own, false);
    }
    let node: Arc<Node> = node.clone();
    let ended = right.state.take().expect("it was looked at above");
    let pointers = own.pointers.clone();
    let mut own = rejoined(&node, own, ended);
    own.pointers = pointers;
    (own, true)
}
