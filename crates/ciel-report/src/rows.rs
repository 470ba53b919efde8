//! Phases of running laid out in rows, so that none lies over another.
//!
//! It does not know tasks. Read next: `chart`.

/// The row of each span of time: the first one that is free at its beginning, in order of
/// beginnings; and the number of rows. Spans are `(from, to)`, sorted by `from`.
pub fn rows(spans: &[(u64, u64)]) -> (Vec<usize>, usize) {
    let mut free_from: Vec<u64> = Vec::new();
    let mut rows = Vec::with_capacity(spans.len());
    for (from, to) in spans {
        let row = free_from.iter().position(|free| free <= from);
        let row = row.unwrap_or_else(|| {
            free_from.push(0);
            free_from.len() - 1
        });
        free_from[row] = *to;
        rows.push(row);
    }
    (rows, free_from.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_takes_the_first_row_that_is_free() {
        let spans = [(0, 10), (2, 4), (4, 6), (5, 7), (10, 12)];
        assert_eq!(rows(&spans), (vec![0, 1, 1, 2, 0], 3));
        assert_eq!(rows(&[]), (Vec::new(), 0));
    }
}
