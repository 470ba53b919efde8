//! A run as its records tell it: what it was when its process was lost, and how another goes on.
//!
//! The journal is folded through the same machines that made it. What was final by then and had
//! not left is let out into the file of released output; files that nobody knows are removed. It
//! does not know why the process was lost. Read next: `ciel-coordinator`, which folds.

use std::fmt;

use ciel_coordinator::{Coordinator, Recorder};
use ciel_graph::Action;
use ciel_journal::{Cut, Durability, Journal, Options, Recorded};
use ciel_model::Name;
use ciel_ordered::{Extent, Piece};
use ciel_store::limits::VERIFIED_AT_RESUME_BYTES_MAX;
use ciel_store::{Object, ObjectName, ObjectStore, RunFolder};
use ciel_view::Durable;
use tokio::sync::mpsc::UnboundedSender;

use crate::catch_panic::{PanicError, catch_panic};
use crate::core::Order;
use crate::death::Death;
use crate::engine::Persistence;
use crate::error::{RecoveryError, RunError};
use crate::observer::Observer;
use crate::output::stored;
use crate::released::Released;
use crate::settings::Settings;

/// A run as this process begins with it.
pub(crate) struct Begun {
    pub(crate) state: Coordinator,
    pub(crate) kept: Persistence,
    /// No task of it is known.
    pub(crate) is_new: bool,
    /// What the end of the journal lacked.
    pub(crate) cut: Option<Cut>,
    /// Files of objects that should be there and are not, or are damaged.
    pub(crate) lost: Vec<Name>,
}

impl Begun {
    /// A run that ends with this process.
    pub(crate) fn unrecorded(settings: &Settings) -> Begun {
        Begun::new(settings, Persistence::default())
    }

    fn new(settings: &Settings, kept: Persistence) -> Begun {
        Begun {
            state: Coordinator::new(settings.policy(), settings.ordered_errors),
            kept,
            is_new: true,
            cut: None,
            lost: Vec::new(),
        }
    }
}

/// Lets the face know again where the output of the run went, before any of it goes there.
///
/// # Errors
/// What the run's folder refuses.
pub(crate) fn keep_sinks(folder: &RunFolder, observer: &dyn Observer) -> Result<(), RunError> {
    let kept = folder.sinks()?;
    let sinks = observer.sinks(kept.clone());
    match sinks {
        Some(sinks) if kept.as_ref() != Some(&sinks) => Ok(folder.keep_sinks(&sinks)?),
        Some(_) | None => Ok(()),
    }
}

/// Begins a run whose records are kept, or goes on with one.
///
/// # Errors
/// What is there cannot be read or folded, or nothing can be recorded.
pub(crate) fn begin_recorded(
    folder: &RunFolder,
    settings: &Settings,
    orders: UnboundedSender<Order>,
) -> Result<Begun, RunError> {
    let path = folder.journal_folder();
    let path = path.map_err(|error| RunError::of_store(folder.id(), error))?;
    let durability = match settings.durable {
        Durable::Process | Durable::Never => Durability::Process,
        Durable::Power => Durability::Power,
    };
    let options = Options {
        durability,
        // Nobody receives it only when the run is over.
        on_failure: Some(Box::new(move |_| drop(orders.send(Order::JournalFailed)))),
        ..Options::default()
    };
    let opened = Journal::open(&path, options);
    let (journal, recorded) = opened.map_err(|error| RunError::of_journal(folder.id(), error))?;
    if settings.durable == Durable::Power {
        folder.sync_names()?;
    }
    let recorder = Box::new(ToJournal {
        journal: journal.clone(),
        death: Death::of_environment(),
    });
    let nothing = recorded.snapshot.is_none() && recorded.records.iter().next().is_none();
    let mut begun = match nothing {
        true => {
            let released = Some(open_released(folder)?);
            let journal = Some(journal);
            Begun::new(settings, Persistence { journal, released })
        }
        false => recover(folder, journal, recorded)?,
    };
    folder.record(settings.durable == Durable::Power);
    begun.state.record_to(recorder);
    Ok(begun)
}

pub(crate) fn open_released(folder: &RunFolder) -> Result<Released, RunError> {
    let path = folder.output_path();
    let opened = Released::open(&path, 0);
    opened.map_err(|error| RunError::of_released(folder.id(), &path, error))
}

/// Records go to the journal as they are made.
struct ToJournal {
    journal: Journal,
    death: Option<Death>,
}

impl fmt::Debug for ToJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToJournal")
    }
}

