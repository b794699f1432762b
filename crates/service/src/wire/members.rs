//! Names of schemas for members of answers that the domain serializes. The types are empty: utoipa refers to a schema
//! by a type, and `schemas::all` has the schemas themselves.

use utoipa::ToSchema;

macro_rules! names {
    ($($name:ident)*) => { $( #[derive(ToSchema)] pub(crate) struct $name; )* };
}

names! {
    AdapterCondition AuditAction EventType ExplanationAdapterState ExplanationRuleState Resource ResourceCondition
    ResourceConditionStatus Tombstone
}
