//! Converts searches to SQL. Fields come from closed enums; names of labels, conditions and members of specs, and all
//! values, go through binds: no user text in SQL.

use sqlx::types::Json;
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use super::columns::literal;
use hyperfleet_domain::aggregation::{LAST_KNOWN_RECONCILED, RECONCILED};
use hyperfleet_domain::tsl::{
    Comparison, ConditionPart, Field, Filter, NUMBER_CHARACTERS_MAX, NUMBER_TEXT, Predicate,
    Property, Test, Type, Value,
};
use hyperfleet_domain::{Entity, EntityRegistry, PATHS_BASE, ResourceId};

/// Longest text of a spec that is compared with a pattern by `LIKE`, in bytes.
const LIKE_BYTES_MAX: i32 = 1_000;

/// Texts are ordered by their bytes, and cases differ for `A` to `Z` only, whatever the locale of the database: watches
/// decide the same in memory (`domain::tsl::evaluate`). Equality is the same in every locale,
/// and would lose its indexes.
const BY_BYTES: &str = " COLLATE \"C\"";

/// The kinds, which define the paths of their resources, because URLs are also compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search<'a>(pub(super) &'a EntityRegistry);

impl Search<'_> {
    /// Adds the condition, in parentheses. A row for which it is neither true nor false (SQL's null, for a missing
    /// field) does not match: `NOT` applies to single tests only, which preserves this.
    pub(super) fn push_filter(self, query: &mut QueryBuilder<Postgres>, filter: &Filter) {
        let (parts, word, of_none) = match filter {
            Filter::All(parts) => (parts, " AND ", "true"),
            Filter::Any(parts) => (parts, " OR ", "false"),
            Filter::Test(test) => return self.push_test(query, test),
        };
        query.push("(");
        for (index, part) in parts.iter().enumerate() {
            query.push(if index == 0 { "" } else { word });
            self.push_filter(query, part);
        }
        query.push(if parts.is_empty() { of_none } else { "" });
        query.push(")");
    }

    fn push_test(self, query: &mut QueryBuilder<Postgres>, test: &Test) {
        if !test.negated && push_indexed(query, test) {
            return;
        }
        query.push("(");
        if test.negated && test.predicate != Predicate::IsNull {
            // «One of nothing» is false even of a missing field.
            self.push_field(query, &test.field, test.value_type());
            query.push(" IS NOT NULL AND ");
        }
        query.push(if test.negated { "NOT (" } else { "(" });
        self.push_predicate(query, test);
        query.push("))");
    }

    fn push_predicate(self, query: &mut QueryBuilder<Postgres>, test: &Test) {
        if test.predicate == Predicate::In(Vec::new()) {
            query.push("false");
            return;
        }
        if let Predicate::Like {
            pattern,
            ignores_case,
        } = &test.predicate
            && let Field::Spec(path) = &test.field
        {
            return push_spec_like(query, path, pattern, *ignores_case);
        }
        self.push_field(query, &test.field, test.value_type());
        match &test.predicate {
            Predicate::IsNull => {
                query.push(" IS NULL");
            }
            Predicate::Compares(comparison, value) => {
                query.push(" ").push(comparison.into_str()).push(" ");
                push_value(query, value);
                push_collation(query, *comparison, test.value_type());
            }
            Predicate::ComparesWith(comparison, other) => {
                query.push(" ").push(comparison.into_str()).push(" ");
                self.push_field(query, other, test.value_type());
                push_collation(query, *comparison, test.value_type());
            }
            Predicate::In(values) => {
                query.push(" IN (");
                for (index, value) in values.iter().enumerate() {
                    query.push(if index == 0 { "" } else { ", " });
                    push_value(query, value);
                }
                query.push(")");
            }
            Predicate::Between(low, high) => {
                // In parentheses: SQL takes no bare collation before `AND`.
                query.push(" BETWEEN (");
                push_value(query, low);
                push_collation(query, Comparison::GreaterOrEqual, test.value_type());
                query.push(") AND (");
                push_value(query, high);
                push_collation(query, Comparison::LessOrEqual, test.value_type());
                query.push(")");
            }
            Predicate::Like {
                pattern,
                ignores_case,
            } => {
                query.push(if *ignores_case { " ILIKE " } else { " LIKE " });
                query.push_bind(pattern.clone());
                query.push(if *ignores_case { BY_BYTES } else { "" });
            }
        }
    }

    /// Adds an expression for a field; null if a resource does not have it.
    fn push_field(self, query: &mut QueryBuilder<Postgres>, field: &Field, read_as: Type) {
        match field {
            Field::Property(property) => self.push_property(query, *property),
            Field::Label(key) => {
                query.push("(labels ->> ").push_bind(key.clone()).push(")");
            }
            Field::Spec(path) if read_as == Type::Number => push_spec_number(query, path),
            Field::Spec(path) => {
                query.push("(spec #>> ").push_bind(path.clone()).push(")");
            }
            Field::Condition(kind, part) => {
                if let Some(column) = column_of(kind, *part) {
                    query.push(column);
                    return;
                }
                let member = match part {
                    ConditionPart::Status => "'status')",
                    ConditionPart::LastUpdatedTime => "'last_updated_time')::timestamptz",
                    ConditionPart::LastTransitionTime => "'last_transition_time')::timestamptz",
                    ConditionPart::ObservedGeneration => "'observed_generation')::bigint",
                };
                let sought = serde_json::Map::from_iter([("t".to_owned(), kind.as_str().into())]);
                query.push("(jsonb_path_query_first(conditions, '$[*] ? (@.type == $t)', ");
                query.push_bind(Json(sought)).push(") ->> ").push(member);
            }
        }
    }

    fn push_property(self, query: &mut QueryBuilder<Postgres>, property: Property) {
        let column = match property {
            Property::Id => "id::text",
            Property::Kind => "kind",
            Property::Name => "name",
            Property::Generation => "generation::bigint",
            Property::CreatedTime => "created_at",
            Property::UpdatedTime => "updated_at",
            Property::DeletedTime => "deleted_at",
            Property::CreatedBy => "created_by",
            Property::UpdatedBy => "updated_by",
            Property::DeletedBy => "deleted_by",
            Property::OwnerId => "owner_id::text",
            Property::Href | Property::OwnerKind | Property::OwnerHref => {
                return self.push_by_kind(query, property);
            }
        };
        query.push(column);
    }

    /// Adds what follows from the kind of a resource and the ids of itself and its owner.
    fn push_by_kind(self, query: &mut QueryBuilder<Postgres>, property: Property) {
        // The first branch, which no kind takes, makes the type text.
        query.push("(CASE kind WHEN '' THEN NULL::text");
        let flat = |entity: &Entity| literal(&format!("{PATHS_BASE}/{}/", entity.plural));
        for entity in self.0.entities() {
            let owner = entity.parent.as_deref().and_then(|kind| self.0.get(kind));
            query.push(" WHEN ").push(literal(&entity.kind));
            query.push(" THEN ");
            match (property, owner) {
                (Property::Href, None) => query.push(flat(entity)).push(" || id::text"),
                (Property::Href, Some(owner)) => {
                    query.push(flat(owner)).push(" || owner_id::text || ");
                    query.push(literal(&format!("/{}/", entity.plural)));
                    query.push(" || id::text")
                }
                (Property::OwnerHref, Some(owner)) => {
                    query.push(flat(owner)).push(" || owner_id::text")
                }
                (_, Some(owner)) => query.push(literal(&owner.kind)),
                (_, None) => query.push("NULL"),
            };
        }
        query.push(" END)");
    }
}

