//! One part of a pattern of paths, between two slashes.
//!
//! `*` matches any characters, `?` one, `[a-z]` one of these, `[!a-z]` one that is none of these. A
//! name that begins with a point is matched only by a part that begins with one. It knows no files.

/// A part of a pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'p> {
    /// Exactly that name.
    Name(&'p str),
    /// Names that match.
    Pattern(Pattern<'p>),
    /// `**`: any number of folders.
    Folders,
}

/// What names are compared with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern<'p>(&'p str);

impl<'p> Part<'p> {
    pub(super) fn of(text: &'p str) -> Part<'p> {
        match text {
            "**" => Part::Folders,
            _ if text.contains(['*', '?', '[']) => Part::Pattern(Pattern(text)),
            _ => Part::Name(text),
        }
    }
}

impl Pattern<'_> {
    /// Whether the whole name matches, in at most the product of both lengths steps.
    pub(super) fn matches(&self, name: &str) -> bool {
        if name.starts_with('.') && !self.0.starts_with('.') {
            return false;
        }
        let (mut pattern, mut rest) = (self.0, name);
        // Where to try again with one more character for the last `*`.
        let mut retry: Option<(&str, &str)> = None;
        loop {
            if let Some(after) = pattern.strip_prefix('*') {
                retry = Some((after, rest));
                pattern = after;
                continue;
            }
            let mut characters = rest.chars();
            match (characters.next(), one(pattern)) {
                (None, _) if pattern.is_empty() => return true,
                (Some(c), Some((accepts, after))) if accepts.accept(c) => {
                    (pattern, rest) = (after, characters.as_str());
                }
                _ => {
                    let Some((after, skipped)) = retry else {
                        return false;
                    };
                    let mut skipped = skipped.chars();
                    if skipped.next().is_none() {
                        return false;
                    }
                    (pattern, rest) = (after, skipped.as_str());
                    retry = Some((after, rest));
                }
            }
        }
    }
}

/// What one character may be.
enum One<'p> {
    Any,
    This(char),
    Set { inside: &'p str, is_negated: bool },
}

impl One<'_> {
    fn accept(&self, c: char) -> bool {
        match self {
            One::Any => true,
            One::This(this) => *this == c,
            One::Set { inside, is_negated } => in_set(inside, c) != *is_negated,
        }
    }
}

/// What the next character may be, and the pattern after it. A `[` without a `]` is itself.
fn one(pattern: &str) -> Option<(One<'_>, &str)> {
    let first = pattern.chars().next()?;
    let after = &pattern[first.len_utf8()..];
    match first {
        '?' => Some((One::Any, after)),
        '[' => Some(set(after).unwrap_or((One::This('['), after))),
        _ => Some((One::This(first), after)),
    }
}

/// A set after its `[`. A `]` that comes first is a member.
fn set(text: &str) -> Option<(One<'_>, &str)> {
    let members = text.strip_prefix(['!', '^']);
    let is_negated = members.is_some();
    let members = members.unwrap_or(text);
    let first = members.chars().next()?.len_utf8();
    let end = first + members[first..].find(']')?;
    let inside = &members[..end];
    Some((One::Set { inside, is_negated }, &members[end + 1..]))
}

fn in_set(members: &str, c: char) -> bool {
    let mut rest = members.chars();
    while let Some(low) = rest.next() {
        let mut ahead = rest.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) => {
                rest = ahead;
                high
            }
            _ => low,
        };
        if (low..=high).contains(&c) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_a_shell() {
        let cases = [
            ("*", "abc", true),
            ("*", ".abc", false),
            (".*", ".abc", true),
            ("a*c", "abbc", true),
            ("a*c", "abbcd", false),
            ("*.tar.*", "x.tar.tar.gz", true),
            ("?", "é", true),
            ("??", "é", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("[", "[", true),
            ("[ab", "[ab", true),
            ("a**b", "ab", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(Pattern(pattern).matches(name), expected, "{pattern} {name}");
        }
    }

    /// A pattern of many stars must not try every way to share out a long name.
    #[test]
    fn many_stars_are_quick() {
        let pattern = "*a".repeat(50) + "b";
        assert!(!Pattern(&pattern).matches(&"a".repeat(255)));
    }
}
