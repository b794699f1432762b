//! Schemas of fleet's bodies for the OpenAPI document. Those of responses are derived from the sent types.
//! Requests are read by hand, so theirs are defined here.

use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::views::State;
use super::{
    DEADLINE_SECONDS_MAX, DrainView, ErrorBody, ExplanationView, MOVES_MAX, MachinePage, MoveView,
    OptionView, RebalanceView, StatePage, UnitPage,
};

/// The desired state and file of a unit. Unknown members are ignored, names of members are case-insensitive,
/// and `null` counts as absent.
#[derive(ToSchema)]
#[expect(dead_code, reason = "what it describes is read by hand, in `unit`")]
struct UnitRequest {
    /// Desired state. Default for a new unit: `inactive`.
    #[schema(rename = "desiredState", nullable = true)]
    desired_state: Option<State>,
    /// The unit's name; if present, the same as in the path.
    #[schema(nullable = true, max_length = 256, example = "web.service")]
    name: Option<String>,
    /// The unit's file. Absent or empty: it stays unchanged.
    #[schema(nullable = true, max_items = 1000)]
    options: Option<Vec<OptionView>>,
}

/// One change of the metadata of one machine.
#[derive(ToSchema)]
#[expect(dead_code, reason = "what it describes is read by hand, in `metadata`")]
struct MetadataChange {
    /// The operation; `add` and `replace` mean the same.
    op: Change,
    /// Machine and key.
    #[schema(
        pattern = "^/([^/]+)/metadata/([A-Za-z0-9_.-]+)$",
        example = "/2b0d5b1e3c6f4a7f9d7e1a2b3c4d5e6f/metadata/region"
    )]
    path: String,
    /// The new value; not for `remove`.
    #[schema(nullable = true)]
    value: Option<MetadataValue>,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "names of values")]
enum Change {
    Add,
    Remove,
    Replace,
}

/// A value of metadata.
#[derive(ToSchema)]
#[expect(dead_code, reason = "what it describes is read by hand, in `metadata`")]
struct MetadataValue {
    /// The value.
    #[schema(min_length = 1, example = "eu")]
    value: String,
}

/// How long to drain a machine.
#[derive(ToSchema)]
#[expect(dead_code, reason = "what it describes is read by hand, in `drain`")]
struct DrainRequest {
    /// After this many seconds the remaining units stay. Absent: no deadline.
    #[schema(
        rename = "deadlineSeconds",
        nullable = true,
        minimum = 1,
        maximum = 2_592_000,
        example = 600
    )]
    deadline_seconds: Option<u32>,
}

/// Moves to carry out.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "what it describes is read by hand, in `rebalance`"
)]
struct MovesRequest {
    /// At most one per unit, as in the plan.
    #[schema(nullable = true, max_items = 100)]
    moves: Option<Vec<MoveView>>,
}

const _: () = assert!(MOVES_MAX == 100, "the schema says so");
const _: () = assert!(DEADLINE_SECONDS_MAX == 2_592_000, "the schema says so");

/// Every schema, by its name in the document.
pub fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = Vec::new();
    add::<DrainRequest>(&mut schemas);
    add::<DrainView>(&mut schemas);
    add::<ErrorBody<'_>>(&mut schemas);
    add::<ExplanationView>(&mut schemas);
    add::<MachinePage>(&mut schemas);
    add::<MetadataChange>(&mut schemas);
    add::<MovesRequest>(&mut schemas);
    add::<RebalanceView>(&mut schemas);
    add::<StatePage>(&mut schemas);
    add::<UnitPage>(&mut schemas);
    add::<UnitRequest>(&mut schemas);
    schemas
}

/// A schema with those that it refers to.
fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}
