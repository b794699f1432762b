//! The OpenAPI document: made at start from the routes and the registry, as 3.0, and its page.
//!
//! ```text
//! routes::endpoints ─▶ operations ─┐
//! wire::schemas ───────────────────┼─▶ utoipa (3.1) ─▶ convert (3.0) ─▶ bytes
//! problem ─▶ problems ─────────────┘
//! ```

pub(super) mod convert;
mod operations;
mod page;
mod problems;
mod service;
mod subject;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use actix_web::http::header::EntityTag;
use actix_web::web::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApiBuilder, PathsBuilder, Server,
};

use self::operations::Describer;
use super::routes;
use crate::domain::EntityRegistry;
use crate::wire::schemas::{self, Names};

pub(super) use page::{document, file, page};

const DESCRIPTION: &str = "\
Control plane for fleets of clusters. Clients declare resources; adapters report what they achieved; \
the service aggregates the reports into conditions and runs the delete lifecycle.

One trailing slash of a path is ignored. `HEAD` works wherever `GET` does. Bodies have 1 MiB at most, \
unpacked, nest 64 levels at most, and have 20,000 arrays and objects at most. Unknown query parameters are ignored; blank ones count as absent. \
Answers are for their caller and may not be stored (`Cache-Control: no-store`), but for this document \
and what else needs no token.";

/// In which order people look for the parts of a document.
const ORDER: [&str; 7] = [
    "openapi",
    "info",
    "servers",
    "security",
    "tags",
    "paths",
    "components",
];

/// The document in the bytes that are served: made once, however often it is asked for.
#[derive(Debug, Clone)]
pub struct Document {
    plain: Bytes,
    /// The same by gzip; unset if that failed, which memory does not.
    packed: Option<Bytes>,
    /// Which document it is.
    tag: EntityTag,
}

impl Document {
    /// Writes a document, made by [`openapi`].
    #[must_use]
    pub fn new(document: &Value) -> Self {
        let plain = document.to_string();
        let digest = Sha256::digest(plain.as_bytes());
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let packed = gzip
            .write_all(plain.as_bytes())
            .and_then(|()| gzip.finish());
        Self {
            packed: packed.ok().map(Bytes::from),
            // Weak: packed or not, it is the same document.
            tag: EntityTag::new_weak(URL_SAFE_NO_PAD.encode(digest)),
            plain: Bytes::from(plain),
        }
    }
}

/// A document, made by [`openapi`], for people and version control.
///
/// Moments stand in quotes: readers of YAML 1.1 would take them for something else than text.
///
/// # Errors
///
/// None for what [`openapi`] makes.
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

/// Makes the document (OpenAPI 3.0) of a service with these kinds: every path, parameter, body,
/// header and problem. `version` is the service's.
#[must_use]
pub fn openapi(registry: &EntityRegistry, version: &str) -> Value {
    let names = Names::new(registry);
    let endpoints = routes::endpoints(registry);
    let describer = Describer::new(registry, &names);
    let mut paths = PathsBuilder::new();
    for endpoint in &endpoints {
        let (path, item) = describer.path(endpoint);
        paths = paths.path(path, item);
    }
    let mut components = ComponentsBuilder::from(schemas::components(registry, &names));
    components = problems::components(components, registry);
    components = operations::shared_parameters(components);
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .description(Some("Where the service is set to check tokens."));
    components = components.security_scheme("BearerAuth", SecurityScheme::Http(bearer.build()));
    let license = LicenseBuilder::new()
        .name("Apache 2.0")
        .url(Some("https://www.apache.org/licenses/LICENSE-2.0"));
    let info = InfoBuilder::new()
        .title("HyperFleet API")
        .version(version)
        .description(Some(DESCRIPTION))
        .license(Some(license.build()));
    let tags = describer.tags().into_iter();
    let openapi = OpenApiBuilder::new()
        .info(info)
        .servers(Some([Server::new("/")]))
        .tags(Some(tags.map(|(name, text)| {
            TagBuilder::new().name(name).description(Some(text)).build()
        })))
        .paths(paths)
        .components(Some(components.build()))
        .security(Some([
            SecurityRequirement::default(),
            SecurityRequirement::new("BearerAuth", Vec::<String>::new()),
        ]))
        .build();
    // Plain data: turning it into a value cannot fail.
    let mut document = serde_json::to_value(openapi).unwrap_or_default();
    for (name, schema) in schemas::specs(registry, &names) {
        document["components"]["schemas"][name] = json!(schema);
    }
    name_apart(&mut document);
    convert::to_3_0(document)
}

/// Counts operations that would be called alike, as `cluster-by-id`, the plural of one kind, and
/// the `Cluster` of another would have it.
fn name_apart(document: &mut Value) {
    let mut taken = BTreeSet::new();
    let items = document["paths"].as_object_mut().into_iter();
    let items = items.flat_map(|paths| paths.values_mut().filter_map(Value::as_object_mut));
    for operation in items.flat_map(|item| item.values_mut()) {
        let Some(name) = operation["operationId"].as_str() else {
            continue;
        };
        let mut apart = name.to_owned();
        let mut count = 1;
        while !taken.insert(apart.to_lowercase()) {
            count += 1;
            apart = format!("{name}{count}");
        }
        operation["operationId"] = json!(apart);
    }
}
