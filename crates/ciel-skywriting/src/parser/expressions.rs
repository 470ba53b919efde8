//! Expressions, by the precedence of their operators.
//!
//! Read next: `statements`.

use num_bigint::BigInt;

use super::{Abort, Parse, Parser};
use crate::diagnostic::Diagnostic;
use crate::hir::{BinaryOp, Span};
use crate::lexer::{Token, TokenKind, unescape};
use crate::limits::INTEGER_DIGITS_MAX;
use crate::syntax::{Expr, ExprKind, Function, Stmt, StmtKind};

/// How strongly `||` and `&&` bind.
const OR_STRENGTH: u8 = 1;
const AND_STRENGTH: u8 = 2;

/// How strongly an operator between two operands binds.
fn strength(kind: TokenKind) -> Option<u8> {
    Some(match kind {
        TokenKind::Or => OR_STRENGTH,
        TokenKind::And => AND_STRENGTH,
        _ => binary(kind)?.0,
    })
}

/// An operator that evaluates both operands, with its strength.
fn binary(kind: TokenKind) -> Option<(u8, BinaryOp)> {
    Some(match kind {
        TokenKind::Equal => (3, BinaryOp::Equal),
        TokenKind::NotEqual => (3, BinaryOp::NotEqual),
        TokenKind::Less => (4, BinaryOp::Less),
        TokenKind::LessOrEqual => (4, BinaryOp::LessOrEqual),
        TokenKind::Greater => (4, BinaryOp::Greater),
        TokenKind::GreaterOrEqual => (4, BinaryOp::GreaterOrEqual),
        TokenKind::Plus => (5, BinaryOp::Add),
        TokenKind::Minus => (5, BinaryOp::Subtract),
        TokenKind::Star => (6, BinaryOp::Multiply),
        TokenKind::Slash => (6, BinaryOp::Divide),
        TokenKind::Percent => (6, BinaryOp::Remainder),
        _ => return None,
    })
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        self.nested(|parser| parser.operators(1))
    }

    /// Operands joined by operators that bind at least as strongly as `least`; those of equal
    /// strength from the left.
    fn operators(&mut self, least: u8) -> Parse<Expr> {
        let mut left = self.unary()?;
        while let Some(strength) = strength(self.kind())
            && strength >= least
        {
            let start = left.span;
            let kind = match strength {
                OR_STRENGTH => ExprKind::Or(self.conditions(left, TokenKind::Or, strength)?),
                AND_STRENGTH => ExprKind::And(self.conditions(left, TokenKind::And, strength)?),
                _ => self.binary_operators(left, strength)?,
            };
            left = self.node(kind, self.since(start))?;
        }
        Ok(left)
    }

    /// `first` and the operands that the same `operator` joins to it.
    fn conditions(&mut self, first: Expr, operator: TokenKind, strength: u8) -> Parse<Vec<Expr>> {
        let mut operands = vec![first];
        while self.accept(operator) {
            operands.push(self.nested(|parser| parser.operators(strength + 1))?);
        }
        Ok(operands)
    }

    /// `first` and what operators of that strength join to it.
    fn binary_operators(&mut self, first: Expr, strength: u8) -> Parse<ExprKind> {
        let mut rest = Vec::new();
        while let Some((of_this, operator)) = binary(self.kind())
            && of_this == strength
        {
            self.advance();
            let operand = self.nested(|parser| parser.operators(strength + 1))?;
            rest.push((operator, operand));
        }
        Ok(ExprKind::Binary {
            first: Box::new(first),
            rest,
        })
    }

    fn unary(&mut self) -> Parse<Expr> {
        let make: fn(Box<Expr>) -> ExprKind = match self.kind() {
            TokenKind::Minus => ExprKind::Negate,
            TokenKind::Not => ExprKind::Not,
            TokenKind::Star => ExprKind::Dereference,
            _ => return self.postfix(),
        };
        let start = self.advance().span;
        let operand = self.nested(Self::unary)?;
        let span = Span {
            end: operand.span.end,
            ..start
        };
        self.node(make(Box::new(operand)), span)
    }

    fn postfix(&mut self) -> Parse<Expr> {
        let mut expression = self.primary()?;
        loop {
            let start = expression.span;
            let kind = match self.kind() {
                TokenKind::LeftBracket => self.index(expression)?,
                TokenKind::LeftParenthesis => self.call(expression)?,
                TokenKind::Dot => self.member(expression)?,
                _ => return Ok(expression),
            };
            expression = self.node(kind, self.since(start))?;
        }
    }

    /// `base[key]` or `base[start:stop]`
    fn index(&mut self, base: Expr) -> Parse<ExprKind> {
        let opening = self.advance().span;
        let base = Box::new(base);
        let start = self.bound(TokenKind::Colon)?;
        let kind = match start {
            Some(key) if !self.is_at(TokenKind::Colon) => ExprKind::Index { base, key },
            start => {
                self.advance();
                let stop = self.bound(TokenKind::RightBracket)?;
                ExprKind::Slice { base, start, stop }
            }
        };
        self.expect_closing(TokenKind::RightBracket, opening)?;
        Ok(kind)
    }

    /// A bound of a slice: none before the token `end`.
    fn bound(&mut self, end: TokenKind) -> Parse<Option<Box<Expr>>> {
        match self.is_at(end) {
            true => Ok(None),
            false => Ok(Some(Box::new(self.expression()?))),
        }
    }

    fn call(&mut self, callee: Expr) -> Parse<ExprKind> {
        let arguments = self.items(TokenKind::RightParenthesis)?;
        Ok(ExprKind::Call {
            callee: Box::new(callee),
            arguments,
        })
    }

    fn member(&mut self, base: Expr) -> Parse<ExprKind> {
        self.advance();
        let name = self.name("a name after `.`")?;
        let key = self.node(ExprKind::Str(name.text), name.span)?;
        Ok(ExprKind::Index {
            base: Box::new(base),
            key: Box::new(key),
        })
    }

    /// Expressions between the next token and its partner `end`, both taken.
    fn items(&mut self, end: TokenKind) -> Parse<Vec<Expr>> {
        let opening = self.advance().span;
        let mut items = Vec::new();
        while !self.is_at(end) {
            items.push(self.expression()?);
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        self.expect_closing(end, opening)?;
        Ok(items)
    }

    fn primary(&mut self) -> Parse<Expr> {
        let start = self.token().span;
        let kind = match self.kind() {
            TokenKind::LeftParenthesis => return self.parenthesised(),
            TokenKind::LeftBracket => ExprKind::List(self.items(TokenKind::RightBracket)?),
            TokenKind::LeftBrace => self.dictionary()?,
            TokenKind::Function => {
                self.advance();
                ExprKind::Closure(Box::new(self.function(start, None)?))
            }
            TokenKind::Lambda => self.lambda()?,
            _ => self.atom()?,
        };
        let span = self.since(start);
        self.node(kind, span)
    }

    fn parenthesised(&mut self) -> Parse<Expr> {
        let opening = self.advance().span;
        let mut expression = self.expression()?;
        self.expect_closing(TokenKind::RightParenthesis, opening)?;
        expression.span = self.since(opening);
        Ok(expression)
    }

    fn dictionary(&mut self) -> Parse<ExprKind> {
        let opening = self.advance().span;
        let mut entries = Vec::new();
        while !self.is_at(TokenKind::RightBrace) {
            let key = self.expression()?;
            self.expect(TokenKind::Colon)?;
            entries.push((key, self.expression()?));
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        self.expect_closing(TokenKind::RightBrace, opening)?;
        Ok(ExprKind::Dict(entries))
    }

    fn lambda(&mut self) -> Parse<ExprKind> {
        let keyword = self.advance().span;
        let parameters = self.parameters(TokenKind::Colon)?;
        let head = self.since(keyword);
        self.expect(TokenKind::Colon)?;
        let value = self.expression()?;
        let span = value.span;
        let body = vec![Stmt {
            kind: StmtKind::Return(Some(value)),
            span,
        }];
        Ok(ExprKind::Closure(Box::new(Function {
            name: None,
            parameters,
            body,
            head,
        })))
    }

    /// A token that is an expression by itself.
    fn atom(&mut self) -> Parse<ExprKind> {
        let token = self.token();
        let kind = match token.kind {
            TokenKind::Null => ExprKind::Null,
            TokenKind::True => ExprKind::Bool(true),
            TokenKind::False => ExprKind::Bool(false),
            TokenKind::Name => ExprKind::Name(self.text_of(token).into()),
            TokenKind::Int => self.integer(token)?,
            TokenKind::Float => self.float(token)?,
            TokenKind::Str => self.string(token)?,
            _ => return Err(self.unexpected("an expression")),
        };
        self.advance();
        Ok(kind)
    }

    fn integer(&mut self, token: Token) -> Parse<ExprKind> {
        let digits = self.text_of(token);
        if digits.len() > INTEGER_DIGITS_MAX {
            return Err(self.number_problem(token, "the integer has too many digits"));
        }
        let value: BigInt = digits.parse().expect("digits spell an integer");
        Ok(ExprKind::Int(value))
    }

    fn float(&mut self, token: Token) -> Parse<ExprKind> {
        let value: f64 = self
            .text_of(token)
            .parse()
            .expect("the token spells a float");
        if value.is_infinite() {
            return Err(self.number_problem(token, "the number is too large for a float"));
        }
        Ok(ExprKind::Float(value))
    }

    fn number_problem(&mut self, token: Token, message: &str) -> Abort {
        let limit = format!(
            "floats go up to about 1.8e308; integers have at most {INTEGER_DIGITS_MAX} digits"
        );
        self.report(Diagnostic::new("syntax", message, token.span).with_hint(limit))
    }

    /// A bad escape is reported, and the statement read on.
    fn string(&mut self, token: Token) -> Parse<ExprKind> {
        let text = unescape(self.text_of(token), token.span).unwrap_or_else(|problem| {
            self.problems.push(problem);
            String::new()
        });
        Ok(ExprKind::Str(text.into()))
    }
}
