//! What an expression will cost on ordinary data, guessed before it is ever run. [`super::meter`]
//! bounds what it does cost; this finds the expressions that would always fail there: loops in loops
//! in loops, texts and lists that double again and again.

use std::rc::Rc;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};

use super::meter::parts;
use super::scope::VARIABLES;

/// How large a value is guessed to be.
#[derive(Debug, Clone)]
struct Shape {
    /// Its elements, if it is a list or a map.
    items: f64,
    /// Units, as the meter counts them.
    units: f64,
    /// Each of its elements.
    item: Option<Rc<Shape>>,
}

/// An expression's value and what making it costs.
type Guess = (Rc<Shape>, f64);

/// Ordinary data, from the outside in: sixteen adapters, each with eight conditions and as much data.
fn ordinary() -> Rc<Shape> {
    let levels = [(8.0, 4.0), (8.0, 16.0), (8.0, 128.0), (16.0, 2048.0)];
    let made = levels.into_iter().fold(None, |item, (items, units)| {
        Some(Rc::new(Shape { items, units, item }))
    });
    made.unwrap_or_else(|| scalar(1.0))
}

fn scalar(units: f64) -> Rc<Shape> {
    Rc::new(Shape {
        items: 0.0,
        units,
        item: None,
    })
}

fn list(items: f64, units: f64, item: Option<Rc<Shape>>) -> Rc<Shape> {
    Rc::new(Shape { items, units, item })
}

/// What stands for an element of a value, or a member.
fn item_of(shape: &Rc<Shape>) -> Rc<Shape> {
    shape.item.clone().unwrap_or_else(|| shape.clone())
}

fn larger(a: &Rc<Shape>, b: &Rc<Shape>) -> Rc<Shape> {
    list(
        a.items.max(b.items),
        a.units.max(b.units),
        larger_item(a.item.as_ref(), b.item.as_ref()),
    )
}

fn larger_item(a: Option<&Rc<Shape>>, b: Option<&Rc<Shape>>) -> Option<Rc<Shape>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(larger(a, b)),
        (a, b) => a.or(b).cloned(),
    }
}

/// Units that an expression costs on ordinary data.
pub(super) fn units(expression: &IdedExpr) -> f64 {
    let mut scope = Scope(Vec::new());
    scope.guess(expression).1
}

/// The variables of loops, innermost last; all others are [`ordinary`].
struct Scope(Vec<(String, Rc<Shape>)>);

impl Scope {
    fn guess(&mut self, expression: &IdedExpr) -> Guess {
        match &expression.expr {
            Expr::Literal(LiteralValue::String(text)) => {
                (scalar(1.0 + float(text.inner().len()) / 32.0), 1.0)
            }
            Expr::Literal(_) | Expr::Unspecified | Expr::Struct(_) => (scalar(1.0), 1.0),
            Expr::Ident(name) => {
                let found = self.0.iter().rev().find(|(known, _)| known == name);
                let shape = match found {
                    Some((_, shape)) => shape.clone(),
                    None if VARIABLES.contains(&name.as_str()) => ordinary(),
                    // A type, or the namespace of `optional.of`.
                    None => scalar(1.0),
                };
                (shape, 1.0)
            }
            Expr::Select(select) => {
                let (shape, cost) = self.guess(&select.operand);
                (item_of(&shape), cost + 1.0)
            }
            Expr::List(_) | Expr::Map(_) => {
                let (shapes, cost) = self.guess_all(&parts(expression));
                let units = 1.0 + shapes.iter().map(|s| s.units).sum::<f64>();
                let item = shapes.iter().fold(None, |largest, shape| {
                    larger_item(largest.as_ref(), Some(shape))
                });
                (list(float(shapes.len()), units, item), cost + units)
            }
            Expr::Call(call) => self.call(call, &parts(expression)),
            Expr::Comprehension(loops) => self.comprehension(loops),
        }
    }

    fn guess_all(&mut self, expressions: &[&IdedExpr]) -> (Vec<Rc<Shape>>, f64) {
        let guesses = expressions.iter().map(|e| self.guess(e));
        let (shapes, costs): (Vec<_>, Vec<_>) = guesses.unzip();
        let cost = 1.0 + costs.into_iter().sum::<f64>();
        (shapes, cost)
    }

    fn call(&mut self, call: &CallExpr, parts: &[&IdedExpr]) -> Guess {
        let (shapes, cost) = self.guess_all(parts);
        let units: f64 = shapes.iter().map(|s| s.units).sum();
        let largest = || {
            let mut shapes = shapes.iter().cloned();
            let first = shapes.next().unwrap_or_else(|| scalar(1.0));
            shapes.fold(first, |a, b| larger(&a, &b))
        };
        match call.func_name.as_str() {
            operators::CONDITIONAL => (largest(), cost),
            operators::LOGICAL_AND
            | operators::LOGICAL_OR
            | operators::LOGICAL_NOT
            | operators::NOT_STRICTLY_FALSE => (scalar(1.0), cost),
            operators::ADD => {
                let items = shapes.iter().map(|s| s.items).sum();
                let item = shapes.iter().fold(None, |largest, shape| {
                    larger_item(largest.as_ref(), shape.item.as_ref())
                });
                (list(items, units, item), cost + units)
            }
            operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT => {
                let shape = shapes.first().map_or_else(ordinary, item_of);
                (shape, cost)
            }
            "matches" => {
                let pattern = shapes.last().map_or(1.0, |s| s.units);
                (scalar(1.0), cost + units * pattern * 32.0)
            }
            "or" | "orValue" | "value" | "of" | "ofNonZeroValue" | "dig" | "dyn" => {
                (largest(), cost + units)
            }
            "string" | "bytes" | "toJson" => (scalar(units), cost + units),
            _ => (scalar(1.0), cost + units),
        }
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Guess {
        let (range, range_cost) = self.guess(&loops.iter_range);
        let (start, start_cost) = self.guess(&loops.accu_init);
        let outer = self.0.len();
        self.0.push((loops.iter_var.clone(), item_of(&range)));
        self.0.push((loops.accu_var.clone(), start.clone()));
        let (_, cond_cost) = self.guess(&loops.loop_cond);
        let (step, step_cost) = self.guess(&loops.loop_step);
        // Each step adds as much as the first.
        let grown = |start: f64, step: f64| start + range.items * (step - start).max(0.0);
        let end = list(
            grown(start.items, step.items),
            grown(start.units, step.units),
            larger_item(start.item.as_ref(), step.item.as_ref()),
        );
        self.0.truncate(outer + 1);
        self.0.push((loops.accu_var.clone(), end));
        let (result, result_cost) = self.guess(&loops.result);
        self.0.truncate(outer);
        let steps = range.items * (cond_cost + step_cost);
        (
            result,
            range_cost + start_cost + range.units + steps + result_cost,
        )
    }
}

/// Far below where a double would be off.
#[expect(clippy::cast_precision_loss, reason = "a guess of small numbers")]
fn float(count: usize) -> f64 {
    count as f64
}
