//! Builds OpenAPI documents from tables: rows of operations, complete documents, conversion of schemas from 3.1 to 3.0,
//! and YAML for version control.

mod convert;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use crate::program::print;
use crate::settings::OpenapiFormat;

/// The order of the parts of a document.
#[rustfmt::skip]
const ORDER: [&str; 7] = ["openapi", "info", "servers", "security", "tags", "paths", "components"];

/// An error status: number, name of its response in the document, meaning.
pub type RefusedStatus = (u16, &'static str, &'static str);

/// A body: media type, schema, and example, both by names that [`Vocabulary::content`] resolves.
pub type Content = (&'static str, &'static str, &'static str);

/// What the document says about an operation, beside its route. Texts may have placeholders in braces, which
/// [`Vocabulary::fill`] replaces.
#[derive(Debug, Clone, Copy)]
pub struct Described {
    pub id: &'static str,
    pub tag: &'static str,
    pub summary: &'static str,
    /// Omitted if empty.
    pub text: &'static str,
    /// Names of parameters.
    pub parameters: &'static [&'static str],
    /// The formats of its body.
    pub body: &'static [Content],
    /// Whether a request may come without the body.
    pub is_body_optional: bool,
    /// Responses that are not problems.
    pub answers: &'static [DescribedResponse],
    /// Statuses of its problems.
    pub problems: &'static [u16],
}

impl Described {
    /// The default of the members that an operation need not have.
    pub const NOTHING: Self = Self {
        id: "",
        tag: "",
        summary: "",
        text: "",
        parameters: &[],
        body: &[],
        is_body_optional: false,
        answers: &[],
        problems: &[],
    };
}

/// A response: status, meaning, formats of its body, names of its headers.
pub type DescribedResponse = (
    &'static str,
    &'static str,
    &'static [Content],
    &'static [&'static str],
);

/// What the names and placeholders in rows stand for.
pub trait Vocabulary {
    /// Replaces the placeholders of a text.
    fn fill(&self, text: &str) -> String {
        text.to_owned()
    }
    /// The parameters that a name stands for.
    fn parameters(&self, name: &str) -> Vec<Value>;
    /// Schema and example of a body.
    fn content(&self, schema: &str, example: &str) -> Value;
    /// The table of problems.
    fn refusals(&self) -> &[RefusedStatus];

    /// The operation of a row, with these problems in addition to the row's problems.
    fn operation(&self, row: &Described, problems: &[u16], needs_token: bool) -> Value {
        let parameters = row.parameters.iter().flat_map(|name| self.parameters(name));
        let answers = row.answers.iter().map(|(status, text, content, headers)| {
            let headers = headers
                .iter()
                .map(|name| (*name, reference("headers", name)));
            let headers: BTreeMap<_, _> = headers.collect();
            let mut answer = json!({"description": text});
            insert(&mut answer, "headers", json!(headers));
            insert(&mut answer, "content", contents(self, content));
            ((*status).to_owned(), answer)
        });
        let refusals = self.refusals().iter();
        let problems = refusals
            .filter(|(status, _, _)| problems.contains(status) || row.problems.contains(status))
            .map(|(status, name, _)| (status.to_string(), reference("responses", name)));
        let mut operation = json!({
            "operationId": self.fill(row.id),
            "tags": [self.fill(row.tag)],
            "summary": self.fill(row.summary),
            "responses": answers.chain(problems).collect::<Map<_, _>>(),
        });
        insert(&mut operation, "description", json!(row.text));
        insert(&mut operation, "parameters", parameters.collect());
        if !row.body.is_empty() {
            let is_required = !row.is_body_optional;
            operation["requestBody"] =
                json!({"required": is_required, "content": contents(self, row.body)});
        }
        if !needs_token {
            operation["security"] = json!([]);
        }
        operation
    }
}

fn contents(words: &(impl Vocabulary + ?Sized), all: &[Content]) -> Value {
    let all = all.iter();
    all.map(|(media, schema, example)| (*media, words.content(schema, example)))
        .collect()
}

/// Adds a member unless it is empty.
fn insert(to: &mut Value, name: &str, member: Value) {
    let is_empty = member.as_str().is_some_and(str::is_empty)
        || member.as_array().is_some_and(Vec::is_empty)
        || member.as_object().is_some_and(Map::is_empty);
    if !is_empty {
        to[name] = member;
    }
}

/// Refers to a component.
pub fn reference(section: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{section}/{name}")})
}

/// A body of JSON.
pub const fn json_content(schema: &'static str, example: &'static str) -> Content {
    ("application/json", schema, example)
}

/// A parameter, which is required if it is in the path.
pub fn parameter(place: &str, name: &str, text: &str, schema: Value, example: Value) -> Value {
    let mut parameter = json!({
        "in": place, "name": name, "description": text, "required": place == "path",
    });
    parameter["schema"] = schema;
    if !example.is_null() {
        parameter["example"] = example;
    }
    parameter
}

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

/// Assembles a document in OpenAPI 3.0, whose schemas may be in 3.1. Operations require bearer tokens unless they say
/// otherwise.
pub fn assemble(
    about: &DocumentInfo<'_>,
    paths: Map<String, Value>,
    mut components: Value,
) -> Value {
    if let Some(Value::Object(schemas)) = components.get_mut("schemas") {
        convert::to_3_0(schemas);
    }
    components["securitySchemes"] = json!({"BearerAuth": {
        "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
        "description": "Where the service is set to check tokens.",
    }});
    let tags = about.tags.iter();
    let tags = tags.map(|(name, text)| json!({"name": name, "description": text}));
    let servers = about.servers.iter().map(|url| json!({"url": url}));
    let mut document = json!({
        "openapi": "3.0.3",
        "info": {
            "title": about.title, "version": about.version, "description": about.description,
            "contact": {"name": "The HyperFleet authors"},
            "license": {"name": "Apache 2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "servers": servers.collect::<Value>(),
        "security": [{}, {"BearerAuth": []}],
    });
    document["paths"] = paths.into();
    document["components"] = components;
    insert(&mut document, "tags", tags.collect());
    document
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
