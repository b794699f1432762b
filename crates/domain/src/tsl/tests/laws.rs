//! Properties of every search text, valid, invalid or hostile. The fuzz target (`fuzz/`) finds texts that violate one;
//! the unit tests try every text of its corpus.

use std::fmt::Debug;

use super::check;
use super::expression::Expression;
use super::parser;
use super::{
    ConditionPart, ELEMENTS_MAX, Field, Filter, PATTERN_BYTES_MAX, Predicate, SPEC_VALUES_MAX,
    SearchError, TESTS_MAX, TEXT_BYTES_MAX, Test, Type, Value, parse,
};

/// Longest message without its quotes of the search, in bytes.
const MESSAGE_BYTES_MAX: usize = 256;
/// Levels of a filter at most: each of them adds a test.
const FILTER_DEPTH_MAX: usize = TESTS_MAX;

/// Holds a text against the laws of searches.
///
/// - Reading it ends, without a panic, and with the same answer each time.
/// - It is too long if it has more than [`TEXT_BYTES_MAX`] bytes, and only then.
/// - An error has a message of bounded length; one of syntax points into the text or at its end.
/// - What is read, printed and read again is the same expression.
/// - A filter keeps to every limit of this module; its negation asks the same questions.
/// - Its values fit their fields, and are texts that the database can hold.
///
/// # Errors
///
/// Which law is broken, and how.
pub fn check_search(text: &str) -> Result<(), String> {
    of_reading(text, parse)
}

fn of_reading(
    text: &str,
    mut read: impl FnMut(&str) -> Result<Filter, SearchError>,
) -> Result<(), String> {
    let answer = read(text);
    if read(text) != answer {
        return Err(format!("read twice, it is not {answer:?} again"));
    }
    match &answer {
        Ok(filter) => of_filter(filter)?,
        Err(error) => of_error(text, error)?,
    }
    if text.len() > TEXT_BYTES_MAX {
        return same(
            &answer,
            &Err(SearchError::TooLong),
            "the answer to what is long",
        );
    }
    match parser::parse(text) {
        Ok(expression) => of_expression(&expression),
        Err(_) => Ok(()),
    }
}

fn of_error(text: &str, error: &SearchError) -> Result<(), String> {
    let message = error.to_string();
    if message.is_empty() {
        return Err("an error without a message".to_owned());
    }
    // The text may be quoted in full; the mark below it is as far to the right as the text is long.
    let quoted = 2 * text.len().min(TEXT_BYTES_MAX);
    at_most(
        message.len(),
        quoted + MESSAGE_BYTES_MAX,
        "bytes of message",
    )?;
    match error {
        SearchError::Syntax {
            position,
            text: printed,
            ..
        } => {
            same(&printed.as_str(), &text, "the text of an error")?;
            at_most(*position, text.chars().count(), "characters to an error")
        }
        SearchError::TooLong if text.len() <= TEXT_BYTES_MAX => {
            Err("short, but too long".to_owned())
        }
        SearchError::TooLong | SearchError::UnknownField(_) | SearchError::Meaning(_) => Ok(()),
    }
}

fn of_expression(expression: &Expression) -> Result<(), String> {
    let printed = expression.to_string();
    same(
        &parser::parse(&printed).as_ref(),
        &Ok(expression),
        &format!("what is read of {printed}"),
    )?;
    let plain = check::filter(expression, false);
    let negated = check::filter(expression, true);
    same(
        &negated.map(|f| questions(&f)),
        &plain.map(|f| questions(&f)),
        "what the negation asks",
    )
}

/// The tests of a filter in their order, however they are combined.
fn questions(filter: &Filter) -> Vec<(Field, Predicate)> {
    match filter {
        Filter::All(parts) | Filter::Any(parts) => parts.iter().flat_map(questions).collect(),
        Filter::Test(test) => vec![(test.field.clone(), test.predicate.clone())],
    }
}

fn of_filter(filter: &Filter) -> Result<(), String> {
    at_most(depth(filter), FILTER_DEPTH_MAX, "levels of a filter")?;
    let questions = questions(filter);
    at_most(questions.len(), TESTS_MAX, "tests")?;
    let fields = questions.iter().flat_map(|(field, predicate)| {
        let other = match predicate {
            Predicate::ComparesWith(_, other) => Some(other),
            _ => None,
        };
        [Some(field), other]
    });
    let of_specs = fields.flatten().filter(|f| matches!(f, Field::Spec(_)));
    at_most(of_specs.count(), SPEC_VALUES_MAX, "values of specs")?;
    questions
        .into_iter()
        .try_for_each(|(field, predicate)| of_question(field, predicate))
}

