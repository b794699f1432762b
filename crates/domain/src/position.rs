//! The position in a sorted list where a page ended, and the next one begins (keyset pagination).
//!
//! To find a page by its number, the database reads all rows before it. To find it by the keys of the previous row, an
//! index suffices, and the page does not shift when rows are added or removed elsewhere.

use chrono::{DateTime, Datelike as _, Utc};
use uuid::Uuid;

use super::order::{Direction, Order, OrderField};
use super::{ResourceId, StoredResource};

/// The keys of a row in some order. Has a value for each key of the order, tie-breaker included, so that no two rows
/// have the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPosition(Vec<SortKey>);

/// One key of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    pub field: OrderField,
    /// Rows without a value come last in ascending order, and first in descending order.
    pub direction: Direction,
    /// `None` if the row has no value.
    pub value: Option<KeyValue>,
}

/// A value that rows are sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyValue {
    /// A text, without the NUL character.
    Text(String),
    Number(i32),
    /// In whole microseconds.
    Time(DateTime<Utc>),
    Id(ResourceId),
}

impl RowPosition {
    /// The position of `resource` in `order`.
    pub fn of(order: &Order, resource: &StoredResource) -> Self {
        let keys = order.keys().map(|(field, direction)| SortKey {
            field,
            direction,
            value: value_of(field, resource),
        });
        Self(keys.collect())
    }

    /// The position of a resource that was created at `created_at`, newest first.
    pub fn newest_first(created_at: DateTime<Utc>, id: ResourceId) -> Self {
        let values = [KeyValue::Time(created_at), KeyValue::Id(id)];
        let order = Order::newest_first();
        let keys = order.keys().zip(values);
        let keys = keys.map(|((field, direction), value)| SortKey {
            field,
            direction,
            value: Some(value),
        });
        Self(keys.collect())
    }

    /// The keys, most significant first.
    pub fn keys(&self) -> &[SortKey] {
        &self.0
    }

    /// The values as texts, for [`RowPosition::parse`] with the same order.
    pub fn texts(&self) -> Vec<Option<String>> {
        let values = self.0.iter().map(|key| key.value.as_ref());
        values.map(|value| value.map(KeyValue::text)).collect()
    }

    /// Reads the values of every key of `order`. `None` if no row can have them.
    pub fn parse(order: &Order, texts: &[Option<String>]) -> Option<Self> {
        let mut texts = texts.iter();
        let mut keys = Vec::new();
        for (field, direction) in order.keys() {
            let value = match texts.next()? {
                Some(text) => Some(KeyValue::parse(field, text)?),
                None if field.is_optional() => None,
                None => return None,
            };
            keys.push(SortKey {
                field,
                direction,
                value,
            });
        }
        texts.next().is_none().then_some(Self(keys))
    }
}

impl KeyValue {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Time(at) => at.timestamp_micros().to_string(),
            Self::Id(id) => id.to_string(),
        }
    }

    fn parse(field: OrderField, text: &str) -> Option<Self> {
        match field {
            OrderField::Id | OrderField::OwnerId => {
                let id = Uuid::try_parse(text).ok()?;
                Some(Self::Id(id.into()))
            }
            OrderField::Generation => text.parse().ok().map(Self::Number),
            OrderField::CreatedTime | OrderField::UpdatedTime | OrderField::DeletedTime => {
                let at = DateTime::from_timestamp_micros(text.parse().ok()?)?;
                // Stored times have years of four digits; not all others can be compared.
                (0..=9999).contains(&at.year()).then_some(Self::Time(at))
            }
            OrderField::Name
            | OrderField::Kind
            | OrderField::CreatedBy
            | OrderField::UpdatedBy
            | OrderField::DeletedBy => (!text.contains('\0')).then(|| Self::Text(text.to_owned())),
        }
    }
}

