//! Kept results of a run into an archive, and those of an archive into a state folder or a shared
//! one, outside of any run.
//!
//! In an archive results are named as in a shared folder: neither the folder of the run nor the
//! place of its interpreter counts. It does not know what an archive looks like. Read next:
//! `ciel_kept::carry`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use ciel_kept::carry::Source;
use ciel_kept::{Destination, Entry, KeptResults, SharedResults, carry};
pub use ciel_kept::{
    Packed, Unpacked,
    archive::{ArchiveError, is_archive},
};
use ciel_model::Digest;
use ciel_store::{RunEntry, StateFolder};
use ciel_view::RunDescription;

use crate::choice::seconds_now;
use crate::keeper::{anywhere, for_others, in_surroundings};
use crate::kept_results;
use crate::layout::KEPT;

/// Writes what is kept of the tasks of a run into an archive, whichever run has kept it, also in
/// the shared folder of the run; none if nothing is kept in that state folder. `numbers_of` knows
/// users by name.
///
/// # Errors
/// Those of files and index, and of `target`.
pub fn pack<W: Write>(
    state: &Path,
    run: &RunEntry,
    numbers_of: impl FnOnce(&[String]) -> Vec<u32>,
    (owner, target): (&str, W),
) -> Result<Option<(Packed, W)>, ArchiveError> {
    let (Some(store), Some(described)) = (kept_results::open(state)?, RunDescription::read(run))
    else {
        return Ok(None);
    };
    let surroundings = anywhere(described.options.strict_shell);
    let keys = keys_of(&store, run, surroundings)?;
    let trusted = numbers_of(&described.options.trusted_owners);
    let shared = described.options.kept_folder.as_deref();
    // What cannot be read any more counts as gone.
    let shared =
        shared.and_then(|folder| SharedResults::open(&described.folder.join(folder), trusted).ok());
    let source = Source {
        own: &store,
        shared: shared.as_ref(),
    };
    // Neither which run it was nor how long it took is anybody else's.
    let carried = |entry: Entry| Entry {
        run: "".into(),
        took_us: 0,
        ..for_others(&entry, surroundings, &described.folder)
    };
    carry::pack(&source, &keys, carried, (owner, target)).map(Some)
}

/// The keys of all tasks that the run knows of, and of all results that it has kept.
fn keys_of(
    store: &KeptResults,
    run: &RunEntry,
    surroundings: Digest,
) -> Result<BTreeSet<Digest>, ArchiveError> {
    let mut keys = store.keys_of_run(&run.id).map_err(ArchiveError::Kept)?;
    for task in kept_results::identities(&run.path)?.tasks {
        let key = task.given.parts.key();
        keys.insert(match store.entry(key)? {
            Some(_) => key,
            None => in_surroundings(&task.given.parts, surroundings).key(),
        });
    }
    Ok(keys)
}

/// Takes the results of an archive into a state folder, or into `shared`; in any form if `trusted`
/// names who made it.
///
/// # Errors
/// What is wrong with the archive; those of the folders.
pub fn unpack(
    state: &Path,
    archive: File,
    shared: Option<&Path>,
    trusted: &[String],
) -> Result<Unpacked, UnpackError> {
    if let Some(folder) = shared {
        let results = SharedResults::open(folder, Vec::new()).map_err(ArchiveError::Kept)?;
        return match results.is_writable() {
            true => Ok(carry::unpack(
                archive,
                trusted,
                Destination::Shared(&results),
            )?),
            false => Err(UnpackError::ReadOnly),
        };
    }
    let folder = StateFolder::open(state)?;
    let results = KeptResults::open(&folder.path().join(KEPT));
    let mut results = results.map_err(ArchiveError::Kept)?;
    let destination = Destination::Own(&mut results, seconds_now());
    Ok(carry::unpack(archive, trusted, destination)?)
}

/// Why results of an archive cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// What is wrong with the archive, or with where its results go.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The state folder.
    #[error(transparent)]
    State(#[from] ciel_store::StoreError),
    /// The shared folder.
    #[error("the shared folder cannot be written")]
    ReadOnly,
}
