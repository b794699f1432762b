//! Texts with expressions: `np-${resource.name}@${index}.service`. `$${` stands for `${`.

use hyperfleet_expressions::{Evaluation, Expression, MASK, Meter};

use super::VARIABLES;
use super::values::Usage;

/// A compiled text with expressions.
#[derive(Debug)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Value {
        source: String,
        expression: Expression,
        usage: Usage,
        /// Whether it begins a word: an empty value must not make the word vanish.
        opens_word: bool,
    },
}

impl Template {
    /// Compiles a text. `usage` says where a value after a given text is placed.
    ///
    /// # Errors
    /// The first fault, as the rest of a sentence after the text's name.
    pub(super) fn compile(text: &str, usage: impl Fn(&str) -> Usage) -> Result<Self, String> {
        let mut parts = Vec::new();
        let (mut literal, mut before) = (String::new(), String::new());
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            literal.push_str(&rest[..at]);
            if rest[..at].ends_with('$') {
                // `$${`: systemd replaces the text by an environment variable.
                literal.pop();
                literal.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            let inner = &rest[at + 2..];
            let end = end_of(inner).ok_or("has \"${\" without an end")?;
            let source = inner[..end].trim();
            let expression = Expression::compile(source, &VARIABLES)
                .map_err(|fault| format!("has \"${{{source}}}\", which {fault}"))?;
            rest = &inner[end + 1..];
            before.push_str(&literal);
            for sign in ['%', '\\'] {
                let signs = before.len() - before.trim_end_matches(sign).len();
                if signs % 2 == 1 {
                    return Err(format!(
                        "has \"${{{source}}}\" behind \"{sign}\", which would change its meaning"
                    ));
                }
            }
            let usage = usage(&before);
            let before_word = before.is_empty() || before.ends_with([' ', '\t']);
            // What follows is not at the beginning.
            before.push('x');
            parts.push(Part::Text(std::mem::take(&mut literal)));
            parts.push(Part::Value {
                source: source.to_owned(),
                expression,
                usage,
                opens_word: before_word,
            });
        }
        literal.push_str(rest);
        parts.push(Part::Text(literal));
        Ok(Self { parts })
    }

    /// The text with the values of a resource.
    ///
    /// # Errors
    /// An invalid value, with its expression.
    pub(super) fn render(
        &self,
        evaluation: &mut Evaluation<'_>,
        meter: &Meter,
    ) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Value {
                    source,
                    expression,
                    usage,
                    opens_word,
                } => {
                    let fault = |what: String| format!("${{{source}}}: {what}");
                    let value = evaluation.run_text(expression, meter).map_err(fault)?;
                    if value.contains(MASK) {
                        return Err(fault(
                            "the value is hidden: secrets do not belong in unit files".to_owned(),
                        ));
                    }
                    let escaped = usage.escape(&value);
                    let escaped = escaped.map_err(|what| fault(format!("the value {what}")))?;
                    if escaped.is_empty() && usage.is_word() && *opens_word {
                        text.push_str("\"\"");
                    }
                    text.push_str(&escaped);
                }
            }
        }
        Ok(text)
    }
}

/// Position of the `}` that ends an expression, outside of quotes and brackets.
fn end_of(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                characters.next();
            }
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '{' | '[' | '(') => depth += 1,
            (None, '}') if depth == 0 => return Some(at),
            (None, '}' | ']' | ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use hyperfleet_expressions::CelValue;
    use serde_json::{Value, json};

    use super::*;

    fn render(text: &str, resource: &Value) -> Result<String, String> {
        let template = Template::compile(text, |before| Usage::of("Service", "ExecStart", before))?;
        let variables = [("resource", CelValue::masked(resource))];
        template.render(&mut Evaluation::new(variables), &Meter::default())
    }

    #[test]
    fn expressions_are_replaced_by_values() {
        let resource = json!({"name": "a", "spec": {"n": 3, "text": "}", "none": ""}});
        for (text, rendered) in [
            ("/x ${resource.name}", "/x a"),
            ("/x --n=${ resource.spec.n }${resource.name}", "/x --n=3a"),
            (
                "/x $${HOME} $HOME $$ ${\"}\" + resource.spec.text}",
                "/x ${HOME} $HOME $$ }}",
            ),
            ("/x ${{\"k\": \"v\"}[\"k\"]}", "/x v"),
            (
                "/x ${resource.spec.none} --y=${resource.spec.none}",
                "/x \"\" --y=",
            ),
            ("/opt/${resource.name}/x", "/opt/a/x"),
            ("/x %%${resource.name}", "/x %%a"),
            (
                "/x ${resource.spec.none}${resource.spec.none} --tls",
                "/x \"\" --tls",
            ),
        ] {
            assert_eq!(render(text, &resource).as_deref(), Ok(rendered), "{text}");
        }
    }

    #[test]
    fn faults_name_the_expression() {
        let resource = json!({"spec": {"password": "p", "list": [1], "path": "../x"}});
        for (text, fault) in [
            (
                "/x ${resource.spec.missing}",
                "${resource.spec.missing}: there is no \"missing\"",
            ),
            (
                "/x ${resource.spec.password}",
                "${resource.spec.password}: the value is hidden",
            ),
            (
                "/x ${\"a\\nb\"}",
                "the value has the control character U+000A",
            ),
            ("/opt/${resource.spec.path}", "the value has \"..\""),
            ("/x ${resource", "has \"${\" without an end"),
            (
                "/x ${nobody}",
                "has \"${nobody}\", which names \"nobody\", which is not there",
            ),
            ("/x ${}", "has \"${}\", which is empty"),
            ("/x %${resource.name}", "behind \"%\""),
            ("/x \\${resource.name}", "behind \"\\\""),
            (
                "\"/opt/my tools/${resource.spec.path}\"",
                "the value has \"..\"",
            ),
        ] {
            let said = render(text, &resource).unwrap_err();
            assert!(said.contains(fault), "{text}: {said}");
        }
    }
}
