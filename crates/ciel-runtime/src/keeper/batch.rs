//! What is to be written to the index in the next transactions, and when.
//!
//! A result waits a moment for others; as long as these come quickly, it waits longer, since a
//! transaction costs as much as many small results and each page of the index is written once in
//! it. It does not know the index. Read next: `keeper`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ciel_kept::{Ended, Entry};
use ciel_model::Digest;
use rustc_hash::FxHashSet;

/// How long the first of a batch waits for others.
const WAIT: Duration = Duration::from_millis(20);

/// How long it waits at most, while others come quickly.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// Others come quickly if there are so many in each [`WAIT`]: they are of short tasks, which cost
/// little if a kill takes their results.
const QUICK: usize = 4;

/// What is written at once, at most: about as much as comes within [`WAIT_MAX`] of the shortest
/// tasks. Keys are random, so each page of the index is written the less often the longer a batch.
const LENGTH_MAX: usize = 4096;

/// Results and notes that wait.
#[derive(Default)]
pub(super) struct Batch {
    /// Results, with the files of their objects.
    pub(super) entries: Vec<(Entry, Vec<PathBuf>)>,
    /// Positions of tasks that began and are not written down as such.
    pub(super) places: Vec<Digest>,
    /// Positions of tasks that ended well and are not kept.
    pub(super) unkept: Vec<(Digest, Ended)>,
    /// Places whose tasks have taken a result that was kept for another place or by another key.
    pub(super) taken: Vec<(Digest, Digest)>,
    times: Option<Times>,
}

/// When a batch is written.
struct Times {
    /// Then it is looked at.
    due: Instant,
    /// Then at the latest it is written.
    latest: Instant,
    /// How long it was when it was last looked at.
    length: usize,
}

impl Batch {
    /// Something waits from `now` on, here or beside.
    pub(super) fn expect(&mut self, now: Instant) {
        self.times.get_or_insert(Times {
            due: now + WAIT,
            latest: now + WAIT_MAX,
            length: 0,
        });
    }

    /// When it is to be looked at, if anything waits.
    pub(super) fn due(&self) -> Option<Instant> {
        self.times.as_ref().map(|times| times.due)
    }

    /// Whether it is to be written without any further wait.
    pub(super) fn is_full(&self) -> bool {
        self.length() >= LENGTH_MAX
    }

    /// Whether it is to be written, now that it is due; otherwise it is due again later.
    pub(super) fn is_ready(&mut self, now: Instant) -> bool {
        let length = self.length();
        let Some(times) = &mut self.times else {
            return false;
        };
        let is_quick = length - times.length >= QUICK;
        if !is_quick || now >= times.latest {
            return true;
        }
        times.length = length;
        times.due = (now + WAIT).min(times.latest);
        false
    }

    /// Of results with a file that is gone by now only the digests are kept.
    pub(super) fn forget_lost_files(&mut self) {
        for (_, files) in &mut self.entries {
            if !files.iter().all(|file| file.exists()) {
                files.clear();
            }
        }
    }

    /// All of it, after which nothing waits.
    pub(super) fn take(&mut self) -> Batch {
        std::mem::take(self)
    }

    /// The positions of tasks that have begun and not ended: the others say more.
    pub(super) fn take_unended(&mut self) -> Vec<Digest> {
        let mut places = std::mem::take(&mut self.places);
        if !places.is_empty() {
            let kept = self.entries.iter().map(|(entry, _)| entry.place);
            let unkept = self.unkept.iter().map(|(place, _)| *place);
            let ended: FxHashSet<Digest> = kept.chain(unkept).collect();
            places.retain(|place| !ended.contains(place));
        }
        places
    }

    /// Results that are written leave their memory to the next ones: fresh memory for as many
    /// costs as much as to put them there.
    pub(super) fn reuse(&mut self, mut entries: Vec<(Entry, Vec<PathBuf>)>) {
        if self.entries.is_empty() {
            entries.clear();
            self.entries = entries;
        }
    }

