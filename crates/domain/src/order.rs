//! The order of lists. Fields are a closed set, so that no text of a request reaches SQL.

use strum::EnumString;

use super::excerpt;

/// A column that lists may be ordered by, read from the name that requests use. Closed, so that no user text reaches
/// SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum OrderField {
    /// Identity, which is also the order of creation. A resource's URL differs from others of its kind and owner by
    /// its id only.
    #[strum(serialize = "id", serialize = "href")]
    Id,
    Name,
    Kind,
    Generation,
    CreatedTime,
    CreatedBy,
    /// Time of the last change of the desired state.
    UpdatedTime,
    /// Author of that change.
    UpdatedBy,
    /// Time of the first DELETE.
    DeletedTime,
    /// Author of the first DELETE.
    DeletedBy,
    OwnerId,
}

impl OrderField {
    /// Whether there are resources without it.
    pub fn is_optional(self) -> bool {
        matches!(self, Self::DeletedTime | Self::DeletedBy | Self::OwnerId)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString)]
pub enum Direction {
    /// Small values first.
    #[strum(serialize = "asc")]
    Ascending,
    /// Large values first.
    #[strum(serialize = "desc")]
    Descending,
}

/// The keys of an order, most significant first. Ties are broken by id, in the direction of the last key, so that
/// pages neither repeat nor skip a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order(Vec<(OrderField, Direction)>);

/// Why an order was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOrder {
    /// An entry is not `field` or `field asc|desc`.
    #[error("invalid order format '{0}': expected 'field' or 'field asc|desc'")]
    Syntax(String),
    /// A direction without a field is not `asc` or `desc`.
    #[error("invalid order '{0}': with orderBy it must be 'asc' or 'desc'")]
    Direction(String),
    /// There is no such field to order by.
    #[error("invalid field in search or order query")]
    Field(String),
    #[error("order has more than {} fields", Order::KEYS_MAX)]
    TooMany,
}

impl Order {
    /// Keys of one order at most.
    pub const KEYS_MAX: usize = 16;

    /// Newest first: the default of lists.
    pub fn newest_first() -> Self {
        Self::by_creation(Direction::Descending)
    }

    pub fn by_creation(direction: Direction) -> Self {
        Self(vec![(OrderField::CreatedTime, direction)])
    }

    /// Whether it sorts only by time of creation, in either direction. An index then has the rows in order, and a page
    /// is read without the rest of the list.
    pub fn is_by_creation(&self) -> bool {
        matches!(self.0.as_slice(), [(OrderField::CreatedTime, _)])
    }

    /// Reads entries such as `name`, `created_time desc`; blank ones are skipped, and only blanks are newest first.
    /// `default` is the direction of entries without one.
    ///
    /// # Errors
    ///
    /// The syntax of all entries is checked before any field is looked up.
    pub fn parse<'a>(
        entries: impl IntoIterator<Item = &'a str>,
        default: Direction,
    ) -> Result<Self, InvalidOrder> {
        let entries = entries.into_iter().map(str::trim).filter(|e| !e.is_empty());
        let split: Vec<_> = entries
            .map(|e| split(e, default))
            .collect::<Result<_, _>>()?;
        if split.len() > Self::KEYS_MAX {
            return Err(InvalidOrder::TooMany);
        }
        let keys = split.into_iter().map(|(name, direction)| {
            let field = name.parse().map_err(|_| InvalidOrder::Field(excerpt(name)));
            Ok((field?, direction))
        });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Ok(Self::newest_first());
        }
        Ok(Self(once_each(keys)))
    }

    /// The keys, tie-breaker included.
    pub fn keys(&self) -> impl Iterator<Item = (OrderField, Direction)> {
        let last = self.0.last().map_or(Direction::Descending, |(_, d)| *d);
        let is_total = self.0.iter().any(|(field, _)| *field == OrderField::Id);
        let tie = (!is_total).then_some((OrderField::Id, last));
        self.0.iter().copied().chain(tie)
    }
}

/// Removes repeated fields, which have no effect.
fn once_each(keys: Vec<(OrderField, Direction)>) -> Vec<(OrderField, Direction)> {
    let mut unique: Vec<(OrderField, Direction)> = Vec::with_capacity(keys.len());
    for (field, direction) in keys {
        if unique.iter().all(|(other, _)| *other != field) {
            unique.push((field, direction));
        }
    }
    unique
}

fn split(entry: &str, default: Direction) -> Result<(&str, Direction), InvalidOrder> {
    let syntax = || InvalidOrder::Syntax(entry.chars().take(100).collect());
    let mut words = entry.split_ascii_whitespace();
    let (name, direction, rest) = (words.next().unwrap_or(""), words.next(), words.next());
    let is_name = name
        .bytes()
        .enumerate()
        .all(|(at, b)| b.is_ascii_lowercase() || b == b'_' || (at > 0 && b.is_ascii_digit()));
    let direction = match direction {
        None => Some(default),
        Some(word) => word.parse().ok(),
    };
    match direction {
        Some(direction) if is_name && rest.is_none() => Ok((name, direction)),
        _ => Err(syntax()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Ascending, Descending};

    fn keys(text: &str) -> Result<Vec<(OrderField, Direction)>, InvalidOrder> {
        Order::parse(text.split(','), Ascending).map(|order| order.keys().collect())
    }

    #[test]
    fn ties_are_broken_by_id_in_the_last_direction() {
        let name = OrderField::Name;
        let created = OrderField::CreatedTime;
        for (text, expected) in [
            (
                "",
                vec![(created, Descending), (OrderField::Id, Descending)],
            ),
            (
                " , ",
                vec![(created, Descending), (OrderField::Id, Descending)],
            ),
            ("name", vec![(name, Ascending), (OrderField::Id, Ascending)]),
            (
                "name  desc",
                vec![(name, Descending), (OrderField::Id, Descending)],
            ),
            ("id desc", vec![(OrderField::Id, Descending)]),
            (
                "name desc,name,id,href desc",
                vec![(name, Descending), (OrderField::Id, Ascending)],
            ),
            (
                "name desc, created_time asc",
                vec![
                    (name, Descending),
                    (created, Ascending),
                    (OrderField::Id, Ascending),
                ],
            ),
        ] {
            assert_eq!(keys(text), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn bad_orders_say_what_is_wrong() {
        for (text, message) in [
            (
                "name up",
                "invalid order format 'name up': expected 'field' or 'field asc|desc'",
            ),
            (
                "name asc desc",
                "invalid order format 'name asc desc': expected 'field' or 'field asc|desc'",
            ),
            (
                "NAME",
                "invalid order format 'NAME': expected 'field' or 'field asc|desc'",
            ),
            (
                "1a",
                "invalid order format '1a': expected 'field' or 'field asc|desc'",
            ),
            (
                "name;drop",
                "invalid order format 'name;drop': expected 'field' or 'field asc|desc'",
            ),
            (
                "name DESC",
                "invalid order format 'name DESC': expected 'field' or 'field asc|desc'",
            ),
            ("nmae", "invalid field in search or order query"),
            ("a1", "invalid field in search or order query"),
            (
                "nmae, name up",
                "invalid order format 'name up': expected 'field' or 'field asc|desc'",
            ),
        ] {
            assert_eq!(keys(text).unwrap_err().to_string(), message, "{text:?}");
        }
        let many = vec!["name"; Order::KEYS_MAX + 1].join(",");
        assert_eq!(keys(&many), Err(InvalidOrder::TooMany));
        assert!(keys(&vec!["name"; Order::KEYS_MAX].join(",")).is_ok());
    }
}
