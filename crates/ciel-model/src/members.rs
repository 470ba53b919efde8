//! The arguments in a payload that can be compared one by one: the members of a JSON object.
//!
//! They only name what differs between two payloads; digests decide whether two are equal. A
//! payload of another kind has no members. It does not know what an argument means. Read next:
//! `call`.

use std::sync::Arc;

use crate::digest::Digest;

/// A short check of each member; it takes no part in comparisons, and is not written down.
#[derive(Clone, Default, Debug)]
pub struct Members(Option<Arc<[u32]>>);

impl Members {
    /// Those of a payload.
    pub(crate) fn of(payload: &[u8]) -> Members {
        let checks = split(payload).map(|members| members.iter().map(|it| check(it)).collect());
        Members(checks)
    }

    /// The place of the first member of `now` that is not among these, if both are known.
    pub(crate) fn first_other(&self, now: &Members) -> Option<u32> {
        let (before, now) = (self.0.as_ref()?, now.0.as_ref()?);
        let place = now.iter().position(|check| !before.contains(check))?;
        u32::try_from(place).ok()
    }
}

impl PartialEq for Members {
    fn eq(&self, _: &Members) -> bool {
        true
    }
}

impl Eq for Members {}

impl std::hash::Hash for Members {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// The name of a member, by its place in a payload.
pub(crate) fn name_at(payload: &[u8], place: u32) -> Option<Arc<str>> {
    let members = split(payload)?;
    let member = members.get(place as usize)?;
    let name = member.strip_prefix(b"\"")?;
    let end = name.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&name[..end]).ok().map(Arc::from)
}

fn check(member: &[u8]) -> u32 {
    Digest::of(member).0 as u32
}

/// The texts of the members, each a name and a value; none if it is not one object alone.
fn split(payload: &[u8]) -> Option<Vec<&[u8]>> {
    let text = payload.trim_ascii().strip_prefix(b"{")?;
    let text = text.strip_suffix(b"}")?;
    let mut members = Vec::new();
    let (mut depth, mut in_string, mut is_escaped, mut begin) = (0u32, false, false, 0);
    for (at, byte) in text.iter().enumerate() {
        match (in_string, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_string = !in_string,
            (true, _) => {}
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') => depth = depth.checked_sub(1)?,
            (false, b',') if depth == 0 => {
                members.push(text[begin..at].trim_ascii());
                begin = at + 1;
            }
            (false, _) => {}
        }
    }
    let last = text[begin..].trim_ascii();
    if !last.is_empty() {
        members.push(last);
    }
    (depth == 0 && !in_string).then_some(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_member_that_is_not_as_before_is_named() {
        let before = r#"{"command": "a, b", "inputs": {"x": [1, 2]}, "n": 1}"#;
        for (now, name) in [
            (
                r#"{"command": "a, b", "inputs": {"x": [1, 2]}, "n": 2}"#,
                Some("n"),
            ),
            (
                r#"{"command": "a, b", "inputs": {"x": [1, 3]}, "n": 2}"#,
                Some("inputs"),
            ),
            (r#"{"n": 1, "command": "a, \"b"}"#, Some("command")),
            (r#"{"command": "a, b", "more": 1}"#, Some("more")),
            (r#"{"n": 1}"#, None),
            ("{}", None),
            ("[1]", None),
            (r#"{"n": "}"#, None),
        ] {
            let before = Members::of(before.as_bytes());
            let place = before.first_other(&Members::of(now.as_bytes()));
            let found = place.and_then(|place| name_at(now.as_bytes(), place));
            assert_eq!(found.as_deref(), name, "{now}");
        }
    }
}
