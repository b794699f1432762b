//! Members of answers that the domain serializes, by the names of their schemas (`schemas::written`).

use utoipa::ToSchema;

#[derive(ToSchema)]
pub(super) struct AdapterCondition;

#[derive(ToSchema)]
pub(super) struct AdapterMetadata;

#[derive(ToSchema)]
pub(super) struct AuditAction;

#[derive(ToSchema)]
pub(super) struct ResourceCondition;
