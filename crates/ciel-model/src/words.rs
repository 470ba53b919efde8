//! Amounts as people read them, the same in messages, on a terminal and on a page.
//!
//! It does not know what they are amounts of.

/// Bytes: `812 bytes`, `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_largest_unit_of_which_there_is_one() {
        let sizes = [0, 1023, 1024, 100 << 20, 1536 << 20, u64::MAX].map(size);
        let small = ["0 bytes", "1023 bytes", "1.0 KiB"];
        let large = ["100.0 MiB", "1.5 GiB", "16777216.0 TiB"];
        assert_eq!(sizes, [small, large].concat()[..]);
    }
}
