//! A disk that is really full or really read-only: a small file system of our own, which only
//! root can mount. Where that is not possible the tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ciel_store::{ObjectName, ObjectStore, RunFolder, StateFolder, StoreError};
use tempfile::TempDir;

/// Held while a test has its disk. A removed file gives its space back when its last descriptor is
/// closed, and a `mount` that another test was just starting had inherited one: the disk was
/// still full for as long as that process took from its fork to its exec.
static ALONE: Mutex<()> = Mutex::new(());

struct SmallDisk {
    home: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let disk = SmallDisk {
            home: TempDir::new().unwrap(),
            _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner),
        };
        mount(
            &["-t", "tmpfs", "-o", "size=256k", "tmpfs"],
            disk.home.path(),
        )
        .then_some(disk)
    }

    fn state_path(&self) -> PathBuf {
        self.home.path().join(".ciel")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount")
            .arg("-l")
            .arg(self.home.path())
            .output();
        drop(unmounted);
    }
}

fn mount(arguments: &[&str], path: &Path) -> bool {
    let outcome = Command::new("mount").args(arguments).arg(path).output();
    let mounted = outcome.is_ok_and(|output| output.status.success());
    if !mounted {
        println!("skipped: cannot mount a small file system here");
    }
    mounted
}

#[test]
fn full_disk_refuses_objects_and_spills_whole_and_recovers() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let state = StateFolder::open(&disk.state_path()).unwrap();
    let run = RunFolder::create(&state, "run", u64::MAX).unwrap();
    let (kept, large) = (ObjectName(1), ObjectName(2));
    run.objects().put(kept, &[1; 100_000]).unwrap();

    let error = run.objects().put(large, &[2; 300_000]).unwrap_err();
    assert!(matches!(error, StoreError::DiskFull { .. }) && error.is_retryable());
    assert!(error.hint().unwrap().contains("ciel clean"));
    assert_eq!(
        run.spill().append(&[3; 300_000]).unwrap_err().code(),
        "store.disk-full"
    );
    assert_eq!(run.budget().used(), 100_000);
    assert_eq!(
        run.objects().map(large).unwrap_err().code(),
        "store.unknown-object"
    );
    assert_eq!(&*run.objects().map(kept).unwrap(), [1; 100_000]);

    run.objects().release(kept).unwrap();
    let extent = run.spill().append(&[4; 1000]).unwrap();
    run.objects().put(large, &[2; 20_000]).unwrap();
    assert_eq!(run.spill().read(extent).unwrap(), [4; 1000]);
}

#[test]
fn disk_too_full_for_a_run_leaves_no_run() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let state = StateFolder::open(&disk.state_path()).unwrap();
    let filler = disk.home.path().join("filler");
    std::fs::write(&filler, vec![0; 400_000]).unwrap_err();
    let error = RunFolder::create(&state, "run", u64::MAX).unwrap_err();
    assert_eq!(error.code(), "store.disk-full");
    std::fs::remove_file(&filler).unwrap();
    RunFolder::create(&state, "run", u64::MAX).unwrap();
}

#[test]
fn read_only_disk_can_be_looked_at_but_not_run_in() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let state = StateFolder::open(&disk.state_path()).unwrap();
    drop(RunFolder::create(&state, "run", u64::MAX).unwrap());
    if !mount(&["-o", "remount,ro"], disk.home.path()) {
        return;
    }
    let state = StateFolder::open_existing(&disk.state_path())
        .unwrap()
        .unwrap();
    assert_eq!(state.runs().unwrap().len(), 1);
    let error = RunFolder::create(&state, "other", u64::MAX).unwrap_err();
    assert_eq!(
        (error.code(), error.is_retryable()),
        ("store.read-only", false)
    );
    let error = StateFolder::open(&disk.home.path().join("new")).unwrap_err();
    assert_eq!(error.code(), "store.read-only");
}
