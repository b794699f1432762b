//! Names of schemas for members of answers that the domain serializes. The types are empty: utoipa refers to a schema
//! by a type, and `schemas::written` has the schemas themselves.

use utoipa::ToSchema;

#[derive(ToSchema)]
pub(super) struct AdapterCondition;

#[derive(ToSchema)]
pub(super) struct AuditAction;

#[derive(ToSchema)]
pub(super) struct ExplanationAdapterState;

#[derive(ToSchema)]
pub(super) struct ExplanationRuleState;

#[derive(ToSchema)]
pub(super) struct ResourceCondition;

#[derive(ToSchema)]
pub(super) struct ResourceConditionStatus;

#[derive(ToSchema)]
pub(super) struct EventType;

#[derive(ToSchema)]
pub(super) struct Resource;
