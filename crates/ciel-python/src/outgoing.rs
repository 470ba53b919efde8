//! The sending half of a connection: a buffer, and a thread that sends what has waited.
//!
//! It knows neither Python nor what the messages mean. Messages leave in order, in as few system
//! calls as possible: on demand, when the buffer is full, and at most [`WAIT_MAX`] after they were
//! appended. The thread does not flush the last message of a turn: its sender receives next, which
//! flushes it. It is no error here if the peer is gone; messages to it are lost, and the receiving
//! half, `incoming.rs`, reports the end.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BufMut;
use ciel_protocol::EncodeError;
use ciel_protocol::limits::MESSAGE_BYTES_MAX;
use ciel_protocol::wire::WorkerMessage;
use prost::Message;

use crate::socket::Socket;

/// The longest time that a message stays in the buffer.
pub const WAIT_MAX: Duration = Duration::from_micros(300);

/// Bytes in the buffer from which on it is to be sent at once.
pub const BUFFERED_BYTES_MAX: usize = 1 << 18;

/// Bytes of memory that an empty buffer keeps.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Waits of the thread without a message before it sleeps until it is woken. While messages come
/// all the time it stays awake, because waking it costs more than they do.
const IDLE_WAITS: u32 = 8;

/// Bytes of the thread's stack. It also holds what loaded libraries keep for each thread.
const STACK_BYTES: usize = 256 << 10;

/// The buffered messages, and the thread that will send them.
pub struct Outgoing {
    socket: Arc<Socket>,
    pending: Mutex<Pending>,
    /// Notifies the thread of a message to send, or of the end.
    woken: Condvar,
    /// The buffer being sent; the holder of the lock sends, so that order is kept while others
    /// append.
    sending: Mutex<Vec<u8>>,
}

struct Pending {
    bytes: Vec<u8>,
    thread: Thread,
    /// Whether anything was appended since the thread last looked.
    is_fresh: bool,
    /// Whether the buffer holds the last word of a turn, which the next `receive` sends.
    awaits_receive: bool,
    /// Whether the thread is to send what is there without waiting for more.
    is_urgent: bool,
    /// Whether nothing more will be sent: closed by us, or the peer has gone.
    is_ended: bool,
}

#[derive(PartialEq, Eq)]
enum Thread {
    NotStarted,
    Awake,
    Asleep,
}

impl Outgoing {
    /// Empty; the thread starts with the first message.
    pub fn new(socket: Arc<Socket>) -> Outgoing {
        let pending = Pending {
            bytes: Vec::new(),
            thread: Thread::NotStarted,
            is_fresh: false,
            awaits_receive: false,
            is_urgent: false,
            is_ended: false,
        };
        Outgoing {
            socket,
            pending: Mutex::new(pending),
            woken: Condvar::new(),
            sending: Mutex::new(Vec::new()),
        }
    }

    /// Appends a message to the buffer; returns whether the buffer is full and should be flushed.
    /// What `is_last` of a task's turn is sent by the `receive` that follows, or by the caller, so
    /// the thread sleeps on.
    ///
    /// # Errors
    /// [`EncodeError::TooLong`]; nothing was appended then.
    pub fn say(
        self: &Arc<Self>,
        message: &WorkerMessage,
        is_last: bool,
    ) -> Result<bool, EncodeError> {
        if self.socket.is_laid_down() {
            return Ok(false);
        }
        let length = message.encoded_len();
        if length > MESSAGE_BYTES_MAX {
            return Err(EncodeError::TooLong {
                bytes: length,
                bytes_max: MESSAGE_BYTES_MAX,
            });
        }
        let mut pending = lock(&self.pending);
        if pending.is_ended {
            return Ok(false);
        }
        pending.bytes.reserve(4 + length);
        let prefix = u32::try_from(length).expect("the limit fits in four bytes");
        pending.bytes.put_u32(prefix);
        message.encode_raw(&mut pending.bytes);
        let is_full = pending.bytes.len() >= BUFFERED_BYTES_MAX;
        if is_last {
            pending.awaits_receive = true;
        } else {
            pending.is_fresh = true;
            self.rouse(&mut pending);
        }
        Ok(is_full)
    }

    /// The thread sends all messages appended before the call, as soon as it runs.
    pub fn hasten(&self) {
        if !self.socket.is_laid_down() {
            lock(&self.pending).is_urgent = true;
            self.woken.notify_all();
        }
    }

    /// Sends all messages appended before the call; waits while the peer does not read.
    pub fn flush(&self) {
        if self.socket.is_laid_down() {
            return;
        }
        let mut sending = lock(&self.sending);
        {
            let mut pending = lock(&self.pending);
            pending.awaits_receive = false;
            std::mem::swap(&mut pending.bytes, &mut *sending);
        }
        if sending.is_empty() {
            return;
        }
        if self.socket.send_all(&sending).is_err() {
            let mut pending = lock(&self.pending);
            pending.is_ended = true;
            pending.bytes = Vec::new();
        }
        sending.clear();
        sending.shrink_to(KEPT_BYTES_MAX);
    }

    /// Whether the last message of a turn is buffered.
    pub fn awaits_receive(&self) -> bool {
        lock(&self.pending).awaits_receive
    }

    /// Closes the buffer: the thread sends what is buffered, and ends.
    pub fn end(&self) {
        if !self.socket.is_laid_down() {
            lock(&self.pending).is_ended = true;
            self.woken.notify_all();
        }
    }

    /// Sees to it that the thread looks at the buffer soon.
    fn rouse(self: &Arc<Self>, pending: &mut Pending) {
        match pending.thread {
            Thread::Awake => {}
            Thread::Asleep => {
                pending.thread = Thread::Awake;
                self.woken.notify_all();
            }
            Thread::NotStarted => {
                let outgoing = Arc::clone(self);
                let builder = std::thread::Builder::new().name("ciel-flush".to_owned());
                // A system without room for a thread still sends with every flush; the next message
                // retries.
                if builder
                    .stack_size(STACK_BYTES)
                    .spawn(move || outgoing.run())
                    .is_ok()
                {
                    pending.thread = Thread::Awake;
                }
            }
        }
    }

    fn run(&self) {
        let mut idle_waits = 0;
        loop {
            let mut pending = lock(&self.pending);
            if idle_waits >= IDLE_WAITS && pending.bytes.is_empty() && !pending.is_ended {
                pending.thread = Thread::Asleep;
                while pending.thread == Thread::Asleep && !pending.is_ended {
                    pending = self
                        .woken
                        .wait(pending)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
            let may_wait = |one: &mut Pending| !one.is_ended && !one.is_urgent;
            let waited = self.woken.wait_timeout_while(pending, WAIT_MAX, may_wait);
            let (mut pending, _) = waited.unwrap_or_else(PoisonError::into_inner);
            pending.is_urgent = false;
            idle_waits = if pending.is_fresh { 0 } else { idle_waits + 1 };
            pending.is_fresh = false;
            let (is_ended, is_due) = (pending.is_ended, !pending.bytes.is_empty());
            drop(pending);
            if is_due {
                self.flush();
            }
            if is_ended {
                return;
            }
        }
    }
}

/// The lock's content; a holder that panicked has left it whole, as each change is one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
