//! From text to tokens.
//!
//! It knows words and marks, not how they go together. A text that is no token at all becomes a
//! [`TokenKind::Wrong`] and a diagnostic of its own, so the parser need not speak of it again.
//! Read next: `parser`.

use std::fmt;

use logos::Logos;

use crate::diagnostic::Diagnostic;
use crate::hir::Span;
use crate::limits::PROBLEMS_MAX;

mod escape;
pub use escape::unescape;

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// The location of its text.
    pub span: Span,
}

macro_rules! token_kinds {
    ($($variant:ident $text:literal)*) => {
        /// The kinds of tokens.
        #[derive(Logos, Debug, Clone, Copy, PartialEq, Eq)]
        #[logos(skip r"[ \t\r\n\x0B\x0C\u{FEFF}]+")]
        #[logos(skip(r"//[^\n]*", allow_greedy = true))]
        #[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
        pub enum TokenKind {
            $(#[token($text)] $variant,)*
            #[regex("[A-Za-z_][A-Za-z0-9_]*")]
            Name,
            #[regex("[0-9]+")]
            Int,
            #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")]
            #[regex(r"\.[0-9]+([eE][+-]?[0-9]+)?")]
            #[regex(r"[0-9]+[eE][+-]?[0-9]+")]
            Float,
            #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
            Str,
            /// Up to the end of the line.
            #[regex(r#""([^"\\\n]|\\[^\n])*\\?"#)]
            UnclosedString,
            #[token("/*")]
            UnclosedComment,
            #[regex(r"'[^'\n]*'")]
            SingleQuoted,
            /// Already reported.
            Wrong,
            /// After the last token, of no length.
            End,
        }

        impl fmt::Display for TokenKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(TokenKind::$variant => concat!("`", $text, "`"),)*
                    TokenKind::Name => "a name",
                    TokenKind::Int | TokenKind::Float => "a number",
                    TokenKind::Str
                    | TokenKind::UnclosedString
                    | TokenKind::SingleQuoted => "a string",
                    TokenKind::UnclosedComment => "a comment",
                    TokenKind::Wrong => "an invalid character",
                    TokenKind::End => "the end of the file",
                })
            }
        }
    };
}

token_kinds! {
    Function "function" If "if" Else "else" For "for" In "in" While "while" Do "do"
    Return "return" Break "break" Continue "continue" True "true" False "false" Null "null"
    Lambda "lambda" Include "include" Try "try" Catch "catch" Throw "throw"
    LeftParenthesis "(" RightParenthesis ")" LeftBracket "[" RightBracket "]"
    LeftBrace "{" RightBrace "}" Comma "," Semicolon ";" Colon ":" Dot "."
    Assign "=" AddAssign "+=" SubtractAssign "-="
    Equal "==" NotEqual "!=" Less "<" LessOrEqual "<=" Greater ">" GreaterOrEqual ">="
    Plus "+" Minus "-" Star "*" Slash "/" Percent "%" And "&&" Or "||" Not "!"
}

/// The tokens of a text, the last one being [`TokenKind::End`], and what is wrong with them: at
/// most [`PROBLEMS_MAX`], and then the tokens are not to be used. The text is at most 4 GiB long. A
/// first line that begins with `#!` is skipped.
pub fn lex(text: &str, source: u16) -> (Vec<Token>, Vec<Diagnostic>) {
    let skipped = shebang_length(text);
    let mut tokens: Vec<Token> = Vec::new();
    let mut lexer = TokenKind::lexer(&text[skipped..]);
    while let Some(found) = lexer.next() {
        let start = (lexer.span().start + skipped) as u32;
        let mut end = (lexer.span().end + skipped) as u32;
        let kind = found.unwrap_or(TokenKind::Wrong);
        if kind == TokenKind::UnclosedComment {
            lexer.bump(lexer.remainder().len());
            end = start + 2;
        }
        push(
            &mut tokens,
            Token {
                kind,
                span: Span { source, start, end },
            },
        );
    }
    let end = text.len() as u32;
    let complaints = tokens.iter_mut().filter_map(|token| complain(token, text));
    let problems = complaints.take(PROBLEMS_MAX).collect();
    tokens.push(Token {
        kind: TokenKind::End,
        span: Span {
            source,
            start: end,
            end,
        },
    });
    (tokens, problems)
}

