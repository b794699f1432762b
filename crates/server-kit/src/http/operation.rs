//! A row of a route table: one operation, mounted and described in the same place.

use actix_web::Route;

use crate::openapi::Described;

/// An operation of a path. `P` is the permission that its caller needs.
#[derive(Debug)]
pub struct Operation<P> {
    pub method: &'static str,
    /// `None` for operations without authentication.
    pub permission: Option<P>,
    pub handler: fn() -> Route,
    pub describe: Described,
}

impl<P: Copy> Operation<P> {
    /// The handler, behind admission if it needs a permission.
    pub fn route(&self, admit: impl FnOnce(Route, P) -> Route) -> Route {
        let route = (self.handler)();
        match self.permission {
            None => route,
            Some(permission) => admit(route, permission),
        }
    }
}
