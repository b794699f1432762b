//! A row of a table of routes: one operation, mounted and described from the same place.

use actix_web::Route;
use actix_web::middleware::from_fn;
use utoipa::openapi::path::{OperationBuilder, PathItemBuilder};
use utoipa::openapi::security::SecurityRequirement;

use super::admission;
use super::request::Wish;
use crate::kit::openapi::method;

/// What can be done at a path. `D` makes its part of the OpenAPI document.
#[derive(Debug)]
pub(super) struct Operation<D> {
    /// How it is asked for.
    pub(super) method: &'static str,
    /// What a caller wants to do by it; `None` if anybody may.
    pub(super) wish: Option<Wish>,
    /// What answers it.
    pub(super) handler: fn() -> Route,
    /// Describes it.
    pub(super) describe: D,
}

impl<D> Operation<D> {
    /// The handler behind admission.
    pub(super) fn route(&self) -> Route {
        let route = (self.handler)();
        match self.wish {
            None => route,
            Some(wish) => route.wrap(from_fn(move |request, next| {
                admission::admit(wish, request, next)
            })),
        }
    }

    /// Adds it to its path in the document.
    pub(super) fn describe_in(
        &self,
        item: PathItemBuilder,
        describe: impl FnOnce(&D) -> OperationBuilder,
    ) -> PathItemBuilder {
        let mut described = describe(&self.describe);
        if self.wish.is_none() {
            described = described.securities(Some(Vec::<SecurityRequirement>::new()));
        }
        item.operation(method(self.method), described)
    }
}
