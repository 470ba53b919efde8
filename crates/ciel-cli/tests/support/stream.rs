//! What a command writes, read by a thread so that it never stands still for us.
//!
//! It keeps the beginning up to a bound, and the last bytes. It does not know what they mean.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex};

use super::DEADLINE;

/// Bytes kept from the beginning.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// Bytes kept from the end.
const LAST_BYTES_MAX: usize = 16 << 10;

/// Bytes shown in a message.
const EXCERPT_BYTES_MAX: usize = 64 << 10;

#[derive(Default)]
struct State {
    kept: Vec<u8>,
    taken: usize,
    last: Vec<u8>,
    count: u64,
    ended: bool,
}

/// One stream of a command.
pub struct Stream(Arc<(Mutex<State>, Condvar)>);

impl Stream {
    /// Begins to read.
    pub fn read(mut source: impl Read + Send + 'static) -> Stream {
        let shared = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let own = shared.clone();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let count = source.read(&mut buffer).unwrap_or(0);
                let mut state = own.0.lock().unwrap();
                state.add(&buffer[..count]);
                own.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        Stream(shared)
    }

    /// Waits for the next line and takes it, without its end.
    pub fn line(&self) -> String {
        let waits = |state: &mut State| !state.ended && state.line_length().is_none();
        let mut state = self.wait_while("a line", waits);
        let Some(length) = state.line_length() else {
            panic!("the output ended before the line: {:?}", state.text());
        };
        let line = &state.kept[state.taken..state.taken + length];
        let line = String::from_utf8_lossy(line).into_owned();
        state.taken += length + 1;
        line
    }

    /// Waits until everything has come.
    pub fn await_end(&self) {
        drop(self.wait_while("the end of the output", |state| !state.ended));
    }

    /// What was kept from the beginning and is not yet taken.
    pub fn text(&self) -> String {
        self.0.0.lock().unwrap().text()
    }

    /// Its beginning and its end, if all of it would be too much for a message.
    pub fn excerpt(&self) -> String {
        let state = self.0.0.lock().unwrap();
        let text = state.text();
        match text.len() {
            ..EXCERPT_BYTES_MAX => text,
            _ => {
                let begin: String = text.chars().take(LAST_BYTES_MAX).collect();
                format!("{begin}\n…\n{}", String::from_utf8_lossy(&state.last))
            }
        }
    }

    /// The last bytes.
    pub fn end(&self) -> String {
        String::from_utf8_lossy(&self.0.0.lock().unwrap().last).into_owned()
    }

    /// How many bytes have come.
    pub fn count(&self) -> u64 {
        self.0.0.lock().unwrap().count
    }

    fn wait_while(
        &self,
        what: &str,
        waits: impl FnMut(&mut State) -> bool,
    ) -> std::sync::MutexGuard<'_, State> {
        let state = self.0.0.lock().unwrap();
        let (state, waited) = self.0.1.wait_timeout_while(state, DEADLINE, waits).unwrap();
        assert!(!waited.timed_out(), "waited in vain: {what}");
        state
    }
}

impl State {
    fn add(&mut self, bytes: &[u8]) {
        let room = KEPT_BYTES_MAX - self.kept.len();
        self.kept.extend(&bytes[..bytes.len().min(room)]);
        self.last.extend(bytes);
        let excess = self.last.len().saturating_sub(LAST_BYTES_MAX);
        self.last.drain(..excess);
        self.count += bytes.len() as u64;
        self.ended |= bytes.is_empty();
    }

    fn line_length(&self) -> Option<usize> {
        self.kept[self.taken..]
            .iter()
            .position(|byte| *byte == b'\n')
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept[self.taken..]).into_owned()
    }
}