/// Adds a test in an equivalent form that an index answers, if there is one.
fn push_indexed(query: &mut QueryBuilder<Postgres>, test: &Test) -> bool {
    let texts: Vec<&str> = match &test.predicate {
        Predicate::Compares(Comparison::Equal, Value::Text(equal)) => vec![equal],
        Predicate::In(values) if !values.is_empty() => {
            let texts: Option<_> = values.iter().map(text_of).collect();
            let Some(texts) = texts else { return false };
            texts
        }
        _ => return false,
    };
    match &test.field {
        Field::Property(Property::Id) => push_ids(query, "id", &texts),
        Field::Property(Property::OwnerId) => push_ids(query, "owner_id", &texts),
        Field::Condition(kind, ConditionPart::Status) => {
            let states: Vec<_> = texts.iter().map(|text| format!("{kind}={text}")).collect();
            query.push("condition_states && ").push_bind(states);
        }
        Field::Label(key) => {
            query.push("(");
            for (index, text) in texts.iter().enumerate() {
                query.push(if index == 0 { "" } else { " OR " });
                let label = serde_json::Map::from_iter([(key.clone(), (*text).into())]);
                query.push("labels @> ").push_bind(Json(label));
            }
            query.push(")");
        }
        _ => return false,
    }
    true
}