impl Recorder for ToJournal {
    fn append(&mut self, spell: &mut dyn FnMut(&mut Vec<u8>)) {
        let record = self.journal.append(spell);
        if let Some(death) = &self.death {
            death.look(&self.journal, record);
        }
    }
}

/// Output that is final and had not left when the process was lost.
#[derive(Default)]
struct Late {
    pieces: Vec<Piece>,
}

/// Takes up what an earlier process of this run has recorded.
fn recover(folder: &RunFolder, journal: Journal, recorded: Recorded) -> Result<Begun, RunError> {
    let mut released = open_released(folder)?;
    let Folded {
        mut state,
        late,
        files,
    } = catch_panic(|| fold(&recorded, &mut released))??;
    let lost = folder
        .objects()
        .retain(&files, VERIFIED_AT_RESUME_BYTES_MAX)?;
    late.let_out(folder, &mut state, &mut released)?;
    Ok(Begun {
        is_new: state.graph().counts().spawned == 0,
        state,
        kept: Persistence {
            journal: Some(journal),
            released: Some(released),
        },
        cut: recorded.cut,
        lost: lost.into_iter().map(|object| Name(object.name.0)).collect(),
    })
}

/// What the records of a run come to.
struct Folded {
    state: Coordinator,
    late: Late,
    /// Files that there should be.
    files: Vec<Object>,
}

fn fold(recorded: &Recorded, released: &mut Released) -> Result<Folded, RecoveryError> {
    let mut late = Late::default();
    let mut folded = 0u64;
    let look = |state: &mut Coordinator, _: &[Action]| {
        folded += 1;
        match folded % RECORDS_BETWEEN_LOOKS {
            0 => late.take(state, released),
            _ => Ok(()),
        }
    };
    let records = recorded.records.iter().map(|(_, record)| record);
    let mut state = Coordinator::fold(recorded.snapshot.as_deref(), records, look)?;
    late.take(&mut state, released)?;
    let files = state.graph().files().into_iter();
    let files = files.map(|(name, content)| Object {
        name: ObjectName(name.0),
        length: content.length,
        digest: content.digest,
    });
    Ok(Folded {
        files: files.collect(),
        state,
        late,
    })
}

/// Output that is final is looked for so often during a fold.
const RECORDS_BETWEEN_LOOKS: u64 = 1024;

impl Late {
    /// Takes out what is final; what was released before is only counted.
    fn take(
        &mut self,
        state: &mut Coordinator,
        released: &mut Released,
    ) -> Result<(), RecoveryError> {
        let mut at = state.output().gauges().released_bytes;
        while let Some(chunk) = state.output_mut().take_ready(u64::MAX) {
            let length = chunk.piece.length();
            let known = released.length().saturating_sub(at).min(length);
            if known < length {
                self.pieces.push(chunk.piece.after(known));
            }
            at += length;
        }
        // Standard error is shown at once or not at all.
        while state.errors_mut().take_ready(u64::MAX).is_some() {}
        Ok(())
    }

    /// Lets out what is late, and forgets all spilled bytes but those that are still held back.
    fn let_out(
        self,
        folder: &RunFolder,
        state: &mut Coordinator,
        released: &mut Released,
    ) -> Result<(), RunError> {
        let held = [state.output().extents(), state.errors().extents()].concat();
        let late = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Extent(extent) => Some(*extent),
            Piece::Bytes(_) => None,
        });
        let known: Vec<Extent> = held.into_iter().chain(late).collect();
        let lost = folder.spill().restore(known.into_iter().map(stored))?;
        if !lost.is_empty() {
            let what = "output that was held back on disk";
            return Err(RecoveryError::Lost { what }.into());
        }
        let at = state.output().gauges().released_bytes;
        let late: u64 = self.pieces.iter().map(Piece::length).sum();
        if released.length() + late < at {
            let what = "a part of the output that was let out";
            return Err(RecoveryError::Lost { what }.into());
        }
        released.pass(released.length().min(at));
        for piece in self.pieces {
            let bytes = match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::Extent(extent) => {
                    let bytes = folder.spill().read(stored(extent))?;
                    // A spill file that is gone has nothing left to give back.
                    let _ = folder.spill().release(stored(extent));
                    bytes
                }
            };
            let taken = released.take(&bytes);
            let path = folder.output_path();
            taken.map_err(|error| RunError::of_released(folder.id(), &path, error))?;
        }
        Ok(())
    }
}

impl From<PanicError> for RunError {
    fn from(PanicError(message): PanicError) -> RunError {
        RecoveryError::Absurd { message }.into()
    }
}