    fn length(&self) -> usize {
        self.entries.len() + self.places.len() + self.unkept.len() + self.taken.len()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ciel_kept::{Found, KeptContent, KeptOutput, KeptResults, Parts};
    use ciel_model::Form;

    use super::*;

    /// A result of 5 000 bytes with a name of its own, and the file of them, which is not written.
    fn result(folder: &Path, number: u128) -> (Entry, Vec<PathBuf>) {
        let digest = Digest::of(&bytes(number));
        let entry = Entry {
            parts: Parts {
                executor: "shell".into(),
                surroundings: Digest(0),
                code: None,
                pieces: Default::default(),
                payload: Digest(number),
                arguments: Vec::new(),
                inputs: Vec::new(),
                outputs: 1,
            },
            place: Digest(number),
            task: "made".into(),
            outputs: vec![KeptOutput {
                form: Form::Bytes,
                content: KeptContent::Object {
                    digest,
                    length: 5_000,
                },
            }],
            printed: Vec::new(),
            beneath: Vec::new(),
            read: Vec::new(),
            took_us: 0,
            run: "run".into(),
            is_marked: false,
        };
        (entry, vec![folder.join(number.to_string())])
    }

    fn bytes(number: u128) -> Vec<u8> {
        vec![number as u8; 5_000]
    }

    /// The file of a result was lost and its task rerun while the result waited to be written: the
    /// look for the rerun's result takes the file's other name away. The batch could not be kept
    /// then, and nothing was kept for the rest of the run.
    #[test]
    fn result_whose_file_is_gone_does_not_keep_others_from_being_kept() {
        let home = tempfile::tempdir().unwrap();
        let mut batch = Batch {
            entries: vec![result(home.path(), 1), result(home.path(), 2)],
            ..Batch::default()
        };
        std::fs::write(&batch.entries[1].1[0], bytes(2)).unwrap();
        batch.forget_lost_files();
        let entries = batch.take().entries;
        let mut kept = KeptResults::open(&home.path().join("kept")).unwrap();
        kept.keep(&entries, 100).unwrap();
        for (entry, has_bytes) in entries.iter().map(|(entry, _)| entry).zip([false, true]) {
            let parts = std::slice::from_ref(&entry.parts);
            let found = kept.find(parts, entry.place, 100).unwrap();
            assert!(matches!(found, Found::Entry(_)));
            assert_ne!(kept.has_dropped_bytes(entry).unwrap(), has_bytes);
        }
    }

    /// Each batch of short tasks once had fresh memory for its entries, in pieces that doubled: of
    /// the processor time of a wide job of them a twelfth went to pages that were new each time.
    #[test]
    fn results_that_are_written_leave_their_memory_to_the_next() {
        let mut batch = Batch::default();
        let folder = Path::new("folder");
        batch.entries.extend((0..100).map(|it| result(folder, it)));
        let (memory, room) = (batch.entries.as_ptr(), batch.entries.capacity());
        let written = batch.take().entries;
        batch.reuse(written);
        assert_eq!((batch.entries.len(), batch.entries.capacity()), (0, room));
        assert_eq!(batch.entries.as_ptr(), memory);
    }

    fn add(batch: &mut Batch, count: usize) {
        let all = 0..count as u128;
        batch.places.extend(all.map(Digest));
    }

    #[test]
    fn lone_result_waits_only_a_moment() {
        let mut batch = Batch::default();
        assert_eq!(batch.due(), None);
        let start = Instant::now();
        batch.expect(start);
        add(&mut batch, 1);
        assert_eq!(batch.due(), Some(start + WAIT));
        assert!(batch.is_ready(start + WAIT));
    }

    #[test]
    fn batch_waits_while_others_come_quickly_but_not_for_ever() {
        let mut batch = Batch::default();
        let start = Instant::now();
        batch.expect(start);
        let mut looks = 0;
        while let Some(due) = batch.due() {
            add(&mut batch, QUICK);
            if batch.is_ready(due) {
                assert_eq!(due, start + WAIT_MAX);
                break;
            }
            looks += 1;
        }
        assert_eq!(looks, WAIT_MAX.as_millis() / WAIT.as_millis() - 1);
        assert_eq!(batch.take().places.len(), QUICK * (looks as usize + 1));
        assert_eq!(batch.due(), None);
    }

    #[test]
    fn batch_is_written_when_no_more_come_quickly() {
        let mut batch = Batch::default();
        let start = Instant::now();
        batch.expect(start);
        add(&mut batch, QUICK);
        assert!(!batch.is_ready(start + WAIT));
        add(&mut batch, QUICK - 1);
        assert!(batch.is_ready(start + 2 * WAIT));
    }

    #[test]
    fn long_batch_is_full() {
        let mut batch = Batch::default();
        add(&mut batch, LENGTH_MAX - 1);
        assert!(!batch.is_full());
        add(&mut batch, 1);
        assert!(batch.is_full());
    }
}