fn value_of(field: OrderField, resource: &StoredResource) -> Option<KeyValue> {
    let text = |text: &str| Some(KeyValue::Text(text.to_owned()));
    match field {
        OrderField::Id => Some(KeyValue::Id(resource.id)),
        OrderField::OwnerId => resource.owner.map(KeyValue::Id),
        OrderField::Name => text(&resource.name),
        OrderField::Kind => text(&resource.kind),
        OrderField::Generation => Some(KeyValue::Number(resource.generation)),
        OrderField::CreatedTime => Some(KeyValue::Time(resource.created_at)),
        OrderField::CreatedBy => text(&resource.created_by),
        OrderField::UpdatedTime => Some(KeyValue::Time(resource.updated_at)),
        OrderField::UpdatedBy => text(&resource.updated_by),
        OrderField::DeletedTime => resource.deletion.as_ref().map(|d| KeyValue::Time(d.at)),
        OrderField::DeletedBy => resource.deletion.as_ref().and_then(|d| text(&d.by)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Deletion, JsonText};

    const EVERY_FIELD: &str = "name,kind desc,generation,created_time desc,created_by,\
        updated_time,updated_by,deleted_time,deleted_by desc,owner_id,id";

    fn order(text: &str) -> Order {
        Order::parse(text.split(','), Direction::Ascending).unwrap()
    }

    fn resource(deletion: Option<Deletion>, owner: Option<ResourceId>) -> StoredResource {
        let at = DateTime::from_timestamp_micros(1_767_261_600_000_001).unwrap();
        StoredResource {
            id: Uuid::from_u128(1).into(),
            kind: "Cluster".to_owned(),
            name: "a".to_owned(),
            owner,
            generation: 3,
            revision: 1,
            created_at: at,
            created_by: "é\"\\".to_owned(),
            updated_at: at,
            updated_by: String::new(),
            deletion,
            references: BTreeMap::new(),
            spec: JsonText::of(&()),
            labels: JsonText::of(&()),
            tenancy: [].into(),
            conditions: JsonText::of(&()),
        }
    }

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let at = DateTime::from_timestamp_micros(-1).unwrap();
        let by = "x".to_owned();
        let finalizing = resource(Some(Deletion { at, by }), Some(Uuid::max().into()));
        for resource in [resource(None, None), finalizing] {
            let order = order(EVERY_FIELD);
            let position = RowPosition::of(&order, &resource);
            let texts = position.texts();
            assert_eq!(RowPosition::parse(&order, &texts), Some(position.clone()));
            let keys: Vec<_> = position
                .keys()
                .iter()
                .map(|k| (k.field, k.direction))
                .collect();
            assert_eq!(keys, order.keys().collect::<Vec<_>>());
            let is_there: Vec<_> = position.keys().iter().map(|k| k.value.is_some()).collect();
            let deleted = resource.deletion.is_some();
            let expected = [true; 7].into_iter().chain([deleted; 3]).chain([true]);
            assert_eq!(is_there, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_no_row_can_have_is_no_position() {
        let text = |text: &str| Some(text.to_owned());
        let id = || text("00000000-0000-0000-0000-000000000001");
        for (fields, texts) in [
            ("name", vec![]),
            ("name", vec![text("a")]),
            ("name", vec![text("a"), id(), id()]),
            ("name", vec![None, id()]),
            ("name", vec![text("a\0"), id()]),
            ("name", vec![text("a"), text("1")]),
            ("name", vec![text("a"), None]),
            ("generation", vec![text("2147483648"), id()]),
            ("created_time", vec![text("2026-01-01T10:00:00Z"), id()]),
            ("created_time", vec![text("9223372036854775807"), id()]),
            ("created_time", vec![text("253402300800000000"), id()]),
            ("created_time", vec![text("-62167219200000001"), id()]),
            ("deleted_time", vec![text(""), id()]),
            ("owner_id", vec![text("x"), id()]),
        ] {
            assert_eq!(
                RowPosition::parse(&order(fields), &texts),
                None,
                "{fields} {texts:?}"
            );
        }
        let nobody = [None, id()];
        assert!(RowPosition::parse(&order("deleted_by"), &nobody).is_some());
        assert!(RowPosition::parse(&order("owner_id"), &nobody).is_some());
    }
}
