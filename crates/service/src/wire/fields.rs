//! Sparse answers: `fields=name,status.conditions.type`. How they are written is in [`super::views`].

use std::collections::{BTreeMap, BTreeSet};

use strum::{EnumIter, EnumString, IntoEnumIterator as _, IntoStaticStr};

use hyperfleet_domain::excerpt;

/// A member of a resource, in the order of the names.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumIter, EnumString, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Member {
    CreatedBy,
    CreatedTime,
    DeletedBy,
    DeletedTime,
    Generation,
    Href,
    Id,
    Kind,
    Labels,
    Name,
    OwnerReferences,
    References,
    Spec,
    Status,
    Tenancy,
    UpdatedBy,
    UpdatedTime,
}

/// Members of an owner reference.
const OF_OWNER: [&str; 3] = ["href", "id", "kind"];
const OF_CONDITION: [&str; 8] = [
    "created_time",
    "last_transition_time",
    "last_updated_time",
    "message",
    "observed_generation",
    "reason",
    "status",
    "type",
];

/// Names that no resource, or no condition, has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The following field(s) doesn't exist in `{of}`: {}", names.join(", "))]
pub struct UnknownFields {
    of: &'static str,
    names: Vec<String>,
}

/// The selected members of a resource: always the id, and the members that the client names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(BTreeMap<Member, Parts>);

/// Members of the owner reference, or of each condition. Other members of a resource have no parts.
pub(super) type Parts = BTreeSet<&'static str>;

impl Member {
    pub(super) fn name(self) -> &'static str {
        self.into()
    }

    /// Whether clients select it by its name, without parts.
    fn has_no_parts(self) -> bool {
        !matches!(self, Self::OwnerReferences | Self::Status)
    }
}

impl Fields {
    /// Every name that can be asked for.
    pub(super) fn names() -> impl Iterator<Item = String> {
        let parts = |of: &'static str, names: &'static [&str]| {
            let all = names.iter().chain(&["*"]);
            all.map(move |name| format!("{of}.{name}"))
        };
        let names = Member::iter().filter(|member| member.has_no_parts());
        let others = ["owner_references", "status.conditions", "status.*"];
        let names = names.map(Member::name).chain(others);
        names
            .map(ToOwned::to_owned)
            .chain(parts("owner_references", &OF_OWNER))
            .chain(parts("status.conditions", &OF_CONDITION))
    }

    /// Reads the names. `None` of no names: every member is selected.
    ///
    /// # Errors
    ///
    /// Every name that a resource does not have, in their order; or else every one that a condition does not have.
    pub(super) fn parse<'a>(
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Self>, UnknownFields> {
        let mut fields = Self::default();
        let (mut of_resource, mut of_condition) = (Vec::new(), Vec::new());
        let mut is_empty = true;
        for name in names {
            is_empty = false;
            if fields.add(name) {
                continue;
            }
            match name.strip_prefix("status.conditions.") {
                Some(_) => of_condition.push(excerpt(name)),
                None => of_resource.push(excerpt(name)),
            }
        }
        let unknown = |of, names: Vec<String>| Err(UnknownFields { of, names });
        if !of_resource.is_empty() {
            return unknown("Resource", of_resource);
        }
        if !of_condition.is_empty() {
            return unknown("ResourceCondition", of_condition);
        }
        fields.0.insert(Member::Id, Parts::new());
        Ok((!is_empty).then_some(fields))
    }

    /// Adds what a name stands for; false if it stands for nothing.
    fn add(&mut self, name: &str) -> bool {
        let name = match name {
            "status.*" | "status.conditions" => "status.conditions.*",
            "owner_references" => "owner_references.*",
            name => name,
        };
        let (member, known, part) = match name.rsplit_once('.') {
            Some(("status.conditions", part)) => (Member::Status, &OF_CONDITION[..], part),
            Some(("owner_references", part)) => (Member::OwnerReferences, &OF_OWNER[..], part),
            _ => {
                let member = name.parse().ok().filter(|m: &Member| m.has_no_parts());
                self.0.extend(member.map(|member| (member, Parts::new())));
                return member.is_some();
            }
        };
        let mut parts = known
            .iter()
            .filter(|k| part == "*" || part == **k)
            .peekable();
        let is_known = parts.peek().is_some();
        if is_known {
            self.0.entry(member).or_default().extend(parts);
        }
        is_known
    }

    /// The members, with the parts of those that member parts.
    pub(super) fn members(&self) -> impl Iterator<Item = (Member, &Parts)> {
        self.0.iter().map(|(member, parts)| (*member, parts))
    }

    /// Whether the spec is one of them.
    pub fn has_spec(&self) -> bool {
        self.0.contains_key(&Member::Spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(names: &str) -> Result<Option<Fields>, UnknownFields> {
        Fields::parse(names.split(',').filter(|name| !name.is_empty()))
    }

    #[test]
    fn no_names_stand_for_everything() {
        assert_eq!(fields(""), Ok(None));
    }

    #[test]
    fn every_listed_name_can_be_selected() {
        let names: Vec<_> = Fields::names().collect();
        assert!(names.len() > 30, "{names:?}");
        for name in names {
            assert!(fields(&name).unwrap().is_some(), "{name}");
        }
    }

    #[test]
    fn what_nobody_has_is_named() {
        for (names, message) in [
            (
                "nmae,id,x.y",
                "The following field(s) doesn't exist in `Resource`: nmae, x.y",
            ),
            (
                "status",
                "The following field(s) doesn't exist in `Resource`: status",
            ),
            (
                "labels.a,spec.b",
                "The following field(s) doesn't exist in `Resource`: labels.a, spec.b",
            ),
            (
                "status.conditions.nope",
                "The following field(s) doesn't exist in `ResourceCondition`: status.conditions.nope",
            ),
            (
                "status.conditions.nope,nope",
                "The following field(s) doesn't exist in `Resource`: nope",
            ),
            (
                "owner_references.name",
                "The following field(s) doesn't exist in `Resource`: owner_references.name",
            ),
        ] {
            assert_eq!(fields(names).unwrap_err().to_string(), message);
        }
    }
}
