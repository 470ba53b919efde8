//! Separates code from comments and strings, and production code from tests.
//!
//! A masked text has the same length and lines as the original, with blanks in place of comments,
//! strings and characters. It is a scanner, not a parser: it knows tokens and brackets. Read
//! [`super::lengths`] for a rule that uses it.

/// Rust without comments, strings and characters.
pub fn mask_rust(text: &str) -> String {
    mask(text, rust_passage)
}

/// Python without comments and strings.
pub fn mask_python(text: &str) -> String {
    mask(text, python_passage)
}

/// Masked Rust without the items that are compiled for tests only.
pub fn without_tests(masked: &str) -> String {
    let mut bytes = masked.as_bytes().to_vec();
    for (start, _) in masked.match_indices("#[cfg(test)]") {
        let end = item_end(masked.as_bytes(), start + "#[cfg(test)]".len());
        blank(&mut bytes[start..end]);
    }
    String::from_utf8(bytes).expect("whole items are blanked")
}

/// The line, counted from 1, on which the byte `at` lies.
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

/// Where `word` begins in `text`, standing alone: no letter, digit or underscore around it.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let before = text[..at].bytes().next_back();
            let after = text[at + word.len()..].bytes().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
}

/// Whether the byte may stand in a name.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where the item that begins at `at` ends: behind its `;`, or behind the bracket `}` that belongs
/// to its first `{`.
pub fn item_end(masked: &[u8], at: usize) -> usize {
    let mut depth = 0_i32;
    for (offset, byte) in masked[at..].iter().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'}' if depth == 1 => return at + offset + 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at + offset + 1,
            _ => {}
        }
    }
    masked.len()
}

/// Blanks each passage that `passage` finds; it gives the end of the one that begins at a place.
fn mask(text: &str, passage: fn(&[u8], usize) -> Option<usize>) -> String {
    let bytes = text.as_bytes();
    let mut masked = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = passage(bytes, at).map(|end| end.min(bytes.len()));
        if let Some(end) = end {
            blank(&mut masked[at..end]);
        }
        at = end.unwrap_or(at + 1);
    }
    String::from_utf8(masked).expect("whole passages are blanked")
}

fn blank(bytes: &mut [u8]) {
    bytes
        .iter_mut()
        .filter(|byte| **byte != b'\n')
        .for_each(|byte| *byte = b' ');
}

fn rust_passage(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => Some(at + until(rest, b"\n")),
        b'/' if rest.starts_with(b"/*") => Some(at + block_comment(rest)),
        b'"' => Some(at + quoted(rest, b"\"")),
        b'\'' => character(rest).map(|length| at + length),
        b'r' => raw_string(rest).map(|length| at + length),
        _ => None,
    }
}

fn python_passage(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let triple: [&[u8]; 2] = [b"\"\"\"", b"'''"];
    if let Some(quote) = triple.into_iter().find(|quote| rest.starts_with(quote)) {
        return Some(at + quoted(rest, quote));
    }
    match rest[0] {
        b'#' => Some(at + until(rest, b"\n")),
        b'"' | b'\'' => Some(at + quoted(rest, &rest[..1])),
        _ => None,
    }
}

/// The length up to `mark`, or all.
fn until(rest: &[u8], mark: &[u8]) -> usize {
    rest.windows(mark.len())
        .position(|window| window == mark)
        .unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let step = match &rest[at..] {
            [b'/', b'*', ..] => 1,
            [b'*', b'/', ..] => -1,
            _ => 0,
        };
        depth += step;
        at += if step == 0 { 1 } else { 2 };
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a string between two `quote`s, in which `\` protects the next byte.
fn quoted(rest: &[u8], quote: &[u8]) -> usize {
    let mut at = quote.len();
    while at < rest.len() {
        if rest[at..].starts_with(quote) {
            return at + quote.len();
        }
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    rest.len()
}

/// The length of a character; nothing if the quote begins a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return Some(quoted(rest, b"'"));
    }
    let text = std::str::from_utf8(&rest[1..rest.len().min(8)]);
    let valid = match text {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&rest[1..=error.valid_up_to()]).ok()?,
    };
    let length = 1 + valid.chars().next()?.len_utf8();
    (rest.get(length) == Some(&b'\'')).then_some(length + 1)
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    let open = 1 + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    Some(open + 1 + until(&rest[open + 1..], &close) + close.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(masked: &str) -> String {
        masked.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_strings_and_characters_of_rust_are_blanked() {
        let text = "a /* x /* y */ z */ b // c\n\"d\\\"{\" e 'f' '\\'' g<'h> r#\"i\"j\"# k 'é' l";
        let masked = mask_rust(text);
        assert_eq!(masked.len(), text.len());
        assert_eq!(kept(&masked), "a b e g<'h> k l");
        assert_eq!(line_of(&masked, masked.find('e').unwrap()), 2);
    }

    #[test]
    fn unfinished_string_is_blanked_to_the_end() {
        assert_eq!(kept(&mask_rust("a \"b \\")), "a");
        assert_eq!(kept(&mask_rust("a r#\"b\"")), "a");
    }

    #[test]
    fn comments_and_strings_of_python_are_blanked() {
        let text = "a # b\n'''c\n\"d''' e \"f'\" g 'h\\'' i";
        assert_eq!(kept(&mask_python(text)), "a e g i");
    }

    #[test]
    fn items_for_tests_are_taken_out() {
        let text = "fn a() {} #[cfg(test)] mod t { fn b() { x; } } fn c() {} #[cfg(test)] use d;";
        assert_eq!(kept(&without_tests(text)), "fn a() {} fn c() {}");
    }

    #[test]
    fn word_inside_another_is_not_found() {
        assert_eq!(words("asleep sleep_ms sleep(", "sleep").count(), 1);
    }
}
