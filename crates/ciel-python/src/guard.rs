//! A mapped page of a file that may be cut by others: then the system sends SIGBUS to who reads it.
//!
//! The handler puts a page there that is not zero, and passes on all other faults. Read next:
//! `tail.rs`.

use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use libc::{c_int, c_void, sigaction, siginfo_t};
use rustix::param::page_size;

/// The page that is guarded: a process needs one.
static PAGE: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// The size of a page, for the handler.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// What was done about the signal before; `None` if that is not known.
static BEFORE: OnceLock<Option<sigaction>> = OnceLock::new();

/// As long as it lives, a page can be read whatever happens to its file.
pub struct Guard;

impl Guard {
    /// Guards a page that begins there; `None` if another one is guarded, or nothing can be.
    pub fn new(page: *mut u8) -> Option<Guard> {
        PAGE_BYTES.store(page_size(), Ordering::Relaxed);
        BEFORE.get_or_init(install).as_ref()?;
        let claimed = PAGE.compare_exchange(null_mut(), page, Ordering::Relaxed, Ordering::Relaxed);
        claimed.ok().map(|_| Guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        PAGE.store(null_mut(), Ordering::Relaxed);
    }
}

fn install() -> Option<sigaction> {
    // SAFETY: both are plain structures of C, for which zero is a value; the handler has the form
    // that SA_SIGINFO asks for, and does only what a handler may do.
    unsafe {
        let mut before: sigaction = std::mem::zeroed();
        let mut action: sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let done = sigaction(libc::SIGBUS, null(), &raw mut before) == 0
            && sigaction(libc::SIGBUS, &raw const action, null_mut()) == 0;
        done.then_some(before)
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    // SAFETY: the system gives a valid description of the signal.
    let address = unsafe { (*info).si_addr() };
    if replace(address as usize) {
        return;
    }
    // SAFETY: `BEFORE` was filled by the system. The signal comes again when this has returned.
    unsafe {
        if let Some(Some(before)) = BEFORE.get() {
            sigaction(signal, before, null_mut());
        }
        libc::raise(signal);
    }
}

/// Puts another page in place of the guarded one, if the address is in that.
fn replace(address: usize) -> bool {
    let page = PAGE.load(Ordering::Relaxed);
    let bytes = PAGE_BYTES.load(Ordering::Relaxed);
    if page.is_null() || address.wrapping_sub(page as usize) >= bytes {
        return false;
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the page is mapped by its owner, who only reads it, and unmaps it by its address.
    unsafe {
        let made = libc::mmap(page.cast(), bytes, access, flags, -1, 0);
        if made == libc::MAP_FAILED {
            return false;
        }
        page.write_bytes(0xff, bytes);
    }
    true
}