/// The column of a condition's part, if it has one.
fn column_of(kind: &str, part: ConditionPart) -> Option<&'static str> {
    match (kind, part) {
        (RECONCILED, ConditionPart::LastUpdatedTime) => Some("reconciled_updated_at"),
        (RECONCILED, ConditionPart::LastTransitionTime) => Some("reconciled_transition_at"),
        (LAST_KNOWN_RECONCILED, ConditionPart::ObservedGeneration) => Some("last_known_generation"),
        _ => None,
    }
}

/// Values that are not ids match nothing.
fn push_ids(query: &mut QueryBuilder<Postgres>, column: &'static str, texts: &[&str]) {
    let ids: Vec<Uuid> = texts
        .iter()
        .filter_map(|text| ResourceId::parse(text).map(ResourceId::as_uuid))
        .collect();
    query.push(column).push(" = ANY(").push_bind(ids).push(")");
}

/// A number of a spec, or a text that is one; anything else counts as missing. The spec is read once: reading a large
/// one is the cost of such a test.
fn push_spec_number(query: &mut QueryBuilder<Postgres>, path: &[String]) {
    query.push("(SELECT CASE WHEN length(v) <= ");
    query.push(NUMBER_CHARACTERS_MAX).push(" AND v ~ ");
    query
        .push(literal(NUMBER_TEXT))
        .push(" THEN v::numeric END FROM (SELECT spec #>> ");
    query.push_bind(path.to_vec()).push(" AS v OFFSET 0) s)");
}

/// A text of a spec, compared with a pattern. `LIKE` may take as many steps as text times pattern, 0.3 s for a text of
/// 900,000 bytes, and nothing stops it, no time limit either. So long texts are compared by a regular expression: its
/// automaton reads them once, in a few hundredths of that time, and can be stopped anywhere. Short texts, nearly all,
/// are faster by `LIKE`.
fn push_spec_like(
    query: &mut QueryBuilder<Postgres>,
    path: &[String],
    pattern: &str,
    ignores_case: bool,
) {
    let (like, matches, collation) = if ignores_case {
        (" ILIKE ", " ~* ", BY_BYTES)
    } else {
        (" LIKE ", " ~ ", "")
    };
    query.push("(SELECT CASE WHEN octet_length(v) <= ");
    query.push(LIKE_BYTES_MAX).push(" THEN v").push(like);
    query.push_bind(pattern.to_owned()).push(collation);
    query.push(" ELSE v").push(matches);
    query.push_bind(regular_expression(pattern)).push(collation);
    query.push(" END FROM (SELECT spec #>> ");
    query.push_bind(path.to_vec()).push(" AS v OFFSET 0) s)");
}

/// PostgreSQL's regular expression with the meaning of a `LIKE` pattern. Its `.` is any character, and `^` and `$` are
/// the ends of the text, line ends or not.
fn regular_expression(pattern: &str) -> String {
    let mut expression = String::from("^");
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            // Several in a row mean the same as one.
            '%' if expression.ends_with(".*") => {}
            '%' => expression.push_str(".*"),
            '_' => expression.push('.'),
            '\\' => push_literal(&mut expression, characters.next().unwrap_or('\\')),
            literal => push_literal(&mut expression, literal),
        }
    }
    expression.push('$');
    expression
}

fn push_literal(expression: &mut String, literal: char) {
    if r"\.*+?()[]{}^$|".contains(literal) {
        expression.push('\\');
    }
    expression.push(literal);
}

fn push_collation(query: &mut QueryBuilder<Postgres>, comparison: Comparison, compared: Type) {
    let is_ordered = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    if is_ordered && compared == Type::Text {
        query.push(BY_BYTES);
    }
}

fn push_value(query: &mut QueryBuilder<Postgres>, value: &Value) {
    match value {
        Value::Text(text) => query.push_bind(text.clone()),
        Value::Integer(integer) => query.push_bind(*integer),
        Value::Number(number) => query
            .push_bind(number.as_str().to_owned())
            .push("::numeric"),
        Value::Time(at) => query.push_bind(*at),
    };
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::regular_expression;

    #[test]
    fn patterns_have_regular_expressions_that_mean_the_same() {
        for (pattern, expected) in [
            ("", "^$"),
            ("%", "^.*$"),
            ("a%%%b_%", "^a.*b..*$"),
            (r"100\%\_\\%", r"^100%_\\.*$"),
            (".%*", r"^\..*\*$"),
            (
                "***:a(b)[c]{1}^$|+?",
                r"^\*\*\*:a\(b\)\[c\]\{1\}\^\$\|\+\?$",
            ),
            (r"\d-é", "^d-é$"),
        ] {
            assert_eq!(regular_expression(pattern), expected, "{pattern}");
        }
    }
}
