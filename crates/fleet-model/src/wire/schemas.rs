//! Schemas of fleet's bodies for the OpenAPI document, derived from the types that are read and sent.

use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::drain::DrainBody;
use super::metadata::ChangeBody;
use super::rebalance::MovesBody;
use super::{
    DrainView, ErrorBody, ExplanationView, MachinePage, RebalanceView, StatePage, UnitPage,
    UnitRequest,
};

/// Every schema, by its name in the document.
pub fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = Vec::new();
    add::<DrainBody>(&mut schemas);
    add::<DrainView>(&mut schemas);
    add::<ErrorBody<'_>>(&mut schemas);
    add::<ExplanationView>(&mut schemas);
    add::<MachinePage>(&mut schemas);
    add::<ChangeBody>(&mut schemas);
    add::<MovesBody>(&mut schemas);
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
