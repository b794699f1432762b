//! Parses tokens to an expression, by recursive descent; the depth is bounded, so the stack is.

use super::expression::{Comparison, Expression};
use super::lexer::{Lexer, SyntaxError, Token, unexpected};
use super::{DEPTH_MAX, ELEMENTS_MAX};

/// Parses a complete search.
pub(super) fn parse(text: &str) -> Result<Expression, SyntaxError> {
    // No text in the database has one, and none could be sent there.
    if let Some(at) = text.find('\0') {
        return Err(unexpected('\0', at));
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        token: Token::End,
        at: 0,
        depth: 0,
    };
    parser.advance()?;
    let expression = parser.either()?;
    if parser.token == Token::End {
        Ok(expression)
    } else {
        Err(parser.syntax_error())
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token, and its start.
    token: Token<'a>,
    at: usize,
    depth: usize,
}

type Parsed = Result<Expression, SyntaxError>;

impl<'a> Parser<'a> {
    fn advance(&mut self) -> Result<Token<'a>, SyntaxError> {
        let (token, at) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    /// Takes a keyword or sign, if it is next.
    fn accept(&mut self, symbol: &'static str) -> Result<bool, SyntaxError> {
        let is_next = self.token == Token::Symbol(symbol);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), SyntaxError> {
        if self.accept(symbol)? {
            Ok(())
        } else {
            Err(self.syntax_error())
        }
    }

    fn syntax_error(&self) -> SyntaxError {
        self.error("syntax error")
    }

    fn error(&self, what: impl Into<String>) -> SyntaxError {
        SyntaxError {
            what: what.into(),
            at: self.at,
        }
    }

    /// The content of parentheses, `not` and the like: one level deeper.
    fn deeper(&mut self, inner: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        if self.depth == DEPTH_MAX {
            return Err(self.error(format!("nesting deeper than {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// `a or b or …`
    fn either(&mut self) -> Parsed {
        let mut parts = vec![self.conjunction()?];
        while self.accept("or")? {
            parts.push(self.conjunction()?);
        }
        Ok(one_or(parts, Expression::Or))
    }

    /// `a and b and …`
    fn conjunction(&mut self) -> Parsed {
        let mut parts = vec![self.negation()?];
        while self.accept("and")? {
            parts.push(self.negation()?);
        }
        Ok(one_or(parts, Expression::And))
    }

    /// `not a`: of one comparison, although `not` binds tighter elsewhere.
    fn negation(&mut self) -> Parsed {
        if self.accept("not")? {
            let inner = self.deeper(Self::negation)?;
            return Ok(Expression::Not(Box::new(inner)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parsed {
        let left = self.sum()?;
        let Some(operator) = self.operator() else {
            return Ok(left);
        };
        let compared = self.compared(Box::new(left), operator)?;
        if self.operator().is_some() {
            return Err(self.error("comparisons cannot be chained"));
        }
        Ok(compared)
    }

    /// The comparing sign or word, if it is next.
    fn operator(&self) -> Option<&'static str> {
        let Token::Symbol(symbol) = self.token else {
            return None;
        };
        let others = ["is", "not", "in", "between", "like", "ilike", "~=", "~!"];
        let compares = others.contains(&symbol) || symbol.parse::<Comparison>().is_ok();
        compares.then_some(symbol)
    }

    fn compared(&mut self, left: Box<Expression>, operator: &'static str) -> Parsed {
        self.expect(operator)?;
        if let Ok(comparison) = operator.parse() {
            let right = Box::new(self.sum()?);
            return Ok(Expression::Compare(left, comparison, right));
        }
        match operator {
            "~=" | "~!" => Ok(Expression::Unsupported(operator, vec![*left, self.sum()?])),
            "is" => {
                let is_not = self.accept("not")?;
                self.expect("null")?;
                Ok(negated_if(is_not, Expression::IsNull(left)))
            }
            "not" => match self.operator() {
                Some(word @ ("in" | "between" | "like" | "ilike")) => {
                    let compared = self.compared(left, word)?;
                    Ok(negated_if(true, compared))
                }
                _ => Err(self.syntax_error()),
            },
            "in" => Ok(Expression::In(left, Box::new(self.members()?))),
            "between" => {
                let low = Box::new(self.sum()?);
                self.expect("and")?;
                Ok(Expression::Between(left, low, Box::new(self.sum()?)))
            }
            _ => Ok(Expression::Like {
                subject: left,
                pattern: Box::new(self.sum()?),
                ignores_case: operator == "ilike",
            }),
        }
    }

    /// The right side of `in`: a list in brackets or parentheses.
    fn members(&mut self) -> Parsed {
        if self.accept("(")? {
            self.list(")")
        } else {
            self.sum()
        }
    }

    /// The elements of a list up to the closing sign.
    fn list(&mut self, end: &'static str) -> Parsed {
        let mut items = Vec::new();
        while !self.accept(end)? {
            if items.len() == ELEMENTS_MAX {
                return Err(self.error(format!("list of more than {ELEMENTS_MAX} elements")));
            }
            items.push(self.deeper(Self::sum)?);
            if !self.accept(",")? {
                self.expect(end)?;
                break;
            }
        }
        Ok(Expression::List(items))
    }

    fn sum(&mut self) -> Parsed {
        self.chain(&["+", "-"], Self::product)
    }

    fn product(&mut self) -> Parsed {
        self.chain(&["*", "/", "%"], Self::unary)
    }

    /// Operands of one level. Of several operators the last one represents all: none is supported.
    fn chain(&mut self, operators: &[&str], operand: fn(&mut Self) -> Parsed) -> Parsed {
        let mut operands = vec![operand(self)?];
        let mut last = None;
        while let Token::Symbol(operator) = self.token
            && operators.contains(&operator)
        {
            self.advance()?;
            last = Some(operator);
            operands.push(operand(self)?);
        }
        Ok(match last {
            Some(operator) => Expression::Unsupported(operator, operands),
            None => operands.remove(0),
        })
    }

    fn unary(&mut self) -> Parsed {
        if self.accept("-")? {
            return Ok(match self.deeper(Self::unary)? {
                Expression::Number(number) => Expression::Number(number.negated()),
                other => Expression::Unsupported("-", vec![other]),
            });
        }
        if let Token::Symbol(operator @ ("len" | "any" | "all" | "sum")) = self.token {
            self.advance()?;
            let operand = self.deeper(Self::unary)?;
            return Ok(Expression::Unsupported(operator, vec![operand]));
        }
        self.primary()
    }

    fn primary(&mut self) -> Parsed {
        match &self.token {
            Token::Symbol("(") => {
                self.advance()?;
                let inner = self.deeper(Self::either)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Symbol("[") => {
                self.advance()?;
                self.list("]")
            }
            Token::Symbol("true" | "false") => {
                let is_true = self.token == Token::Symbol("true");
                self.advance()?;
                Ok(Expression::Boolean(is_true))
            }
            Token::Symbol(_) | Token::End => Err(self.syntax_error()),
            Token::Name(_) | Token::Text(_) | Token::Number(_) => Ok(match self.advance()? {
                Token::Name(name) => Expression::Name(name.to_owned()),
                Token::Text(text) => Expression::Text(text),
                Token::Number(number) => Expression::Number(number),
                Token::Symbol(_) | Token::End => return Err(self.syntax_error()),
            }),
        }
    }
}

fn one_or(mut parts: Vec<Expression>, several: fn(Vec<Expression>) -> Expression) -> Expression {
    if parts.len() == 1 {
        parts.remove(0)
    } else {
        several(parts)
    }
}

fn negated_if(negated: bool, expression: Expression) -> Expression {
    if negated {
        Expression::Not(Box::new(expression))
    } else {
        expression
    }
}
