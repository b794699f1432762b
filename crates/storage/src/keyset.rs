//! The rows after a position, as SQL. Columns come from a closed enum, values through binds.

use sqlx::{Postgres, QueryBuilder};

use super::columns::column;
use hyperfleet_domain::ResourceId;
use hyperfleet_domain::page::Direction;
use hyperfleet_domain::position::{KeyValue, RowPosition, SortKey};

/// Adds the condition that a row comes after a position, in parentheses.
pub(super) fn push_after(query: &mut QueryBuilder<Postgres>, position: &RowPosition) {
    let keys = position.keys();
    let direction = keys.first().map(|key| key.direction);
    let is_uniform = |key: &SortKey| Some(key.direction) == direction && !key.field.is_optional();
    if keys.iter().all(is_uniform) {
        push_row_comparison(query, keys);
    } else {
        push_alternatives(query, keys);
    }
}

/// `(a, b) > ($1, $2)`: the only form for which the server finds the start in an index.
fn push_row_comparison(query: &mut QueryBuilder<Postgres>, keys: &[SortKey]) {
    query.push("((");
    let columns: Vec<_> = keys.iter().map(|key| column(key.field)).collect();
    query.push(columns.join(", ")).push(")");
    query.push(keys.first().map_or(" > ", |key| operator(key.direction)));
    query.push("(");
    for (index, value) in keys.iter().filter_map(|key| key.value.as_ref()).enumerate() {
        query.push(if index == 0 { "" } else { ", " });
        push_value(query, value);
    }
    query.push("))");
}

/// Later by the first key, or equal by it and later by the rest.
fn push_alternatives(query: &mut QueryBuilder<Postgres>, keys: &[SortKey]) {
    let Some((key, rest)) = keys.split_first() else {
        query.push("false");
        return;
    };
    query.push("(");
    push_later(query, key);
    query.push(" OR (");
    push_equal(query, key);
    query.push(" AND ");
    push_alternatives(query, rest);
    query.push("))");
}

/// Rows without a value come last in ascending order, and first in descending order, as the server sorts them.
fn push_later(query: &mut QueryBuilder<Postgres>, key: &SortKey) {
    let column = column(key.field);
    let is_ascending = key.direction == Direction::Ascending;
    match &key.value {
        None if is_ascending => {
            query.push("false");
        }
        None => {
            query.push(column).push(" IS NOT NULL");
        }
        Some(value) => {
            query.push("(").push(column).push(operator(key.direction));
            push_value(query, value);
            if is_ascending && key.field.is_optional() {
                query.push(" OR ").push(column).push(" IS NULL");
            }
            query.push(")");
        }
    }
}

fn push_equal(query: &mut QueryBuilder<Postgres>, key: &SortKey) {
    query.push(column(key.field));
    match &key.value {
        None => {
            query.push(" IS NULL");
        }
        Some(value) => {
            query.push(" = ");
            push_value(query, value);
        }
    }
}

fn operator(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => " > ",
        Direction::Descending => " < ",
    }
}

fn push_value(query: &mut QueryBuilder<Postgres>, value: &KeyValue) {
    match value {
        KeyValue::Text(text) => query.push_bind(text.clone()),
        KeyValue::Number(number) => query.push_bind(*number),
        KeyValue::Time(at) => query.push_bind(*at),
        KeyValue::Id(id) => query.push_bind(ResourceId::as_uuid(*id)),
    };
}
