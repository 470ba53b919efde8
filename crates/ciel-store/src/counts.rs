//! How many bytes a run has made, moved and released, by how they came. Pure.
//!
//! What was made and is not released is present, for each kind and in all: nothing is counted
//! twice, and nothing is counted at one place and forgotten at another. It does not know files.
//! Read next: `budget`, which shares these counters.

/// How bytes came into a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The engine wrote them: values of scripts, and what workers sent.
    Value,
    /// A task wrote them as a file, or they are the copy of a user's file.
    File,
    /// A result of an earlier run: another name of a file, which takes no more room.
    Kept,
    /// An earlier process of the run left them.
    Recovered,
    /// Output that waits for its turn.
    Output,
}

/// Bytes of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that came.
    pub made: u64,
    /// Bytes of them that have gone.
    pub released: u64,
}

/// All counters of a store, since its process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    kinds: [Traffic; Kind::ALL.len()],
    /// Bytes that were copied into the store, instead of written or renamed there by a task, or out
    /// of it over a connection.
    pub moved: u64,
    /// The most bytes that were present at once.
    pub peak: u64,
}

impl Kind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Kind; 5] = [
        Kind::Value,
        Kind::File,
        Kind::Kept,
        Kind::Recovered,
        Kind::Output,
    ];

    /// The word that `ciel ps --store` shows.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Value => "values",
            Kind::File => "files",
            Kind::Kept => "kept",
            Kind::Recovered => "recovered",
            Kind::Output => "output",
        }
    }
}

impl Traffic {
    /// Bytes that are present.
    pub fn present(&self) -> u64 {
        self.made - self.released
    }
}

impl Counts {
    /// Those of one kind.
    pub fn of(&self, kind: Kind) -> Traffic {
        self.kinds[kind as usize]
    }

    /// Bytes that came, of all kinds.
    pub fn made(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.made).sum()
    }

    /// Bytes that have gone, of all kinds.
    pub fn released(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.released).sum()
    }

    /// Bytes that are present, of all kinds.
    pub fn present(&self) -> u64 {
        self.kinds.iter().map(Traffic::present).sum()
    }

    pub(crate) fn make(&mut self, kind: Kind, bytes: u64) {
        self.kinds[kind as usize].made += bytes;
        self.peak = self.peak.max(self.present());
        if kind == Kind::Value {
            self.moved += bytes;
        }
    }

    pub(crate) fn release(&mut self, kind: Kind, bytes: u64) {
        let traffic = &mut self.kinds[kind as usize];
        assert!(
            traffic.present() >= bytes,
            "only bytes that are present are released"
        );
        traffic.released += bytes;
    }

    /// Bytes that were made in vain were never made; they were copied, and took room.
    pub(crate) fn take_back(&mut self, kind: Kind, bytes: u64) {
        let traffic = &mut self.kinds[kind as usize];
        assert!(
            traffic.present() >= bytes,
            "only bytes that were charged are given back"
        );
        traffic.made -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_and_not_released_is_present() {
        let mut counts = Counts::default();
        counts.make(Kind::Value, 10);
        counts.make(Kind::File, 20);
        counts.release(Kind::Value, 4);
        counts.take_back(Kind::File, 5);
        counts.make(Kind::Output, 1);
        assert_eq!((counts.made(), counts.released()), (26, 4));
        assert_eq!(counts.present(), 22);
        assert_eq!(counts.of(Kind::File).present(), 15);
        assert_eq!((counts.peak, counts.moved), (30, 10));
    }

    #[test]
    #[should_panic(expected = "only bytes that are present are released")]
    fn bytes_of_another_kind_are_not_released() {
        let mut counts = Counts::default();
        counts.make(Kind::Value, 10);
        counts.release(Kind::File, 10);
    }
}
