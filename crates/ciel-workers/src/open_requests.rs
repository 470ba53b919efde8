//! The numbers of a task's requests that are not answered, or whose files are not committed.
//!
//! It does not know what they are about. Read next: `task`.

use rustc_hash::FxHashSet;

use crate::limits::REQUESTS_OPEN_MAX;

/// The numbers that no new request may have.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests(FxHashSet<u32>);

impl OpenRequests {
    /// Whether a request may have that number.
    ///
    /// # Errors
    /// Another request that is open has it, or too many are open.
    pub(crate) fn check(&self, request: u32) -> Result<(), &'static str> {
        if self.0.contains(&request) {
            return Err("the number of this request is in use");
        }
        match self.0.len() < REQUESTS_OPEN_MAX {
            true => Ok(()),
            false => Err("too many requests of this task are open"),
        }
    }

    /// A request is open from now on.
    pub(crate) fn open(&mut self, request: u32) {
        self.0.insert(request);
    }

    /// A request is over.
    pub(crate) fn close(&mut self, request: u32) {
        self.0.remove(&request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of all requests of a task were kept, so a task that asked for ever grew its
    /// engine for ever.
    #[test]
    fn only_open_requests_take_room_and_their_number_is_bounded() {
        let mut requests = OpenRequests::default();
        for request in 0..REQUESTS_OPEN_MAX as u32 {
            requests.check(request).expect("there is room");
            requests.open(request);
        }
        assert!(requests.check(u32::MAX).is_err());
        requests.close(7);
        assert_eq!(requests.check(u32::MAX), Ok(()));
        assert_eq!(requests.check(7), Ok(()));
    }
}
