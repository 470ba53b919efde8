//! Signals for the tests as they are by default.
//!
//! Whoever starts a test by nohup, or in the background of a script, has some signals ignored, and
//! all processes inherit that: a test that sends one to a program would wait for its end in vain.
//! It does not know what is started. Read next: `scripts/signals.py`, the same for all tests.

/// What nohup and shells have ignored.
const STOPPING: [libc::c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT];

extern "C" fn without_effect(_: libc::c_int) {}

/// From now on processes start with the default of each signal in `STOPPING`. What is ignored in
/// this process stays without effect here: a handler is not inherited.
pub fn pass_on_defaults() {
    for number in STOPPING {
        // SAFETY: the handler does nothing; all bits zero are a valid `sigaction`, which the system
        // overwrites.
        unsafe {
            let mut set: libc::sigaction = std::mem::zeroed();
            libc::sigaction(number, std::ptr::null(), &mut set);
            if set.sa_sigaction == libc::SIG_IGN {
                set.sa_sigaction = without_effect as *const () as libc::sighandler_t;
                set.sa_flags = libc::SA_RESTART;
                libc::sigaction(number, &set, std::ptr::null_mut());
            }
        }
    }
}
