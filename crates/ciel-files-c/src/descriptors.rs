//! The table of open files, by descriptor.
//!
//! These descriptors are the library's own, not the kernel's. Several may be one open file. Each
//! thread keeps those that it has used, until any descriptor changes, so that a write takes no lock
//! and counts nothing that other threads look at. It does not know what is done with the files.
//! Read next: `calls`.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ciel_files::{File, Mode};

use crate::failure::Failure;

/// How many descriptors may be open at once.
pub(crate) const DESCRIPTORS_MAX: usize = 65_536;

type Table = Vec<Option<Arc<File>>>;

/// All open files.
struct Open {
    files: Table,
    /// No descriptor below is free.
    free_from: usize,
}

static TABLE: RwLock<Open> = RwLock::new(Open {
    files: Vec::new(),
    free_from: 0,
});

/// How often a descriptor has become another file or none. Changed with the table locked.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Files that a thread has found in the table, by descriptor.
struct Found {
    /// The changes when the table was looked at.
    changes: u64,
    files: Table,
}

thread_local! {
    static FOUND: RefCell<Found> = const {
        RefCell::new(Found { changes: 0, files: Vec::new() })
    };
}

fn read() -> RwLockReadGuard<'static, Open> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Open> {
    TABLE.write().unwrap_or_else(PoisonError::into_inner)
}

fn not_open(descriptor: c_int) -> Failure {
    let message = format!("descriptor {descriptor} is not open");
    Failure::new(libc::EBADF, message)
}

fn place(descriptor: c_int) -> Option<usize> {
    let place = usize::try_from(descriptor).ok()?;
    (place < DESCRIPTORS_MAX).then_some(place)
}

fn find(table: &Table, descriptor: c_int) -> Option<&Arc<File>> {
    table.get(place(descriptor)?)?.as_ref()
}

/// The open file of a descriptor.
pub(crate) fn get(descriptor: c_int) -> Result<Arc<File>, Failure> {
    find(&read().files, descriptor)
        .cloned()
        .ok_or_else(|| not_open(descriptor))
}

/// Puts bytes into the buffer of this strand, if this thread knows that the descriptor is a file
/// for serial append and if they fit. Otherwise nothing is done.
#[inline]
pub(crate) fn gather(descriptor: c_int, bytes: &[u8]) -> bool {
    let gathered = FOUND.try_with(|found| match found.try_borrow() {
        Ok(found) if found.changes == CHANGES.load(Ordering::Acquire) => found
            .find(descriptor)
            .is_some_and(|file| file.gather(bytes)),
        Ok(_) | Err(_) => false,
    });
    gathered.unwrap_or(false)
}

/// Acts on the open file of a descriptor.
pub(crate) fn with<T>(
    descriptor: c_int,
    act: impl FnOnce(&File) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut act = Some(act);
    let mut once = |file: &File| act.take().expect("it acts on one file")(file);
    let done = FOUND.try_with(|found| {
        let mut found = found.borrow_mut();
        found.forget_changed();
        match found.find(descriptor) {
            Some(file) => once(file),
            None => once(&*found.look_up(descriptor)?),
        }
    });
    // A thread that is ending keeps nothing any more.
    done.unwrap_or_else(|_| once(&*get(descriptor)?))
}

impl Found {
    #[inline]
    fn forget_changed(&mut self) {
        let changes = CHANGES.load(Ordering::Acquire);
        if self.changes != changes {
            self.files.clear();
            self.changes = changes;
        }
    }

    #[inline]
    fn find(&self, descriptor: c_int) -> Option<&Arc<File>> {
        let place = usize::try_from(descriptor).ok()?;
        self.files.get(place)?.as_ref()
    }

    /// Only files for serial append are kept: to close one ends it, whoever has it still, where the
    /// others end when nobody has them.
    #[cold]
    fn look_up(&mut self, descriptor: c_int) -> Result<Arc<File>, Failure> {
        let file = get(descriptor)?;
        if let Some(place) = place(descriptor)
            && file.mode() == Mode::SerialAppend
        {
            put(&mut self.files, place, file.clone());
        }
        Ok(file)
    }
}

/// Gives an open file the lowest descriptor that is free.
pub(crate) fn add(file: Arc<File>) -> Result<c_int, Failure> {
    let mut table = write();
    let mut behind = table.files.iter().skip(table.free_from);
    let free = behind.position(Option::is_none);
    let place = free.map_or(table.files.len(), |free| table.free_from + free);
    if place == DESCRIPTORS_MAX {
        let message = format!("{DESCRIPTORS_MAX} descriptors are open already");
        return Err(Failure::new(libc::EMFILE, message));
    }
    put(&mut table.files, place, file);
    table.free_from = place + 1;
    Ok(c_int::try_from(place).expect("a descriptor is below its bound"))
}

fn put(table: &mut Table, place: usize, file: Arc<File>) -> Option<Arc<File>> {
    if table.len() <= place {
        table.resize_with(place + 1, || None);
    }
    table[place].replace(file)
}

/// Lets a descriptor be this open file.
pub(crate) fn set(descriptor: c_int, file: Arc<File>) -> Result<(), Failure> {
    let place = place(descriptor).ok_or_else(|| not_open(descriptor))?;
    let mut table = write();
    put(&mut table.files, place, file);
    CHANGES.fetch_add(1, Ordering::Release);
    Ok(())
}

/// Checks that a descriptor may be chosen by the caller.
pub(crate) fn check(descriptor: c_int) -> Result<(), Failure> {
    let place = place(descriptor);
    place.map(drop).ok_or_else(|| not_open(descriptor))
}

/// Whether two descriptors are the same open file.
pub(crate) fn are_same(one: c_int, other: c_int) -> bool {
    let table = read();
    match (find(&table.files, one), find(&table.files, other)) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

/// Whether no other descriptor is this open file.
pub(crate) fn is_last(descriptor: c_int) -> Result<bool, Failure> {
    let table = read();
    let file = find(&table.files, descriptor).ok_or_else(|| not_open(descriptor))?;
    let same =
        |other: &&Option<Arc<File>>| other.as_ref().is_some_and(|other| Arc::ptr_eq(file, other));
    Ok(table.files.iter().filter(same).take(2).count() == 1)
}

/// Forgets a descriptor.
pub(crate) fn remove(descriptor: c_int) -> Result<Arc<File>, Failure> {
    let place = place(descriptor).ok_or_else(|| not_open(descriptor))?;
    let mut table = write();
    let slot = table
        .files
        .get_mut(place)
        .ok_or_else(|| not_open(descriptor))?;
    let file = slot.take().ok_or_else(|| not_open(descriptor))?;
    table.free_from = table.free_from.min(place);
    CHANGES.fetch_add(1, Ordering::Release);
    Ok(file)
}
