//! Bodies of fleet's API as schemas, for its OpenAPI document. Those of answers are derived from what is sent; those
//! of requests, which are read by hand, stand here.

use utoipa::ToSchema;
use utoipa::openapi::{Components, ComponentsBuilder, RefOr, Schema};

use super::views::State;
use super::{
    DEADLINE_SECONDS_MAX, DrainView, ErrorBody, ExplanationView, MOVES_MAX, MachinePage, MoveView,
    OptionView, RebalanceView, StatePage, UnitPage,
};

/// What a unit is to be. Other members are passed over; names of members have no case, and `null` is as good as
/// nothing.
#[derive(ToSchema)]
#[expect(dead_code, reason = "what it describes is read by hand, in `unit`")]
struct UnitRequest {
    /// What is wanted. Left out when a unit is created: `inactive`.
    #[schema(rename = "desiredState", nullable = true)]
    desired_state: Option<State>,
    /// The unit's name again; the same as in the path, if it is there.
    #[schema(nullable = true, max_length = 256, example = "web.service")]
    name: Option<String>,
    /// The unit's file. Left out or empty: it stays as it is.
    #[schema(nullable = true, max_items = 1000)]
    options: Option<Vec<OptionView>>,
}

/// One change of the metadata of one machine.
#[derive(ToSchema)]
#[expect(dead_code, reason = "what it describes is read by hand, in `metadata`")]
struct MetadataChange {
    /// What is done; `add` and `replace` are the same.
    op: Change,
    /// Of which machine, and what.
    #[schema(
        pattern = "^/([^/]+)/metadata/([A-Za-z0-9_.-]+)$",
        example = "/2b0d5b1e3c6f4a7f9d7e1a2b3c4d5e6f/metadata/region"
    )]
    path: String,
    /// To what; not for `remove`.
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
    /// The value itself.
    #[schema(min_length = 1, example = "eu")]
    value: String,
}

/// How long a machine is drained.
#[derive(ToSchema)]
#[expect(dead_code, reason = "what it describes is read by hand, in `drain`")]
struct DrainRequest {
    /// After that many seconds the units that are left stay. Left out: no deadline.
    #[schema(
        rename = "deadlineSeconds",
        nullable = true,
        minimum = 1,
        maximum = 2_592_000,
        example = 600
    )]
    deadline_seconds: Option<u32>,
}

/// Moves that are asked for.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "what it describes is read by hand, in `rebalance`"
)]
struct MovesRequest {
    /// Of each unit one; as the plan has them.
    #[schema(nullable = true, max_items = 100)]
    moves: Option<Vec<MoveView>>,
}

const _: () = assert!(MOVES_MAX == 100, "the schema says so");
const _: () = assert!(DEADLINE_SECONDS_MAX == 2_592_000, "the schema says so");

/// Every schema, by its name in the document.
pub fn components() -> Components {
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
    ComponentsBuilder::new().schemas_from_iter(schemas).build()
}

/// A schema, and all that it is made of.
fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}
