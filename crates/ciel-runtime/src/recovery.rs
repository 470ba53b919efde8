//! Recovery of a run from its records: its state when its process was lost, and how another
//! resumes.
//!
//! The journal is folded through the same machines that produced it. Output that was final and not
//! released is released to the file of released output; unknown files are removed. It does not know
//! why the process was lost. Read next: `ciel-coordinator`, which folds.

use std::fmt;
use std::path::Path;

use ciel_coordinator::{Coordinator, FoldError, Recorder};
use ciel_graph::Action;
use ciel_journal::{Cut, Durability, Journal, Options, Recorded, Sequence};
use ciel_model::Name;
use ciel_ordered::{Chunk, Extent, Piece, Sink};
use ciel_store::limits::VERIFIED_AT_RESUME_BYTES_MAX;
use ciel_store::{Object, ObjectName, ObjectStore, RunFolder};
use ciel_view::Durable;
use tokio::sync::mpsc::UnboundedSender;

use crate::catch_panic::{PanicError, catch_panic};
use crate::core::Order;
use crate::death::Death;
use crate::engine::Persistence;
use crate::error::{RecoveryError, RunError};
use crate::flat_file::FlatFileError;
use crate::given_up::first_given_up;
use crate::open_files::OpenFiles;
use crate::output::{ordered, stored};
use crate::released::Released;
use crate::settings::Settings;

/// A run as this process begins with it.
pub(crate) struct Begun {
    pub(crate) state: Coordinator,
    pub(crate) kept: Persistence,
    /// No task of it is known.
    pub(crate) is_new: bool,
    /// Records that were given up, because output of theirs is lost.
    pub(crate) given_up: u64,
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
            given_up: 0,
            cut: None,
            lost: Vec::new(),
        }
    }
}

/// Begins a run whose records are kept, or resumes one.
///
/// # Errors
/// The records cannot be read or folded, or nothing can be recorded.
pub(crate) fn begin_recorded(
    folder: &RunFolder,
    settings: &Settings,
    orders: UnboundedSender<Order>,
) -> Result<Begun, RunError> {
    let path = folder.journal_folder();
    let path = path.map_err(|error| RunError::of_store(folder.id(), error))?;
    let mut given_up = 0;
    let mut begun = loop {
        let (journal, recorded) = open_journal(folder, &path, settings, orders.clone())?;
        match recover(folder, settings, &recorded)? {
            Recovered::Nothing(released) => {
                let kept = Persistence {
                    journal: Some(journal),
                    released: Some(released),
                    files: OpenFiles::default(),
                };
                break Begun::new(settings, kept);
            }
            Recovered::Whole(whole) => break whole.begun(journal, recorded.cut, given_up),
            Recovered::Without(first) => {
                drop(journal);
                given_up += give_up(folder, &path, first)?;
            }
        }
    };
    let journal = begun.kept.journal.clone();
    begun.state.record_to(Box::new(ToJournal {
        journal: journal.expect("a recorded run has a journal"),
        death: Death::of_environment(),
    }));
    Ok(begun)
}

fn open_journal(
    folder: &RunFolder,
    path: &Path,
    settings: &Settings,
    orders: UnboundedSender<Order>,
) -> Result<(Journal, Recorded), RunError> {
    let durability = match settings.durable {
        Durable::Process | Durable::Never => Durability::Process,
        Durable::Power => Durability::Power,
    };
    let options = Options {
        durability,
        // It has no receiver only when the run is over.
        on_failure: Some(Box::new(move |_| drop(orders.send(Order::JournalFailed)))),
        ..Options::default()
    };
    let opened = Journal::open(path, options);
    let opened = opened.map_err(|error| RunError::of_journal(folder.id(), error))?;
    if is_power(settings) {
        folder.sync_names()?;
    }
    Ok(opened)
}

/// How many records are gone with the one from which on the journal is cut.
fn give_up(folder: &RunFolder, path: &Path, first: Sequence) -> Result<u64, RunError> {
    let cut = Journal::give_up(path, first);
    let cut = cut.map_err(|error| RunError::of_journal(folder.id(), error))?;
    let cut = cut.ok_or(RecoveryError::Lost {
        what: SPILLED_OUTPUT,
    })?;
    Ok(cut.records)
}

fn is_power(settings: &Settings) -> bool {
    settings.durable == Durable::Power
}

