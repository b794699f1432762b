//! Schemas of objects.

use utoipa::openapi::RefOr;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{AdditionalProperties, Object, Schema, Type};

/// The schema of an object, which that of a struct always is.
pub(super) fn object(schema: RefOr<Schema>) -> Object {
    match schema {
        RefOr::T(Schema::Object(object)) => object,
        _ => Object::new(),
    }
}

/// The spec of a kind that accepts any object.
pub(super) fn any_spec(kind: &str) -> Object {
    let mut schema = Object::with_type(Type::Object);
    schema.description = Some(format!("What is wanted of a `{kind}`: any object."));
    schema.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(true)));
    // oapi-codegen would otherwise make a type of its own, which existing Go code does not know.
    let go = ExtensionsBuilder::new().add("x-go-type", "map[string]interface{}");
    schema.extensions = Some(go.build());
    schema
}
