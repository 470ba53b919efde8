//! Where the state folder is: where it was wished, unless that is on another machine.
//!
//! On a network file system locks may not hold and mapped files may change, so the state of runs
//! is kept on this machine instead, in a folder that follows from the wished path: every command
//! finds the same. What survives a restart of the machine is preferred. It does not know what a
//! state folder holds. Read next: `ciel_store::network`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use ciel_store::network;

/// Characters of the hash in a folder's name.
const HASH_CHARACTERS: usize = 16;

/// Where a state folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLocation {
    /// Its path.
    pub path: PathBuf,
    /// The kind of file system that it was wished on, if that is on another machine.
    pub network: Option<&'static str>,
}

impl StateLocation {
    /// The notice before a run begins there, which is given once: when the folder does not exist
    /// yet. `wished` is the path that users expect.
    pub fn notice(&self, wished: &Path) -> Option<String> {
        let kind = self.network?;
        let shown = wished.display();
        if self.path == wished {
            return Some(format!(
                "{shown} is on a network file system ({kind}) and no local folder was found for \
                 the state: an interrupted run may be lost; name a local folder with --state"
            ));
        }
        let is_new = !self.path.exists();
        is_new.then(|| {
            format!(
                "{shown} is on a network file system ({kind}), where file locks are unreliable: \
                 the state of runs is kept on this machine, in {}",
                self.path.display()
            )
        })
    }
}

/// Where the state folder is that is wished at this path. Nothing is made for a path on this
/// machine; otherwise the folder above the place is.
pub fn of_state(wished: &Path) -> StateLocation {
    choose(wished, network::kind_at(wished), &candidates(), is_fit)
}

/// The decision: the first of the folders that is fit takes the state wished on another machine.
fn choose(
    wished: &Path,
    network: Option<&'static str>,
    candidates: &[PathBuf],
    is_fit: impl Fn(&Path) -> bool,
) -> StateLocation {
    let local = candidates
        .iter()
        .find(|folder| network.is_some() && is_fit(folder));
    let path = local.map_or_else(|| wished.to_path_buf(), |folder| folder.join(hash(wished)));
    StateLocation { path, network }
}

/// The same for a path however it is written.
fn hash(wished: &Path) -> String {
    let absolute = std::path::absolute(wished).unwrap_or_else(|_| wished.to_path_buf());
    let hash = blake3::hash(absolute.as_os_str().as_bytes());
    hash.to_hex()[..HASH_CHARACTERS].to_string()
}

/// Folders for state, best first: the user's cache, then what survives a restart, then what may
/// not.
fn candidates() -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let home = variable("HOME").map(|home| home.join(".cache"));
    let own = format!("ciel-state-{}", rustix::process::getuid().as_raw());
    let mut folders: Vec<PathBuf> = cache
        .or(home)
        .into_iter()
        .map(|cache| cache.join("ciel"))
        .collect();
    folders.extend([
        Path::new("/var/tmp").join(&own),
        std::env::temp_dir().join(own),
    ]);
    folders
}

/// Creates the folder if it is missing; returns whether it is local and writable only by its user.
fn is_fit(folder: &Path) -> bool {
    if network::kind_at(folder).is_some() {
        return false;
    }
    // It may be there already; what matters is whose it is.
    let _ = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    let user = rustix::process::getuid().as_raw();
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> Vec<PathBuf> {
        ["/cache/ciel", "/var/tmp/ciel-state-7"]
            .map(PathBuf::from)
            .to_vec()
    }

    #[test]
    fn local_state_stays_where_it_was_wished() {
        let place = choose(Path::new("/home/a/.ciel"), None, &folders(), |_| true);
        assert_eq!(place.path, Path::new("/home/a/.ciel"));
        assert_eq!(place.notice(Path::new("/home/a/.ciel")), None);
    }

    #[test]
    fn state_on_the_network_goes_to_the_first_fit_folder_of_this_machine() {
        let wished = Path::new("/far/a/.ciel");
        let choose_among =
            |fit: &str| choose(wished, Some("NFS"), &folders(), |it| it.starts_with(fit));
        let first = choose_among("/");
        assert!(first.path.starts_with("/cache/ciel"));
        assert!(
            choose_among("/var")
                .path
                .starts_with("/var/tmp/ciel-state-7")
        );
        let told = first.notice(wished).unwrap();
        assert!(
            told.contains("NFS") && told.contains("/cache/ciel/"),
            "{told}"
        );
    }

    #[test]
    fn each_wished_path_has_a_place_of_its_own() {
        let place =
            |wished: &str| choose(Path::new(wished), Some("NFS"), &folders(), |_| true).path;
        assert_eq!(place("/far/a/.ciel"), place("/far/a/./.ciel"));
        assert_ne!(place("/far/a/.ciel"), place("/far/b/.ciel"));
    }

    #[test]
    fn state_without_any_local_folder_stays_and_is_warned_of() {
        let wished = Path::new("/far/a/.ciel");
        let place = choose(wished, Some("NFS"), &folders(), |_| false);
        assert_eq!(place.path, wished);
        assert!(place.notice(wished).unwrap().contains("--state"));
    }

    #[test]
    fn place_that_is_there_already_is_not_told_again() {
        let home = tempfile::tempdir().unwrap();
        let place = StateLocation {
            path: home.path().to_path_buf(),
            network: Some("NFS"),
        };
        assert_eq!(place.notice(Path::new("/far/a/.ciel")), None);
    }

    #[test]
    fn folder_that_others_may_write_is_not_fit() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let (own, open) = (home.path().join("made/here"), home.path().join("open"));
        assert!(is_fit(&own));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_fit(&open));
    }
}
