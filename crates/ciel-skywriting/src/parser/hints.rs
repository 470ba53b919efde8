//! Hints for syntax of other languages.
//!
//! It only looks at tokens around the error. Read next: `parser`.

use super::Parser;
use crate::lexer::{Token, TokenKind};

impl Parser<'_> {
    /// What to do about the next token, which is where `expected` should be.
    pub(super) fn hint(&self, expected: &str) -> Option<String> {
        let hint = self
            .operator_hint()
            .or_else(|| self.first_word_hint())
            .or_else(|| self.word_hint())
            .or_else(|| place_hint(expected, self.kind()));
        hint.map(str::to_owned)
    }

    fn operator_hint(&self) -> Option<&'static str> {
        let found = self.token();
        let last = self.before(1)?;
        let touching = last.span.end == found.span.start;
        Some(match (last.kind, found.kind) {
            (TokenKind::Equal | TokenKind::NotEqual, TokenKind::Assign) if touching => {
                "Skywriting has no `===` or `!==`; `==` and `!=` compare values"
            }
            (TokenKind::Plus, TokenKind::Plus) if touching => {
                "Skywriting has no `++`; write `x += 1`"
            }
            (TokenKind::Minus, TokenKind::Semicolon | TokenKind::RightParenthesis)
                if self
                    .before(2)
                    .is_some_and(|token| token.kind == TokenKind::Minus) =>
            {
                "Skywriting has no `--`; write `x -= 1`"
            }
            (TokenKind::Star | TokenKind::Slash | TokenKind::Percent, TokenKind::Assign) => {
                "the compound assignments are `+=` and `-=`; write `x = x * y`"
            }
            (TokenKind::Name, TokenKind::Assign) if self.is_after_for() => {
                "`for` iterates over a list: `for (i in range(10)) { … }`"
            }
            (_, TokenKind::Assign) => "to compare, write `==`; an assignment is a statement",
            _ => return None,
        })
    }

    fn is_after_for(&self) -> bool {
        self.before(3)
            .is_some_and(|token| token.kind == TokenKind::For)
    }

    /// By the first word of the statement.
    fn first_word_hint(&self) -> Option<&'static str> {
        let first = self.tokens[self.start];
        if first.kind != TokenKind::Name || self.at == self.start {
            return None;
        }
        let begins_with_two_words = self.at == self.start + 1 && self.is_at(TokenKind::Name);
        Some(match self.text_of(first) {
            "var" | "let" | "const" if begins_with_two_words => {
                "variables are not declared: remove this word"
            }
            "def" | "fn" | "func" if begins_with_two_words => "write `function name(x) { … }`",
            "import" | "from" | "require" | "use" => "write `include \"name\";`",
            "elif" | "elsif" | "elseif" => "write `else if`",
            "print" | "echo" => "`print(x);` writes a line",
            _ => return None,
        })
    }

    fn word_hint(&self) -> Option<&'static str> {
        let hint_of = |token: Token| {
            Some(match self.text_of(token) {
                "and" => "write `&&`",
                "or" => "write `||`",
                "not" => "write `!`",
                "of" => "write `in`",
                _ => return None,
            })
        };
        hint_of(self.token()).or_else(|| self.before(1).and_then(hint_of))
    }
}

fn place_hint(expected: &str, found: TokenKind) -> Option<&'static str> {
    Some(match (expected, found) {
        ("`{`", _) => "the body is enclosed in braces: `{ … }`",
        ("`:`", TokenKind::Comma | TokenKind::RightBrace) => {
            "a dictionary is written {\"key\": value, …}"
        }
        ("an expression", TokenKind::Else) => "`else` follows the `}` of an `if`",
        _ => return None,
    })
}
