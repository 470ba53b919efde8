//! A new input from known ones: bytes changed, pieces of others put in, pieces repeated or cut.
//!
//! Pure, from a seed. It does not know what reads the input.

use std::ops::Range;

use mutatis::Session;

/// Bytes of an input at most.
const INPUT_BYTES_MAX: usize = 4_096;

/// Changes of one input at most.
const CHANGES_MAX: usize = 6;

/// Bytes of a piece at most.
const PIECE_BYTES_MAX: usize = 64;

/// A source of changed inputs.
pub(crate) struct Changes {
    session: Session,
}

impl Changes {
    pub(crate) fn new(seed: u64) -> Changes {
        Changes {
            session: Session::new().seed(seed),
        }
    }

    /// An input of the pool, changed in a few places.
    pub(crate) fn next(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.choose(pool).to_vec();
        let changes_max = 1 + self.below(CHANGES_MAX);
        for _ in 0..=self.below(changes_max) {
            match self.below(10) {
                0..=2 => self.change_byte(&mut input),
                3..=5 => {
                    let other = self.choose(pool).to_vec();
                    self.put_word(&mut input, &other);
                }
                6 | 7 => {
                    let other = self.choose(pool).to_vec();
                    self.put_piece(&mut input, &other);
                }
                8 => {
                    let own = input.clone();
                    self.put_piece(&mut input, &own);
                }
                _ => self.cut_piece(&mut input),
            }
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn change_byte(&mut self, input: &mut Vec<u8>) {
        // An empty input has nothing to change.
        let _ = self.session.mutate(input);
    }

    /// A word of `source` takes the place of another.
    fn put_word(&mut self, input: &mut Vec<u8>, source: &[u8]) {
        let (from, to) = (self.word(source), self.word(input));
        input.splice(to, source[from].iter().copied());
    }

    /// Where some word is: letters and digits, or a single byte of anything else.
    fn word(&mut self, text: &[u8]) -> Range<usize> {
        let at = self.below(text.len() + 1);
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric();
        let before = text[..at].iter().rev().take_while(is_part).count();
        let after = text[at..].iter().take_while(is_part).count();
        let end = (at + after.max(1)).min(text.len());
        at - before..end
    }

    /// A piece of `source` is put in, or takes the place of as many bytes.
    fn put_piece(&mut self, input: &mut Vec<u8>, source: &[u8]) {
        let from = self.below(source.len() + 1);
        let length = self.below(PIECE_BYTES_MAX.min(source.len() - from) + 1);
        let at = self.below(input.len() + 1);
        let replaced = match self.below(2) {
            0 => at,
            _ => (at + length).min(input.len()),
        };
        input.splice(at..replaced, source[from..from + length].iter().copied());
    }

    fn cut_piece(&mut self, input: &mut Vec<u8>) {
        let from = self.below(input.len() + 1);
        let length = self.below(PIECE_BYTES_MAX.min(input.len() - from) + 1);
        input.drain(from..from + length);
    }

    fn choose<'a>(&mut self, pool: &'a [Vec<u8>]) -> &'a [u8] {
        &pool[self.below(pool.len())]
    }

    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        let random: u64 = self.session.generate().expect("any number will do");
        (random % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_the_same_inputs_and_others_do_not() {
        let pool = [b"one two three".to_vec(), Vec::new()];
        let inputs = |seed| {
            let mut changes = Changes::new(seed);
            let inputs: Vec<Vec<u8>> = (0..200).map(|_| changes.next(&pool)).collect();
            inputs
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        assert!(inputs(1).iter().all(|input| input.len() <= INPUT_BYTES_MAX));
    }
}
