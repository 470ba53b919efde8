//! A rolling 128-bit fingerprint of a run of output, whatever the cuts between writes.
//!
//! Not cryptographic: it finds accidents, not attacks. It does not know what a replay is. Read
//! next: `history`.

/// State of the fingerprint: two lanes fed by words of eight bytes, and the bytes of the word
/// begun.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Fingerprint {
    lanes: [u64; 2],
    tail: u64,
    tail_bytes: u32,
    known: bool,
}

const MULTIPLIERS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];
const POINT: u64 = 0xa5a5_1f3c_77d0_b14b;
const SINK: u64 = 0x5be0_cd19_137e_2179;

impl Fingerprint {
    pub(crate) fn new() -> Fingerprint {
        let lanes = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];
        Fingerprint {
            lanes,
            tail: 0,
            tail_bytes: 0,
            known: true,
        }
    }

    /// Takes bytes; equal byte sequences give equal states however they are cut.
    pub(crate) fn absorb(&mut self, mut bytes: &[u8]) {
        while self.tail_bytes != 0 && !bytes.is_empty() {
            self.absorb_byte(bytes[0]);
            bytes = &bytes[1..];
        }
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let word = word.try_into().expect("chunks_exact gives eight bytes");
            self.mix(u64::from_le_bytes(word));
        }
        for &byte in words.remainder() {
            self.absorb_byte(byte);
        }
    }

    /// Takes bytes whose content is not known: from here on there is no value.
    pub(crate) fn absorb_unknown(&mut self) {
        self.known = false;
    }

    /// Takes a child that stands at this point.
    pub(crate) fn absorb_point(&mut self, key: u64) {
        self.close_word();
        self.mix(key ^ POINT);
    }

    /// What follows goes to that sink.
    pub(crate) fn absorb_sink(&mut self, sink: u32) {
        self.close_word();
        self.mix(u64::from(sink) ^ SINK);
    }

    /// The value of everything absorbed; none when some of it was not known.
    pub(crate) fn value(&self) -> Option<[u64; 2]> {
        let mut end = self.clone();
        end.close_word();
        self.known.then_some(end.lanes)
    }

    fn absorb_byte(&mut self, byte: u8) {
        self.tail |= u64::from(byte) << (8 * self.tail_bytes);
        self.tail_bytes += 1;
        if self.tail_bytes == 8 {
            let word = self.tail;
            (self.tail, self.tail_bytes) = (0, 0);
            self.mix(word);
        }
    }

    fn close_word(&mut self) {
        let length = u64::from(self.tail_bytes) + 1;
        let word = self.tail ^ (length << 56);
        (self.tail, self.tail_bytes) = (0, 0);
        self.mix(word);
        self.mix(length ^ POINT.rotate_left(32));
    }

    fn mix(&mut self, word: u64) {
        self.lanes[0] = fold(self.lanes[0] ^ word, MULTIPLIERS[0]).wrapping_add(word);
        self.lanes[1] = fold(
            self.lanes[1].rotate_left(29).wrapping_add(word),
            MULTIPLIERS[1],
        ) ^ word.rotate_left(17);
    }
}

fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_of(cuts: &[&[u8]]) -> Option<[u64; 2]> {
        let mut fingerprint = Fingerprint::new();
        cuts.iter().for_each(|cut| fingerprint.absorb(cut));
        fingerprint.value()
    }

    #[test]
    fn equal_bytes_cut_otherwise_give_one_value() {
        let bytes: Vec<u8> = (0..100).collect();
        let whole = value_of(&[&bytes]);
        for cut in 0..100 {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(value_of(&[left, right]), whole);
        }
    }

    #[test]
    fn a_changed_or_missing_byte_gives_another_value() {
        let bytes: Vec<u8> = vec![0; 41];
        let whole = value_of(&[&bytes]);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] = 1;
            assert_ne!(value_of(&[&other]), whole);
            assert_ne!(value_of(&[&bytes[..at]]), whole);
        }
    }

    #[test]
    fn a_child_elsewhere_gives_another_value() {
        let value_with_child_after = |bytes: usize| {
            let mut fingerprint = Fingerprint::new();
            fingerprint.absorb(&vec![7; bytes]);
            fingerprint.absorb_point(3);
            fingerprint.absorb(&vec![7; 20 - bytes]);
            fingerprint.value()
        };
        let values: Vec<_> = (0..=20).map(value_with_child_after).collect();
        for (index, value) in values.iter().enumerate() {
            assert!(!values[..index].contains(value));
        }
    }
}