pub(crate) fn open_released(folder: &RunFolder) -> Result<Released, RunError> {
    let path = folder.output_path();
    let opened = Released::open(&path, 0, folder.digests().clone());
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
    pieces: Vec<(Sink, Piece)>,
    files: OpenFiles,
}

/// A run as an earlier process of it has left it.
struct Whole {
    state: Coordinator,
    released: Released,
    files: OpenFiles,
    /// Files of objects that are missing or have changed.
    lost: Vec<Name>,
}

impl Whole {
    fn begun(self, journal: Journal, cut: Option<Cut>, given_up: u64) -> Begun {
        Begun {
            is_new: self.state.graph().counts().spawned == 0,
            state: self.state,
            kept: Persistence {
                journal: Some(journal),
                released: Some(self.released),
                files: self.files,
            },
            given_up,
            cut,
            lost: self.lost,
        }
    }
}

/// What an earlier process of this run has recorded.
enum Recovered {
    /// Nothing. It may have released output all the same, before its records were lost.
    Nothing(Released),
    /// All of it.
    Whole(Box<Whole>),
    /// It comes to something else without the records from this one on.
    Without(Sequence),
}

/// Folds what an earlier process of this run has recorded.
fn recover(
    folder: &RunFolder,
    settings: &Settings,
    recorded: &Recorded,
) -> Result<Recovered, RunError> {
    let mut released = open_released(folder)?;
    if recorded.snapshot.is_none() && recorded.records.iter().next().is_none() {
        folder.record(is_power(settings));
        verify(&mut released)?;
        return Ok(Recovered::Nothing(released));
    }
    let Folded {
        mut state,
        late,
        files,
    } = catch_panic(|| fold(folder, settings, recorded, &mut released))??;
    let lost = late.lost_output(folder, &state)?;
    if !lost.is_empty() {
        let what = SPILLED_OUTPUT;
        let first = first_given_up(recorded, &lost).ok_or(RecoveryError::Lost { what });
        return Ok(Recovered::Without(first?));
    }
    let lost = folder
        .objects()
        .retain(&files, VERIFIED_AT_RESUME_BYTES_MAX)?;
    folder.record(is_power(settings));
    verify(&mut released)?;
    let files = late.release(folder, &mut state, &mut released)?;
    let lost = lost.into_iter().map(|object| Name(object.name.0)).collect();
    Ok(Recovered::Whole(Box::new(Whole {
        state,
        released,
        files,
        lost,
    })))
}

/// Compares released output with its digests.
///
/// # Errors
/// `Lost` if it has changed, and those of the file.
pub(crate) fn verify(released: &mut Released) -> Result<(), RecoveryError> {
    match released.verify().map_err(RecoveryError::Released)? {
        true => Ok(()),
        false => Err(RecoveryError::Lost {
            what: RELEASED_OUTPUT,
        }),
    }
}

/// What the files of spilled output hold, in words.
const SPILLED_OUTPUT: &str = "spilled output";

/// What the file of released output holds, in words.
const RELEASED_OUTPUT: &str = "a part of the released output";

/// What an ordered file holds, in words.
const WRITTEN_FILE: &str = "a part of an ordered file, written before the last snapshot,";

/// What the records of a run come to.
struct Folded {
    state: Coordinator,
    late: Late,
    /// Files that there should be.
    files: Vec<Object>,
}

