//! One operation on a list or a resource: what it is called, what it takes, how it is refused.

use serde_json::json;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};

use super::operations::text;
use crate::domain::Entity;
use crate::http::routes::Operation;
use crate::wire::schemas::KindNames;

/// One operation, and the list that it is about.
pub(super) struct Subject<'a> {
    /// What is done.
    pub(super) operation: Operation,
    /// The kind; none where resources of any are meant.
    pub(super) entity: Option<&'a Entity>,
    /// What it is called.
    pub(super) names: &'a KindNames,
    /// What its parent is called, where that is in the path.
    pub(super) parent: Option<&'a KindNames>,
}

impl Subject<'_> {
    /// Whether a child kind is meant without its parent in the path.
    pub(super) fn is_flat_child(&self) -> bool {
        self.parent.is_none() && self.entity.is_some_and(|e| e.parent.is_some())
    }

    fn is_new_or_listed(&self) -> bool {
        matches!(self.operation, Operation::List | Operation::Create)
    }

    /// What the id is called in the path.
    pub(super) fn id(&self) -> &str {
        &self.names.id
    }

    /// Never that of the resource itself, which kinds with alike names might share.
    pub(super) fn parent_id(&self) -> &str {
        match self.parent {
            Some(parent) if parent.id != self.names.id => &parent.id,
            _ => "parent_id",
        }
    }

    /// Names that clients call; those of the older document, and for the flat routes of child kinds,
    /// most of which it does not know, the same with `Flat`.
    pub(super) fn operation_id(&self) -> String {
        let flat = if self.is_flat_child() { "Flat" } else { "" };
        let KindNames { one, many, .. } = self.names;
        match (self.operation, self.parent) {
            (Operation::List, None) => format!("get{many}"),
            (Operation::List, Some(parent)) => format!("get{many}By{}Id", parent.one),
            (Operation::Create, None) => format!("post{flat}{one}"),
            (Operation::Create, Some(_)) => format!("create{one}"),
            (Operation::Patch, _) => format!("patch{flat}{one}ById"),
            (Operation::Delete, _) => format!("delete{flat}{one}ById"),
            (Operation::ForceDelete, _) => format!("forceDelete{flat}{one}"),
            (Operation::Reports, None) => format!("get{flat}{one}Statuses"),
            (Operation::Reports, Some(_)) => format!("get{many}Statuses"),
            (Operation::Report, _) => format!("put{flat}{one}Statuses"),
            _ => format!("get{flat}{one}ById"),
        }
    }

    /// One line, and what else there is to say.
    pub(super) fn texts(&self) -> (String, String) {
        let what = match self.entity {
            Some(entity) => format!("`{}`", entity.kind),
            None => "resource".to_owned(),
        };
        let below = match self.parent {
            Some(parent) => format!(" below a `{}`", parent.one),
            None => String::new(),
        };
        let (summary, description) = match self.operation {
            Operation::List => (format!("List each {what}{below}"), "Newest first."),
            Operation::Create if self.is_flat_child() => (
                format!("Refused: create a {what} below its parent"),
                "Answers 422 once the body is right.",
            ),
            Operation::Create => (format!("Create a {what}{below}"), ""),
            Operation::Get => (format!("Get a {what} by its id"), ""),
            Operation::Patch => (
                format!("Change a {what}"),
                "The generation rises by one if something really differs, or if `references` is sent.",
            ),
            Operation::Delete => (
                format!("Delete a {what}"),
                "It keeps answering until every required adapter has reported `Finalized=True` and \
                 nothing below it is left. Repeating it changes nothing.",
            ),
            Operation::ForceDelete => (
                format!("Remove a {what} although its adapters are not done"),
                "With everything below it. It must be being deleted already.",
            ),
            Operation::Reports => (
                format!("List the reports on a {what}"),
                "First reporter first.",
            ),
            _ => (
                format!("Report on a {what}"),
                "For adapters. The latest report of each adapter is kept.",
            ),
        };
        (summary, description.to_owned())
    }

    /// The parameters in the path.
    pub(super) fn path_parameters(&self) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        let parameter = |name: &str, what: &str| {
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .description(Some(what))
                .schema(Some(text()))
                .example(Some(json!("019b7868-8e00-7000-8000-000000000001")))
                .build()
        };
        if self.parent.is_some() {
            parameters.push(parameter(self.parent_id(), "Id of the parent."));
        }
        if !self.is_new_or_listed() {
            parameters.push(parameter(self.id(), "Id of the resource."));
        }
        parameters
    }

    /// The statuses that are no success.
    pub(super) fn refusals(&self) -> Vec<u16> {
        let has_body = matches!(
            self.operation,
            Operation::Create | Operation::Patch | Operation::ForceDelete | Operation::Report
        );
        let mut statuses = vec![401, 403, 405, 429, 500, 503];
        if self.operation != Operation::Delete {
            statuses.push(400);
        }
        if has_body {
            statuses.extend([408, 413, 415]);
        }
        if !self.is_new_or_listed() || self.parent.is_some() {
            statuses.push(404);
        }
        match self.operation {
            Operation::List => statuses.push(504),
            Operation::Create if self.is_flat_child() => statuses.push(422),
            Operation::Create => {
                statuses.push(409);
                if self.entity.is_none() {
                    statuses.push(422);
                }
            }
            Operation::Patch | Operation::Delete | Operation::ForceDelete => statuses.push(409),
            _ => {}
        }
        statuses
    }
}