fn depth(filter: &Filter) -> usize {
    match filter {
        Filter::All(parts) | Filter::Any(parts) => {
            1 + parts.iter().map(depth).max().unwrap_or_default()
        }
        Filter::Test(_) => 0,
    }
}

fn of_question(field: Field, predicate: Predicate) -> Result<(), String> {
    let values: Vec<&Value> = match &predicate {
        Predicate::Compares(_, value) => vec![value],
        Predicate::Between(low, high) => vec![low, high],
        Predicate::In(values) => values.iter().collect(),
        Predicate::Like { pattern, .. } => {
            at_most(pattern.len(), PATTERN_BYTES_MAX, "bytes of pattern")?;
            vec![]
        }
        Predicate::IsNull | Predicate::ComparesWith(..) => vec![],
    };
    at_most(values.len(), ELEMENTS_MAX, "elements")?;
    if values.iter().any(|value| has_zero(value)) {
        return Err(format!("{field:?} is compared with a text that has a zero"));
    }
    if let (Field::Condition(_, ConditionPart::Status), Predicate::Compares(comparison, _)) =
        (&field, &predicate)
        && comparison.orders()
    {
        return Err(format!("{field:?} is ordered"));
    }
    let types: Vec<_> = values.iter().map(|value| value.value_type()).collect();
    let test = Test {
        field,
        predicate,
        negated: false,
    };
    let read_as = test.value_type();
    let fits = match test.field {
        Field::Spec(_) => matches!(read_as, Type::Text | Type::Number),
        _ => read_as == test.field.value_type(),
    };
    if fits && types.iter().all(|t| *t == read_as) {
        return Ok(());
    }
    Err(format!("{test:?} compares what does not"))
}

fn has_zero(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text.contains('\0'))
}

fn same<T: PartialEq + Debug>(is: &T, should: &T, what: &str) -> Result<(), String> {
    if is == should {
        return Ok(());
    }
    Err(format!("{what} is {is:?}, not {should:?}"))
}

/// Fails if there are more than `most`.
fn at_most(count: usize, most: usize, what: &str) -> Result<(), String> {
    if count <= most {
        return Ok(());
    }
    Err(format!("{count} {what}, {most} are allowed"))
}

#[cfg(test)]
mod tests {
    use super::super::DEPTH_MAX;
    use super::super::expression::Comparison;
    use super::super::number::Number;
    use super::*;

    fn assert_broken(result: Result<(), String>, law: &str) {
        let broken = result.expect_err(law);
        assert!(broken.contains(law), "{broken}");
    }

    fn asked(field: Field, predicate: Predicate) -> Filter {
        Filter::Test(Test {
            field,
            predicate,
            negated: false,
        })
    }

    fn label(predicate: Predicate) -> Filter {
        asked(Field::Label("a".to_owned()), predicate)
    }