fn fold(
    folder: &RunFolder,
    settings: &Settings,
    recorded: &Recorded,
    released: &mut Released,
) -> Result<Folded, RunError> {
    let overwrite = settings.overwrite(folder.id());
    let mut late = Late::default();
    let mut folded = 0u64;
    let look = |state: &mut Coordinator, _: &[Action]| {
        let is_due = folded.is_multiple_of(RECORDS_BETWEEN_LOOKS);
        folded += 1;
        match is_due {
            true => late
                .files
                .reopen(state, overwrite)
                .map_err(RunError::from)
                .and_then(|()| late.take(state, released)),
            false => Ok(()),
        }
    };
    let records = recorded.records.iter().map(|(_, record)| record);
    let mut state = Coordinator::fold(recorded.snapshot.as_deref(), records, look)?;
    late.files.reopen(&state, overwrite)?;
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

/// Records between two checks for final output during a fold.
const RECORDS_BETWEEN_LOOKS: u64 = 1024;

impl Late {
    /// Takes out what is final. What was released before is restored in the file of released
    /// output, as far as the records have its bytes.
    fn take(&mut self, state: &mut Coordinator, released: &mut Released) -> Result<(), RunError> {
        while let Some(Chunk { sink, piece, .. }) = state.output_mut().take_ready(u64::MAX) {
            let length = piece.length();
            let at = state.output().released_bytes_of(sink) - length;
            let present = self.present(sink, at, &piece, released)?;
            let known = present.saturating_sub(at).min(length);
            if known < length {
                self.pieces.push((sink, piece.after(known)));
            }
        }
        // Standard error is shown at once or not at all.
        while state.errors_mut().take_ready(u64::MAX).is_some() {}
        Ok(())
    }

    /// How many bytes of a sink were released before. The piece at `at` is compared with them: in
    /// the file of released output it is restored, a file of the user's must not have changed.
    fn present(
        &self,
        sink: Sink,
        at: u64,
        piece: &Piece,
        released: &mut Released,
    ) -> Result<u64, RunError> {
        let bytes = match piece {
            Piece::Bytes(bytes) => &bytes[..],
            Piece::Extent(_) => &[],
        };
        if sink == Sink::OUTPUT {
            let restored = released.restore(at, bytes);
            restored.map_err(RecoveryError::Released)?;
            return Ok(released.length());
        }
        let compared = self
            .files
            .with(sink, |file| file.compare(at, bytes).map(|()| file.length()));
        Ok(compared?)
    }

    /// Drops all spilled bytes but those that are still buffered, and returns those of them that
    /// are missing or have changed.
    fn lost_output(
        &self,
        folder: &RunFolder,
        state: &Coordinator,
    ) -> Result<Vec<Extent>, RunError> {
        let held = [state.output().extents(), state.errors().extents()].concat();
        let late = self.pieces.iter().filter_map(|(_, piece)| match piece {
            Piece::Extent(extent) => Some(*extent),
            Piece::Bytes(_) => None,
        });
        let known = held.into_iter().chain(late).map(stored);
        let lost = folder.spill().restore(known)?;
        Ok(lost.into_iter().map(ordered).collect())
    }

    /// Lets out what is late; returns the ordered files.
    fn release(
        self,
        folder: &RunFolder,
        state: &mut Coordinator,
        released: &mut Released,
    ) -> Result<OpenFiles, RunError> {
        let at = state.output().released_bytes_of(Sink::OUTPUT);
        released.pass(self.resumed_at(Sink::OUTPUT, released.length(), at)?);
        for sink in (1..).map(Sink).take(state.files().len()) {
            let at = state.output().released_bytes_of(sink);
            let length = self.files.with(sink, |file| Ok(file.length()))?;
            let at = self.resumed_at(sink, length, at)?;
            self.files.with(sink, |file| {
                file.pass_to(at);
                Ok(())
            })?;
        }
        for (sink, piece) in self.pieces {
            let bytes = match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::Extent(extent) => {
                    let bytes = folder.spill().read(stored(extent))?;
                    // A spill file that is gone has nothing left to give back.
                    let _ = folder.spill().release(stored(extent));
                    bytes
                }
            };
            if sink != Sink::OUTPUT {
                self.files.with(sink, |file| file.take(&bytes))?;
                continue;
            }
            let taken = released.take(&bytes);
            let path = folder.output_path();
            taken.map_err(|error| RunError::of_released(folder.id(), &path, error))?;
        }
        Ok(self.files)
    }

    /// Where the late output of a sink begins whose file has that length, if so many bytes are
    /// final.
    ///
    /// # Errors
    /// `Lost` if bytes between the two are nowhere.
    fn resumed_at(&self, sink: Sink, length: u64, at: u64) -> Result<u64, RecoveryError> {
        let late = self.pieces.iter().filter(|(of, _)| *of == sink);
        let late: u64 = late.map(|(_, piece)| piece.length()).sum();
        let what = match sink {
            Sink::OUTPUT => RELEASED_OUTPUT,
            _ => WRITTEN_FILE,
        };
        match length + late < at {
            true => Err(RecoveryError::Lost { what }),
            false => Ok(length.min(at)),
        }
    }
}

impl From<FlatFileError> for RunError {
    fn from(error: FlatFileError) -> RunError {
        RunError::of_file(None, error)
    }
}

impl From<FoldError> for RunError {
    fn from(corrupt: FoldError) -> RunError {
        RecoveryError::Corrupt(corrupt).into()
    }
}

impl From<PanicError> for RunError {
    fn from(PanicError(message): PanicError) -> RunError {
        RecoveryError::Absurd { message }.into()
    }
}
