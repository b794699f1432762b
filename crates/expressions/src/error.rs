//! Describes the interpreter's errors for an operator.

use cel::ExecutionError;

use crate::excerpt::excerpt;

/// The interpreter's error in our words, because its own repeat values. Names are repeated only if they are in
/// the expression; others come from the data.
pub(crate) fn describe(error: &ExecutionError, source: &str) -> String {
    use ExecutionError as E;
    let text = match error {
        E::NoSuchKey(key) if source.contains(key.as_str()) => format!("there is no \"{key}\""),
        E::NoSuchKey(_) => "a map has no such key".to_owned(),
        E::NoSuchOverload(overload) => format!(
            "\"{}\" does not work on {}",
            overload.function(),
            overload.argument_types().join(", ")
        ),
        E::UndeclaredReference(name) => format!("there is no \"{name}\""),
        E::InvalidArgumentCount { .. } | E::MissingArgumentOrTarget => {
            "a function was called with the wrong number of arguments".to_owned()
        }
        E::UnexpectedType { .. }
        | E::UnsupportedTargetType { .. }
        | E::NotSupportedAsMethod { .. }
        | E::UnsupportedKeyType(_)
        | E::ValuesNotComparable(..)
        | E::UnsupportedIndex(..) => "a value is of the wrong type".to_owned(),
        E::UnsupportedBinaryOperator(operator, ..) => {
            format!("the operator \"{operator}\" does not work on values of these types")
        }
        E::DivisionByZero(_) | E::RemainderByZero(_) => "division by zero".to_owned(),
        E::Overflow(..) => "a number is too large".to_owned(),
        E::IndexOutOfBounds(_) => "a list has no element at that index".to_owned(),
        E::DuplicateKey(_) => "a map has a key twice".to_owned(),
        E::FunctionError { function, .. } => format!("\"{function}\" failed on its arguments"),
        _ => "it cannot be evaluated".to_owned(),
    };
    excerpt(&text)
}
