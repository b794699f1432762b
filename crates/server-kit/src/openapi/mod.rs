//! Builds OpenAPI documents: parts of operations, whole documents, conversion from utoipa's 3.1 to 3.0, and
//! YAML for version control.

mod convert;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn,
};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, ContactBuilder, ContentBuilder, InfoBuilder, LicenseBuilder, OpenApiBuilder, Paths,
    Ref, RefOr, Required, ResponseBuilder, Server,
};

pub use convert::to_3_0;

use crate::program::print;
use crate::settings::OpenapiFormat;

/// The order of the parts of a document.
const ORDER: [&str; 7] = [
    "openapi",
    "info",
    "servers",
    "security",
    "tags",
    "paths",
    "components",
];

/// An error status: number, name of its response in the document, meaning.
pub type RefusedStatus = (u16, &'static str, &'static str);

/// The general part of a document.
#[derive(Debug)]
pub struct DocumentInfo<'a> {
    pub title: &'a str,
    pub version: &'a str,
    pub description: &'a str,
    /// Prefixes of its paths.
    pub servers: &'a [&'a str],
    /// Groups of operations, with descriptions.
    pub tags: Vec<(String, String)>,
}

/// Assembles a document in OpenAPI 3.1. Operations require bearer tokens unless they say otherwise.
pub fn assemble(about: DocumentInfo<'_>, paths: Paths, mut components: Components) -> Value {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .description(Some("Where the service is set to check tokens."));
    components.add_security_scheme("BearerAuth", SecurityScheme::Http(bearer.build()));
    let license = LicenseBuilder::new()
        .name("Apache 2.0")
        .url(Some("https://www.apache.org/licenses/LICENSE-2.0"));
    let contact = ContactBuilder::new().name(Some("The HyperFleet authors"));
    let info = InfoBuilder::new()
        .title(about.title)
        .version(about.version)
        .description(Some(about.description))
        .contact(Some(contact.build()))
        .license(Some(license.build()));
    let tags = about.tags.into_iter().map(|(name, text)| {
        let tag = TagBuilder::new().name(name);
        tag.description(Some(text)).build()
    });
    let tags: Vec<_> = tags.collect();
    let openapi = OpenApiBuilder::new()
        .info(info)
        .servers(Some(about.servers.iter().map(|url| Server::new(*url))))
        .tags(Some(tags).filter(|tags| !tags.is_empty()))
        .paths(paths)
        .components(Some(components))
        .security(Some([
            SecurityRequirement::default(),
            SecurityRequirement::new("BearerAuth", Vec::<String>::new()),
        ]))
        .build();
    // Plain data: serialization cannot fail.
    serde_json::to_value(openapi).unwrap_or_default()
}

/// Starts an operation. An empty description is omitted.
pub fn operation(
    id: impl Into<String>,
    tag: impl Into<String>,
    summary: impl Into<String>,
    description: &str,
) -> OperationBuilder {
    OperationBuilder::new()
        .operation_id(Some(id))
        .tag(tag)
        .summary(Some(summary))
        .description(Some(description).filter(|text| !text.is_empty()))
}

/// Adds those of `refusals` that have one of the statuses.
pub fn refuse(
    described: OperationBuilder,
    refusals: &[RefusedStatus],
    statuses: &[u16],
) -> OperationBuilder {
    let named = refusals.iter().filter(|(s, _, _)| statuses.contains(s));
    named.fold(described, |described, (status, name, _)| {
        described.response(status.to_string(), Ref::from_response_name(*name))
    })
}

pub fn method(name: &str) -> HttpMethod {
    match name {
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "PATCH" => HttpMethod::Patch,
        "DELETE" => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

/// A parameter, which is required if it is in the path.
pub fn parameter(
    place: ParameterIn,
    name: &str,
    description: &str,
    schema: impl Into<RefOr<Schema>>,
) -> ParameterBuilder {
    let is_required = match place {
        ParameterIn::Path => Required::True,
        _ => Required::False,
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(is_required)
        .description(Some(description))
        .schema(Some(schema))
}

pub fn with_parameters(
    described: OperationBuilder,
    parameters: impl IntoIterator<Item = Parameter>,
) -> OperationBuilder {
    let parameters = parameters.into_iter();
    parameters.fold(described, OperationBuilder::parameter)
}

/// A required body of JSON.
pub fn json_body(schema: impl Into<RefOr<Schema>>, example: Option<Value>) -> Option<RequestBody> {
    let content = ContentBuilder::new().schema(Some(schema)).example(example);
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    Some(body.content("application/json", content.build()).build())
}

/// A response in JSON.
pub fn json_answer(
    description: &str,
    schema: impl Into<RefOr<Schema>>,
    example: Option<Value>,
) -> ResponseBuilder {
    let content = ContentBuilder::new().schema(Some(schema)).example(example);
    empty_answer(description).content("application/json", content.build())
}

/// A response without a body.
pub fn empty_answer(description: &str) -> ResponseBuilder {
    ResponseBuilder::new().description(description)
}

/// Any value of a type.
pub fn any(kind: Type) -> Schema {
    Schema::Object(Object::with_type(kind))
}

/// Prints a document.
///
/// # Errors
/// None for documents of [`assemble`].
pub fn print_document(document: &Value, format: OpenapiFormat) -> anyhow::Result<()> {
    print(&match format {
        OpenapiFormat::Yaml => yaml(document)?,
        OpenapiFormat::Json => serde_json::to_string_pretty(document)? + "\n",
    });
    Ok(())
}

/// A document as YAML, for people and version control.
///
/// Times are quoted: YAML 1.1 would not read them as text.
///
/// # Errors
/// None for documents of [`assemble`].
pub fn yaml(document: &Value) -> Result<String, yaml_serde::Error> {
    let mut members: Vec<_> = document.as_object().into_iter().flatten().collect();
    members.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name));
    let mut text = String::new();
    for (name, member) in members {
        let part = yaml_serde::to_string(&BTreeMap::from([(name, member)]))?;
        for line in part.lines() {
            let (key, value) = line.rsplit_once(": ").unwrap_or((line, ""));
            if value.parse::<DateTime<Utc>>().is_ok() {
                text += &[key, ": '", value, "'\n"].concat();
            } else {
                text += &[line, "\n"].concat();
            }
        }
    }
    Ok(text)
}
