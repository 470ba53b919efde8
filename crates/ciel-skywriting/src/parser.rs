//! From tokens to the syntax tree: recursive descent for statements, operator precedence for
//! expressions.
//!
//! It knows no names. An error ends the statement it is in and the next one is read afresh, so that
//! several errors come out at once. Its recursion and the height of what it builds are bounded, so
//! that no later stage can run out of stack. Read next: `resolve`.

use crate::diagnostic::{Diagnostic, Label};
use crate::hir::Span;
use crate::lexer::{Token, TokenKind, lex};
use crate::limits::{EXPRESSION_HEIGHT_MAX, NESTING_MAX, PROBLEMS_MAX};
use crate::syntax::{Expr, ExprKind, Name, Stmt};

mod expressions;
mod hints;
mod statements;

/// The statements of a file and what is wrong with it. `nesting` is the depth of blocks that the
/// file is included into, 0 for the first file.
pub fn parse(text: &str, source: u16, nesting: u32) -> (Vec<Stmt>, Vec<Diagnostic>) {
    let (tokens, problems) = lex(text, source);
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        start: 0,
        nesting,
        functions: 0,
        wrong_at: None,
        problems,
    };
    let body = parser.statements(TokenKind::End);
    let mut problems = parser.problems;
    problems.sort_by_key(|problem| problem.span.start);
    problems.truncate(PROBLEMS_MAX);
    (body, problems)
}

/// The statement cannot be read further; what is wrong has been reported.
struct Abort;

type Parse<T> = Result<T, Abort>;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// The next token.
    at: usize,
    /// The first token of the statement being read.
    start: usize,
    /// Depth of the recursion.
    nesting: u32,
    /// Depth of functions around this place.
    functions: u32,
    /// The token of the last report; a second one there would say the same.
    wrong_at: Option<usize>,
    problems: Vec<Diagnostic>,
}

impl Parser<'_> {
    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    /// The token `back` places before the next one.
    fn before(&self, back: usize) -> Option<Token> {
        self.at.checked_sub(back).map(|index| self.tokens[index])
    }

    fn text_of(&self, token: Token) -> &str {
        &self.text[token.span.start as usize..token.span.end as usize]
    }

    fn is_at(&self, kind: TokenKind) -> bool {
        self.kind() == kind
    }

    /// Takes the next token; the end stays where it is.
    fn advance(&mut self) -> Token {
        let token = self.token();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    /// Takes the next token if it is of that kind.
    fn accept(&mut self, kind: TokenKind) -> bool {
        let accepted = self.is_at(kind);
        if accepted {
            self.advance();
        }
        accepted
    }

    fn expect(&mut self, kind: TokenKind) -> Parse<Token> {
        if self.is_at(kind) {
            Ok(self.advance())
        } else {
            Err(self.unexpected(&kind.to_string()))
        }
    }

    /// A closing mark; `opening` is the location of its partner, shown if that is on another line.
    fn expect_closing(&mut self, kind: TokenKind, opening: Span) -> Parse<Token> {
        if self.is_at(kind) {
            return Ok(self.advance());
        }
        let known = self.problems.len();
        let abort = self.unexpected(&kind.to_string());
        let text = self.text;
        if self.problems.len() > known
            && let Some(problem) = self.problems.last_mut()
            && text[opening.start as usize..problem.span.start as usize].contains('\n')
        {
            let text = "opened here".to_owned();
            problem.also = Some(Box::new(Label {
                span: opening,
                text,
            }));
        }
        Err(abort)
    }

    fn name(&mut self, what: &str) -> Parse<Name> {
        if !self.is_at(TokenKind::Name) {
            return Err(self.unexpected(what));
        }
        let token = self.advance();
        Ok(Name {
            text: self.text_of(token).into(),
            span: token.span,
        })
    }

    /// From the beginning of a token or expression to the end of the last token taken.
    fn since(&self, start: Span) -> Span {
        let end = self.before(1).map_or(start.end, |token| token.span.end);
        Span {
            end: end.max(start.end),
            ..start
        }
    }

    /// One level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.nesting >= NESTING_MAX {
            let problem = Diagnostic::new(
                "syntax",
                "the program is nested too deeply",
                self.token().span,
            )
            .with_label(format!("more than {NESTING_MAX} levels"))
            .with_hint("give an inner part a name, or make it a function");
            return Err(self.report(problem));
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    /// An expression, unless it has grown too high.
    fn node(&mut self, kind: ExprKind, span: Span) -> Parse<Expr> {
        let expression = Expr::new(kind, span);
        if expression.height > EXPRESSION_HEIGHT_MAX {
            let problem = Diagnostic::new("syntax", "the expression is too long", span)
                .with_label(format!(
                    "more than {EXPRESSION_HEIGHT_MAX} operators on one another"
                ))
                .with_hint("split it over several statements, or put the parts into a list");
            return Err(self.report(problem));
        }
        Ok(expression)
    }

    /// The next token is unexpected.
    fn unexpected(&mut self, expected: &str) -> Abort {
        let found = self.token();
        if found.kind == TokenKind::Wrong {
            return Abort;
        }
        let mut problem = match self.before(1) {
            Some(last) if self.is_missing_after(last, found, expected) => {
                let after = Span {
                    start: last.span.end,
                    ..last.span
                };
                Diagnostic::new("syntax", format!("expected {expected}"), after)
                    .with_label(format!("{expected} is missing here"))
            }
            _ => Diagnostic::new(
                "syntax",
                format!("expected {expected}, found {}", found.kind),
                found.span,
            )
            .with_label(format!("expected {expected}")),
        };
        problem.hint = self.hint(expected);
        self.report(problem)
    }

    /// Whether to point behind the last token rather than at the next one: when a mark or word is
    /// missing at the end of a line, and at the end of the file.
    fn is_missing_after(&self, last: Token, found: Token, expected: &str) -> bool {
        found.kind == TokenKind::End
            || expected.starts_with('`') && self.is_line_end_between(last, found)
    }

    fn is_line_end_between(&self, last: Token, next: Token) -> bool {
        next.kind == TokenKind::End
            || self.text[last.span.end as usize..next.span.start as usize].contains('\n')
    }

    fn report(&mut self, problem: Diagnostic) -> Abort {
        if self.wrong_at != Some(self.at) && self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
        self.wrong_at = Some(self.at);
        Abort
    }
}
