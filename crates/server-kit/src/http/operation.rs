//! A row of a route table: one operation, mounted and described in the same place.

use actix_web::Route;
use utoipa::openapi::path::{OperationBuilder, PathItemBuilder};
use utoipa::openapi::security::SecurityRequirement;

use crate::openapi::method;

/// An operation of a path. `P` is the permission that its caller needs; `D` makes its part of the `OpenAPI`
/// document.
#[derive(Debug)]
pub struct Operation<P, D> {
    pub method: &'static str,
    /// `None` for operations without authentication.
    pub permission: Option<P>,
    pub handler: fn() -> Route,
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