    #[test]
    fn they_hold_for_searches_and_for_nonsense() {
        for text in [
            "",
            "name = 'ä' & 1",
            "not (name not in ('a', \"it's\") or spec.a between -5 and 5Ki)",
            "name in a * 2 + 1",
            "generation - 1 - (2 - 3) * - (4) ~= len sum 'a'",
            "name in [[true, a = b, (a or b) and not (c is not null)], []]",
            "not not ((a = b) = (not c))",
        ] {
            assert_eq!(check_search(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn they_hold_at_the_limits() {
        let long = |length: usize| format!("name = '{}'", "a".repeat(length - 9));
        assert_eq!(check_search(&long(TEXT_BYTES_MAX)), Ok(()));
        assert_eq!(check_search(&long(TEXT_BYTES_MAX + 1)), Ok(()));
        // As deep as can be read, with nothing that could be left out when it is printed.
        let nested = |inner: &str| {
            (0..DEPTH_MAX).fold(format!("id = 'a' or {inner}"), |inner, _| {
                format!("id = 'a' or ({inner})")
            })
        };
        for text in [
            nested("name not in []"),
            nested("name is not null"),
            format!("{}a = 1", "len ".repeat(DEPTH_MAX)),
            format!("{}a = 1", "not ".repeat(DEPTH_MAX)),
            format!("a = {}5", "-".repeat(DEPTH_MAX)),
        ] {
            assert!(parser::parse(&text).is_ok(), "{text}");
            assert_eq!(check_search(&text), Ok(()), "{text}");
        }
    }

    #[test]
    fn an_answer_that_changes_or_comes_too_late_is_noticed() {
        let mut count = 0;
        let fickle = |_: &str| {
            count += 1;
            Err(SearchError::meaning(count.to_string()))
        };
        assert_broken(of_reading("a", fickle), "read twice");
        let long = "a".repeat(TEXT_BYTES_MAX + 1);
        let late = |_: &str| Err(SearchError::meaning("no"));
        assert_broken(of_reading(&long, late), "the answer to what is long");
    }

    #[test]
    fn errors_that_mislead_are_noticed() {
        let syntax = |position: usize, text: &str| SearchError::Syntax {
            what: "syntax error".to_owned(),
            position,
            text: text.to_owned(),
        };
        assert_eq!(of_error("ä", &syntax(1, "ä")), Ok(()));
        assert_broken(of_error("ä", &syntax(2, "ä")), "characters to an error");
        assert_broken(of_error("a", &syntax(0, "b")), "text of an error");
        assert_broken(
            of_error("a", &SearchError::meaning("")),
            "without a message",
        );
        let long = SearchError::meaning("a".repeat(MESSAGE_BYTES_MAX + 3));
        assert_broken(of_error("a", &long), "bytes of message");
        assert_broken(of_error("a", &SearchError::TooLong), "short");
    }

    #[test]
    fn an_expression_that_reads_as_another_is_noticed() {
        let name = || Expression::Name("a".to_owned());
        assert_eq!(of_expression(&name()), Ok(()));
        let single = Expression::And(vec![name()]);
        assert_broken(of_expression(&single), "what is read of a");
    }

    #[test]
    fn filters_beyond_their_limits_are_noticed() {
        let null = || label(Predicate::IsNull);
        let many = |count| Filter::All(vec![null(); count]);
        assert_eq!(of_filter(&many(TESTS_MAX)), Ok(()));
        assert_broken(of_filter(&many(TESTS_MAX + 1)), "tests");
        let deep = |levels| (0..levels).fold(null(), |inner, _| Filter::Any(vec![inner]));
        assert_eq!(of_filter(&deep(FILTER_DEPTH_MAX)), Ok(()));
        assert_broken(of_filter(&deep(FILTER_DEPTH_MAX + 1)), "levels");
        let spec = || Field::Spec(vec!["a".to_owned()]);
        let pair = || asked(spec(), Predicate::ComparesWith(Comparison::Less, spec()));
        let pairs = |count| Filter::All(vec![pair(); count]);
        assert_eq!(of_filter(&pairs(SPEC_VALUES_MAX / 2)), Ok(()));
        assert_broken(of_filter(&pairs(SPEC_VALUES_MAX / 2 + 1)), "of specs");
        let text = |text: &str| Value::Text(text.to_owned());
        let listed = |count| label(Predicate::In(vec![text("x"); count]));
        assert_eq!(of_filter(&listed(ELEMENTS_MAX)), Ok(()));
        assert_broken(of_filter(&listed(ELEMENTS_MAX + 1)), "elements");
        let like = |length| {
            label(Predicate::Like {
                pattern: "%".repeat(length),
                ignores_case: false,
            })
        };
        assert_eq!(of_filter(&like(PATTERN_BYTES_MAX)), Ok(()));
        assert_broken(of_filter(&like(PATTERN_BYTES_MAX + 1)), "bytes of pattern");
    }

    #[test]
    fn values_that_do_not_fit_are_noticed() {
        let text = |text: &str| Value::Text(text.to_owned());
        let equal = |value| Predicate::Compares(Comparison::Equal, value);
        assert_broken(of_filter(&label(equal(text("a\0")))), "zero");
        assert_broken(of_filter(&label(equal(Value::Integer(1)))), "does not");
        let number = || Value::Number(Number::parse("1", "").expect("a short one"));
        let spec = |predicate| asked(Field::Spec(vec!["a".to_owned()]), predicate);
        assert_eq!(of_filter(&spec(equal(number()))), Ok(()));
        assert_broken(of_filter(&spec(equal(Value::Integer(1)))), "does not");
        let mixed = Predicate::Between(number(), text("a"));
        assert_broken(of_filter(&spec(mixed)), "does not");
        let status = Field::Condition("A".to_owned(), ConditionPart::Status);
        let less = Predicate::Compares(Comparison::Less, text("True"));
        assert_broken(of_filter(&asked(status, less)), "is ordered");
    }
}
