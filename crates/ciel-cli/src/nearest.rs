//! Suggestions for misspelt words.

/// The candidate nearest to `word`, if one is near enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = 1 + word.chars().count() / 4;
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(steps, _)| *steps <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Characters to insert, remove, replace or swap with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before = vec![0; to.len() + 1];
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for row in 1..=from.len() {
        let mut here = vec![row];
        for column in 1..=to.len() {
            let differs = usize::from(from[row - 1] != to[column - 1]);
            let replaced = above[column - 1] + differs;
            let mut best = replaced.min(above[column] + 1).min(here[column - 1] + 1);
            let swapped = row > 1
                && column > 1
                && from[row - 1] == to[column - 2]
                && from[row - 2] == to[column - 1];
            if swapped {
                best = best.min(before[column - 2] + 1);
            }
            here.push(best);
        }
        before = std::mem::replace(&mut above, here);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let candidates = ["hello.sw", "palette.sw", "notes.txt"];
        assert_eq!(nearest("helo.sw", candidates.into_iter()), Some("hello.sw"));
        assert_eq!(
            nearest("plaette.sw", candidates.into_iter()),
            Some("palette.sw")
        );
        assert_eq!(nearest("other.sw", candidates.into_iter()), None);
    }
}
