//! The value of a string literal.
//!
//! It knows one literal at a time. Read next: `lexer`.

use crate::diagnostic::Diagnostic;
use crate::hir::Span;

/// The text of a string token, from the token with its quotes at `span`.
pub fn unescape(raw: &str, span: Span) -> Result<String, Diagnostic> {
    let inner = &raw[1..raw.len() - 1];
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(backslash) = rest.find('\\') {
        text.push_str(&rest[..backslash]);
        let escape = &rest[backslash..];
        let start = span.start + 1 + (inner.len() - escape.len()) as u32;
        let (character, length) =
            one_escape(escape).map_err(|wrong| wrong.diagnostic(start, span))?;
        text.push(character);
        rest = &escape[length..];
    }
    text.push_str(rest);
    Ok(text)
}

/// A bad escape: its length in bytes and what is wrong.
struct BadEscape {
    length: usize,
    message: &'static str,
    hint: &'static str,
}

impl BadEscape {
    fn diagnostic(&self, start: u32, string: Span) -> Diagnostic {
        let span = Span {
            start,
            end: start + self.length as u32,
            ..string
        };
        Diagnostic::new("syntax", self.message, span).with_hint(self.hint)
    }
}

/// The character of the escape that `text` begins with, and the length of the escape in bytes.
fn one_escape(text: &str) -> Result<(char, usize), BadEscape> {
    let letter = text[1..].chars().next().unwrap_or('\\');
    let character = match letter {
        '"' | '\\' | '/' => letter,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode_escape(text),
        _ => {
            return Err(BadEscape {
                length: 1 + letter.len_utf8(),
                message: "unknown escape",
                hint: "the escapes are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u with four hex \
                       digits; a backslash itself is written \\\\",
            });
        }
    };
    Ok((character, 2))
}

fn unicode_escape(text: &str) -> Result<(char, usize), BadEscape> {
    let first = hex_unit(text)?;
    if let Some(character) = char::from_u32(first) {
        return Ok((character, 6));
    }
    let second = if text[6..].starts_with("\\u") {
        hex_unit(&text[6..])?
    } else {
        0
    };
    if !(0xd800..0xdc00).contains(&first) || !(0xdc00..0xe000).contains(&second) {
        return Err(BadEscape {
            length: 6,
            message: "half a surrogate pair is not a character",
            hint: "characters above \\uffff are written as two escapes, such as \\ud83d\\ude00",
        });
    }
    let joined = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    Ok((
        char::from_u32(joined).expect("a surrogate pair is a character"),
        12,
    ))
}

/// The number of `\uXXXX` at the beginning of the text.
fn hex_unit(text: &str) -> Result<u32, BadEscape> {
    let digits = text.as_bytes().iter().skip(2).take(4);
    let count = digits.take_while(|byte| byte.is_ascii_hexdigit()).count();
    if count < 4 {
        return Err(BadEscape {
            length: 2 + count,
            message: "`\\u` needs four hex digits",
            hint: "for instance \\u00e9",
        });
    }
    Ok(u32::from_str_radix(&text[2..6], 16).expect("four hex digits"))
}