fn shebang_length(text: &str) -> usize {
    let mark = text.len() - text.trim_start_matches('\u{feff}').len();
    if text[mark..].starts_with("#!") {
        text.find('\n').unwrap_or(text.len())
    } else {
        0
    }
}

/// Appends a token. Neighbours without a gap that are wrong together become one: a run of stray
/// characters, and a number that runs into a name.
fn push(tokens: &mut Vec<Token>, token: Token) {
    if let Some(last) = tokens.last_mut()
        && last.span.end == token.span.start
        && runs_together(last.kind, token)
    {
        last.kind = TokenKind::Wrong;
        last.span.end = token.span.end;
        return;
    }
    tokens.push(token);
}

fn runs_together(last: TokenKind, token: Token) -> bool {
    match last {
        TokenKind::Int | TokenKind::Float => is_word(token.kind),
        TokenKind::Wrong => token.kind == TokenKind::Wrong || is_word(token.kind),
        _ => false,
    }
}

fn is_word(kind: TokenKind) -> bool {
    let word = (TokenKind::Function as u8)..=(TokenKind::Throw as u8);
    kind == TokenKind::Name || word.contains(&(kind as u8))
}

/// What is wrong with a token by itself; it is then [`TokenKind::Wrong`].
fn complain(token: &mut Token, text: &str) -> Option<Diagnostic> {
    let raw = &text[token.span.start as usize..token.span.end as usize];
    let diagnostic = match token.kind {
        TokenKind::UnclosedString => unclosed_string(token.span),
        TokenKind::UnclosedComment => {
            Diagnostic::new("syntax", "the comment is never closed", token.span)
                .with_label("it begins here")
                .with_hint("end it with `*/`, or use `//` for one line")
        }
        TokenKind::SingleQuoted => {
            Diagnostic::new("syntax", "a string is written in double quotes", token.span)
                .with_hint("write \"…\" instead of '…'")
        }
        TokenKind::Wrong if raw.starts_with(|first: char| first.is_ascii_digit()) => {
            wrong_number(raw, token.span)
        }
        TokenKind::Wrong => stray(raw, token.span),
        _ => return None,
    };
    token.kind = TokenKind::Wrong;
    Some(diagnostic)
}

fn unclosed_string(span: Span) -> Diagnostic {
    let quote = Span {
        end: span.start + 1,
        ..span
    };
    Diagnostic::new("syntax", "the string is not closed on its line", quote)
        .with_label("it begins here")
        .with_hint("close it with `\"`; a line break inside a string is written `\\n`")
}

fn wrong_number(raw: &str, span: Span) -> Diagnostic {
    let prefix = raw.get(..2).unwrap_or("").to_ascii_lowercase();
    let diagnostic = Diagnostic::new("syntax", "a name follows a number without a space", span);
    if ["0x", "0b", "0o"].contains(&prefix.as_str()) {
        return diagnostic.with_hint("numbers are written with decimal digits");
    }
    diagnostic.with_hint("separate them by a space or an operator; names begin with a letter")
}

fn stray(raw: &str, span: Span) -> Diagnostic {
    let first = raw.chars().next().unwrap_or(' ');
    let shown = if first.is_control() || first.is_whitespace() {
        format!("the character U+{:04X}", first as u32)
    } else {
        format!("`{raw}`")
    };
    let diagnostic = Diagnostic::new(
        "syntax",
        format!("{shown} is not part of the language"),
        span,
    );
    match stray_hint(first) {
        Some(hint) => diagnostic.with_hint(hint),
        None => diagnostic,
    }
}

fn stray_hint(first: char) -> Option<&'static str> {
    Some(match first {
        '#' => "comments begin with `//`",
        '&' => "`&&` is the logical and",
        '|' => "`||` is the logical or",
        '?' => "Skywriting has no `?:`; use `if` and `else`",
        '\'' | '`' | '\u{2018}'..='\u{201f}' | '«' | '»' => {
            "strings are written in plain double quotes"
        }
        '^' => "Skywriting has no power operator; multiply",
        '$' | '@' => "names are made of letters, digits and `_`",
        _ if first.is_whitespace() => "this character looks like a space; replace it with a space",
        _ if first.is_alphanumeric() => "names are made of the letters a to z, digits and `_`",
        _ => return None,
    })
}
