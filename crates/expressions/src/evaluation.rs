//! Runs expressions, with every guard. There is no other way to run one.

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

/// Variables with their values, for expressions to run on.
pub struct Evaluation<'v> {
    context: Context<'v, 'v>,
}

impl<'v> Evaluation<'v> {
    /// An evaluation with these variables. The caller limits their data before ([`DataSize`](crate::DataSize)).
    pub fn new(variables: impl IntoIterator<Item = (&'static str, CelValue<'v>)>) -> Self {
        let mut context = Context::with_env(Arc::clone(&LANGUAGE));
        for (name, value) in variables {
            context.add_variable_as_val(name, value.0);
        }
        Self { context }
    }

    /// Replaces the value of a variable.
    pub fn set(&mut self, name: &'static str, value: CelValue<'v>) {
        self.context.add_variable_as_val(name, value.0);
    }

    /// Runs an expression with a boolean result. Each of these methods charges `meter` for the expression.
    ///
    /// # Guarantees
    /// Deterministic. Never panics, and ends: an expression fails once everything charged to `meter` exceeds
    /// [`UNITS_MAX`](crate::UNITS_MAX).
    ///
    /// # Errors
    /// What went wrong: short, and without any value, which might be a secret.
    pub fn run_bool(&mut self, expression: &Expression, meter: &Meter) -> Result<bool, String> {
        self.run(expression, meter, |value| {
            let holds = value.downcast_ref::<CelBool>().map(|b| *b.inner());
            holds.ok_or("it is neither true nor false")
        })
    }

    /// Runs an expression and formats its result: texts unchanged, `True` and `False`, nothing for `null`,
    /// numbers in their shortest form, lists and maps as JSON.
    ///
    /// # Errors
    /// As above, and for results without a text form (bytes, times, types, optionals), and for texts with NUL,
    /// which no database stores.
    pub fn run_text(&mut self, expression: &Expression, meter: &Meter) -> Result<String, String> {
        self.run(expression, meter, |value| {
            let text = value::text(value).filter(|text| !text.contains('\0'));
            text.ok_or("it is no text")
        })
    }

    /// Runs an expression with a whole number as its result, of any number type.
    ///
    /// # Errors
    /// As above, and for any other result, or one beyond `i64`.
    pub fn run_integer(&mut self, expression: &Expression, meter: &Meter) -> Result<i64, String> {
        self.run(expression, meter, |value| {
            value::integer(value).ok_or("it is no whole number")
        })
    }

    /// Runs an expression with a result that has a JSON form.
    ///
    /// # Errors
    /// As above, and for bytes, times, types, optionals, infinite numbers, and results nested deeper than 127
    /// levels.
    pub fn run_json(&mut self, expression: &Expression, meter: &Meter) -> Result<Json, String> {
        self.run(expression, meter, |value| {
            let json = value::json(value).and_then(|text| serde_json::from_str(&text).ok());
            json.ok_or("it has no form in JSON")
        })
    }

    /// Runs an expression with every guard. `take` is also guarded, because a value may be deep.
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
