//! Statements and blocks, and where parsing continues after an error.
//!
//! Read next: `expressions`.

use super::{Abort, Parse, Parser};
use crate::diagnostic::Diagnostic;
use crate::hir::{AssignOp, Span};
use crate::lexer::TokenKind;
use crate::limits::PROBLEMS_MAX;
use crate::syntax::{Branch, Expr, ExprKind, Function, Name, Stmt, StmtKind, Target};

impl Parser<'_> {
    /// Statements up to, not including, the token `end` or the end of the file.
    pub(super) fn statements(&mut self, end: TokenKind) -> Vec<Stmt> {
        let mut body = Vec::new();
        while !self.is_at(end) && !self.is_at(TokenKind::End) && self.problems.len() < PROBLEMS_MAX
        {
            if self.accept(TokenKind::Semicolon) {
                continue;
            }
            let start = self.at;
            match self.statement() {
                Ok(statement) => body.push(statement),
                Err(Abort) => self.skip_statement(start),
            }
        }
        body
    }

    /// Goes to where the next statement may begin: after a `;` or a whole `{…}`, before the `}` of
    /// the block around, or before a line that begins with a keyword of statements.
    fn skip_statement(&mut self, start: usize) {
        let mut depth = 0;
        let in_for_head = self.is_in_for_head(start);
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::LeftBrace => depth += 1,
                TokenKind::RightBrace if depth == 0 => {
                    if self.at == start {
                        self.advance();
                    }
                    return;
                }
                TokenKind::RightBrace => depth -= 1,
                _ if depth == 0 && self.at > start && self.begins_statement() => return,
                _ => {}
            }
            let taken = self.advance().kind;
            let ends = match taken {
                TokenKind::RightBrace => true,
                TokenKind::Semicolon => !in_for_head || self.begins_line(),
                _ => false,
            };
            if depth == 0 && ends {
                return;
            }
        }
    }

    fn begins_statement(&self) -> bool {
        let keyword = matches!(
            self.kind(),
            TokenKind::Function
                | TokenKind::If
                | TokenKind::For
                | TokenKind::While
                | TokenKind::Do
                | TokenKind::Return
                | TokenKind::Break
                | TokenKind::Continue
                | TokenKind::Include
                | TokenKind::Try
                | TokenKind::Throw
        );
        keyword && self.begins_line()
    }

    /// Whether the next token is the first of a line.
    fn begins_line(&self) -> bool {
        self.before(1)
            .is_some_and(|last| self.is_line_end_between(last, self.token()))
    }

    /// Whether the statement at `start` is a `for` whose body has not been reached: a semicolon
    /// there is a common error.
    fn is_in_for_head(&self, start: usize) -> bool {
        let taken = &self.tokens[start..self.at];
        taken
            .first()
            .is_some_and(|first| first.kind == TokenKind::For)
            && taken.iter().all(|token| token.kind != TokenKind::LeftBrace)
    }

    fn statement(&mut self) -> Parse<Stmt> {
        self.start = self.at;
        let start = self.token().span;
        let kind = match self.kind() {
            TokenKind::If => self.if_statement()?,
            TokenKind::While => self.while_statement()?,
            TokenKind::Do => self.do_statement()?,
            TokenKind::For => self.for_statement()?,
            TokenKind::Try => self.try_statement()?,
            TokenKind::Function if self.is_function_statement() => self.function_statement()?,
            TokenKind::RightBrace => return Err(self.stray_brace()),
            _ => self.simple_statement()?,
        };
        Ok(Stmt {
            kind,
            span: self.since(start),
        })
    }

    /// A `}` without a partner; after another error it is only a consequence.
    fn stray_brace(&mut self) -> Abort {
        if !self.problems.is_empty() {
            return Abort;
        }
        let problem = Diagnostic::new("syntax", "this `}` closes nothing", self.token().span)
            .with_hint("remove it, or look for a missing `{` before it");
        self.report(problem)
    }

    /// A statement that ends with a semicolon.
    fn simple_statement(&mut self) -> Parse<StmtKind> {
        let kind = match self.kind() {
            TokenKind::Return => self.return_statement()?,
            TokenKind::Break => {
                self.advance();
                StmtKind::Break
            }
            TokenKind::Continue => {
                self.advance();
                StmtKind::Continue
            }
            TokenKind::Throw => {
                self.advance();
                StmtKind::Throw(self.expression()?)
            }
            TokenKind::Include => self.include_statement()?,
            _ => self.expression_statement()?,
        };
        self.semicolon()?;
        Ok(kind)
    }

    /// One that is missing at the end of a line is reported, and the next line is parsed as if it
    /// were present.
    fn semicolon(&mut self) -> Parse<()> {
        let next = self.token();
        let ends_line = self.begins_line();
        match self.expect(TokenKind::Semicolon) {
            Err(Abort) if !ends_line || next.kind == TokenKind::Wrong => Err(Abort),
            Ok(_) | Err(Abort) => Ok(()),
        }
    }

    fn return_statement(&mut self) -> Parse<StmtKind> {
        self.advance();
        let value = if self.is_at(TokenKind::Semicolon) {
            None
        } else {
            Some(self.expression()?)
        };
        Ok(StmtKind::Return(value))
    }

    fn include_statement(&mut self) -> Parse<StmtKind> {
        let keyword = self.advance().span;
        if self.functions > 0 {
            self.problems.push(
                Diagnostic::new(
                    "include",
                    "`include` is not allowed inside a function",
                    keyword,
                )
                .with_hint("move it to the top of the file"),
            );
        }
        Ok(StmtKind::Include(self.expression()?))
    }

    fn expression_statement(&mut self) -> Parse<StmtKind> {
        let expression = self.expression()?;
        let op = match self.kind() {
            TokenKind::Assign => AssignOp::Set,
            TokenKind::AddAssign => AssignOp::Add,
            TokenKind::SubtractAssign => AssignOp::Subtract,
            _ => return Ok(StmtKind::Expr(expression)),
        };
        let target = match target_of(expression) {
            Ok(target) => target,
            Err(wrong) => return Err(self.cannot_assign(wrong)),
        };
        self.advance();
        let value = self.expression()?;
        Ok(StmtKind::Assign { target, op, value })
    }

    fn cannot_assign(&mut self, wrong: Expr) -> Abort {
        let (what, hint) = match wrong.kind {
            ExprKind::Call { .. } => ("the result of a call", "assign it to a variable first"),
            ExprKind::Dereference(_) => (
                "the value of a reference",
                "objects never change; assign to a variable",
            ),
            ExprKind::Closure(_) => ("a function", "write `name = function (x) { … };`"),
            ExprKind::Slice { .. } => ("a slice", "assign to its elements, one by one"),
            ExprKind::Name(_) | ExprKind::Index { .. } => {
                ("this", "begin with a variable, without parentheses")
            }
            ExprKind::Null | ExprKind::Bool(_) => ("a keyword", "choose another name"),
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::List(_)
            | ExprKind::Dict(_) => ("a literal", "to compare, write `==`"),
            ExprKind::Negate(_)
            | ExprKind::Not(_)
            | ExprKind::Binary { .. }
            | ExprKind::And(..)
            | ExprKind::Or(..) => ("a computed value", "to compare, write `==`"),
        };
        let problem = Diagnostic::new("assignment", format!("cannot assign to {what}"), wrong.span)
            .with_label("expected a variable, `x[key]` or `x.name`")
            .with_hint(hint);
        self.report(problem)
    }

    /// `{ … }`
    pub(super) fn block(&mut self) -> Parse<Vec<Stmt>> {
        let opening = self.expect(TokenKind::LeftBrace)?.span;
        let body = self.nested(|parser| Ok(parser.statements(TokenKind::RightBrace)))?;
        if self.is_at(TokenKind::End) {
            let problem = Diagnostic::new("syntax", "the block is never closed", opening)
                .with_label("this `{` has no `}`")
                .with_hint("look for a missing `}` below");
            return Err(self.report(problem));
        }
        self.expect(TokenKind::RightBrace)?;
        Ok(body)
    }

    fn if_statement(&mut self) -> Parse<StmtKind> {
        let mut branches = vec![self.branch()?];
        let mut otherwise = Vec::new();
        while self.accept(TokenKind::Else) {
            if !self.is_at(TokenKind::If) {
                otherwise = self.block()?;
                break;
            }
            branches.push(self.branch()?);
        }
        Ok(StmtKind::If {
            branches,
            otherwise,
        })
    }

    /// `if (condition) { … }`
    fn branch(&mut self) -> Parse<Branch> {
        self.advance();
        Ok(Branch {
            condition: self.condition()?,
            body: self.block()?,
        })
    }

    /// An expression in parentheses.
    fn condition(&mut self) -> Parse<Expr> {
        let opening = self.expect(TokenKind::LeftParenthesis)?.span;
        let condition = self.expression()?;
        self.expect_closing(TokenKind::RightParenthesis, opening)?;
        Ok(condition)
    }

    fn while_statement(&mut self) -> Parse<StmtKind> {
        self.advance();
        let condition = self.condition()?;
        let body = self.block()?;
        Ok(StmtKind::While { condition, body })
    }

    fn do_statement(&mut self) -> Parse<StmtKind> {
        self.advance();
        let body = self.block()?;
        self.expect(TokenKind::While)?;
        let condition = self.condition()?;
        self.semicolon()?;
        Ok(StmtKind::DoWhile { body, condition })
    }

    fn for_statement(&mut self) -> Parse<StmtKind> {
        self.advance();
        let opening = self.expect(TokenKind::LeftParenthesis)?.span;
        let variable = self.name("the name of a variable")?;
        self.expect(TokenKind::In)?;
        let iterable = self.expression()?;
        self.expect_closing(TokenKind::RightParenthesis, opening)?;
        let body = self.block()?;
        Ok(StmtKind::For {
            variable,
            iterable,
            body,
        })
    }

    fn try_statement(&mut self) -> Parse<StmtKind> {
        self.advance();
        let body = self.block()?;
        self.expect(TokenKind::Catch)?;
        let opening = self.expect(TokenKind::LeftParenthesis)?.span;
        let variable = self.name("the name of a variable")?;
        self.expect_closing(TokenKind::RightParenthesis, opening)?;
        let handler = self.block()?;
        Ok(StmtKind::Try {
            body,
            variable,
            handler,
        })
    }

    /// `function` with a name; without one it is a value.
    fn is_function_statement(&self) -> bool {
        self.tokens
            .get(self.at + 1)
            .is_some_and(|next| next.kind != TokenKind::LeftParenthesis)
    }

    fn function_statement(&mut self) -> Parse<StmtKind> {
        let keyword = self.advance().span;
        let name = self.name("the name of the function")?;
        Ok(StmtKind::Function(self.function(keyword, Some(name))?))
    }

    /// Parameters and body.
    pub(super) fn function(&mut self, keyword: Span, name: Option<Name>) -> Parse<Function> {
        let opening = self.expect(TokenKind::LeftParenthesis)?.span;
        let parameters = self.parameters(TokenKind::RightParenthesis)?;
        self.expect_closing(TokenKind::RightParenthesis, opening)?;
        let head = self.since(keyword);
        self.functions += 1;
        let body = self.block();
        self.functions -= 1;
        Ok(Function {
            name,
            parameters,
            body: body?,
            head,
        })
    }

    /// Names up to, not including, `end`.
    pub(super) fn parameters(&mut self, end: TokenKind) -> Parse<Vec<Name>> {
        let mut parameters = Vec::new();
        while !self.is_at(end) {
            parameters.push(self.name("the name of a parameter")?);
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        Ok(parameters)
    }
}

/// The expression as something to assign to, or itself if it is none.
fn target_of(expression: Expr) -> Result<Target, Expr> {
    let span = expression.span;
    if !is_assignable(&expression) {
        return Err(expression);
    }
    let mut path = Vec::new();
    let mut place = expression;
    loop {
        match place.kind {
            ExprKind::Index { base, key } => {
                path.push(*key);
                place = *base;
            }
            ExprKind::Name(text) => {
                path.reverse();
                return Ok(Target {
                    name: Name {
                        text,
                        span: place.span,
                    },
                    path,
                    span,
                });
            }
            _ => unreachable!("an assignable expression is a name with keys"),
        }
    }
}

/// A name with keys after it, without parentheses.
fn is_assignable(expression: &Expr) -> bool {
    let mut place = expression;
    while let ExprKind::Index { base, .. } = &place.kind {
        if place.span.start != base.span.start {
            return false;
        }
        place = base;
    }
    let length = (place.span.end - place.span.start) as usize;
    matches!(&place.kind, ExprKind::Name(text) if text.len() == length)
}
