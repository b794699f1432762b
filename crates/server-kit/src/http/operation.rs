//! A row of a table of routes: one operation, mounted and described from the same place.

use actix_web::Route;
use utoipa::openapi::path::{OperationBuilder, PathItemBuilder};
use utoipa::openapi::security::SecurityRequirement;

use crate::openapi::method;

/// What can be done at a path. `P` is what its caller needs; `D` makes its part of the `OpenAPI` document.
#[derive(Debug)]
pub struct Operation<P, D> {
    /// The HTTP method.
    pub method: &'static str,
    /// The permission that its caller needs; `None` if anybody may call it.
    pub permission: Option<P>,
    /// The handler.
    pub handler: fn() -> Route,
    /// Describes it.
    pub describe: D,
}

impl<P: Copy, D> Operation<P, D> {
    /// The handler, behind admission if it needs a permission.
    pub fn route(&self, admit: impl FnOnce(Route, P) -> Route) -> Route {
        let route = (self.handler)();
        match self.permission {
            None => route,
            Some(permission) => admit(route, permission),
        }
    }

    /// Adds it to its path in the document.
    pub fn describe_in(
        &self,
        item: PathItemBuilder,
        describe: impl FnOnce(&D) -> OperationBuilder,
    ) -> PathItemBuilder {
        let mut described = describe(&self.describe);
        if self.permission.is_none() {
            described = described.securities(Some(Vec::<SecurityRequirement>::new()));
        }
        item.operation(method(self.method), described)
    }
}
