//! Runs expressions: the one way to do so, with every guard.

use std::sync::Arc;

use cel::common::types::CelBool;
use cel::common::value::Val;
use cel::{Context, Value as Cel};
use serde_json::Value as Json;

use crate::cel_value::CelValue;
use crate::error::describe;
use crate::expression::Expression;
use crate::functions::{self, LANGUAGE};
use crate::guard::{caught, on_deep_stack};
use crate::meter::Meter;
use crate::value;

/// Variables with their values, and expressions to run on them.
pub struct Evaluation<'v> {
    context: Context<'v, 'v>,
}

impl<'v> Evaluation<'v> {
    /// An evaluation with these variables. The caller checks before that there is not too much data in them
    /// ([`DataSize`](crate::DataSize)).
    pub fn new(variables: impl IntoIterator<Item = (&'static str, CelValue<'v>)>) -> Self {
        let mut context = Context::with_env(Arc::clone(&LANGUAGE));
        for (name, value) in variables {
            context.add_variable_as_val(name, value.0);
        }
        Self { context }
    }

    /// Gives a variable another value.
    pub fn set(&mut self, name: &'static str, value: CelValue<'v>) {
        self.context.add_variable_as_val(name, value.0);
    }

    /// The bool that an expression gives. Each of these methods counts in `meter` what the expression costs.
    ///
    /// # Guarantees
    ///
    /// Deterministic. Never panics, and ends: an expression fails once all that `meter` counts costs more than
    /// [`UNITS_MAX`](crate::UNITS_MAX).
    ///
    /// # Errors
    ///
    /// What went wrong: short, and without any value, which might be a secret.
    pub fn run_bool(&mut self, expression: &Expression, meter: &Meter) -> Result<bool, String> {
        self.run(expression, meter, |value| {
            let holds = value.downcast_ref::<CelBool>().map(|b| *b.inner());
            holds.ok_or("it is neither true nor false")
        })
    }

    /// The text that stands for what an expression gives: texts as they are, `True` and `False`, nothing for `null`,
    /// numbers in their shortest form, lists and maps as JSON.
    ///
    /// # Errors
    ///
    /// As above, and for what has no text (bytes, times, types, optionals), and for texts with NUL, which no database
    /// stores.
    pub fn run_text(&mut self, expression: &Expression, meter: &Meter) -> Result<String, String> {
        self.run(expression, meter, |value| {
            let text = value::text(value).filter(|text| !text.contains('\0'));
            text.ok_or("it is no text")
        })
    }

    /// The whole number that an expression gives, of any of the types of numbers.
    ///
    /// # Errors
    ///
    /// As above, and for what is no whole number between `i64::MIN` and `i64::MAX`.
    pub fn run_integer(&mut self, expression: &Expression, meter: &Meter) -> Result<i64, String> {
        self.run(expression, meter, |value| {
            value::integer(value).ok_or("it is no whole number")
        })
    }

    /// The JSON that an expression gives.
    ///
    /// # Errors
    ///
    /// As above, and for what JSON has no form for: bytes, times, types, optionals, infinite numbers, and what is
    /// nested deeper than 127 levels.
    pub fn run_json(&mut self, expression: &Expression, meter: &Meter) -> Result<Json, String> {
        self.run(expression, meter, |value| {
            let json = value::json(value).and_then(|text| serde_json::from_str(&text).ok());
            json.ok_or("it has no form in JSON")
        })
    }

    /// Runs an expression with every guard. `take` is guarded, too: a value may be deep.
    pub(crate) fn run<T: Send>(
        &mut self,
        expression: &Expression,
        meter: &Meter,
        take: impl FnOnce(&dyn Val) -> Result<T, &'static str> + Send,
    ) -> Result<T, String> {
        on_deep_stack(expression.is_deep(), || {
            let ran = caught(|| self.run_unguarded(expression, meter, take));
            ran.unwrap_or_else(|| Err("the interpreter gave up".to_owned()))
        })?
    }

    fn run_unguarded<T>(
        &mut self,
        expression: &Expression,
        meter: &Meter,
        take: impl FnOnce(&dyn Val) -> Result<T, &'static str>,
    ) -> Result<T, String> {
        let patterns = Arc::clone(&expression.patterns);
        functions::install(&mut self.context, meter, patterns);
        let value = Cel::resolve_val(&expression.metered, &self.context);
        let costs_too_much = || "it costs too much on this data".to_owned();
        // An expression may swallow an error: `a || true`.
        if meter.is_exceeded() {
            return Err(costs_too_much());
        }
        let value = value.map_err(|error| describe(&error, &expression.source))?;
        meter.weigh(&value).map_err(|_| costs_too_much())?;
        Ok(take(&*value)?)
    }
}
