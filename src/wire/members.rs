//! Members of answers that are written by the domain or as plain texts, as schemas.

use chrono::{DateTime, Utc};
use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::audit;

/// One fact about a resource, aggregated from reports.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "what it describes is domain::Condition, which knows no schemas"
)]
pub(super) struct ResourceCondition {
    /// When this type of condition first appeared.
    created_time: DateTime<Utc>,
    /// When `status` last changed.
    last_transition_time: DateTime<Utc>,
    /// How old the oldest evidence for it is.
    last_updated_time: DateTime<Utc>,
    /// For people.
    #[schema(nullable = false)]
    message: Option<String>,
    /// The generation that the status speaks of.
    observed_generation: i32,
    /// For programs.
    #[schema(nullable = false, example = "ReconciledAll")]
    reason: Option<String>,
    status: ResourceConditionStatus,
    /// What it is about, unique within the resource.
    #[schema(example = "Reconciled")]
    r#type: String,
}

/// Whether a condition of a resource holds.
#[derive(ToSchema)]
#[expect(dead_code, reason = "names of values")]
pub(super) enum ResourceConditionStatus {
    True,
    False,
}

/// One condition of a report, as it is kept.
#[derive(ToSchema)]
#[expect(dead_code, reason = "what it describes is domain::ReportedCondition")]
pub(super) struct AdapterCondition {
    /// Since when the adapter has been saying this status.
    last_transition_time: DateTime<Utc>,
    /// For people.
    #[schema(nullable = false)]
    message: Option<String>,
    /// For programs.
    #[schema(nullable = false)]
    reason: Option<String>,
    status: AdapterConditionStatus,
    /// `Available`, `Applied`, `Health`, `Finalized`, or another.
    #[schema(example = "Available")]
    r#type: String,
}

/// Whether a condition holds; `Unknown` where the adapter cannot say yet.
#[derive(ToSchema)]
#[expect(dead_code, reason = "names of values")]
pub(super) enum AdapterConditionStatus {
    True,
    False,
    Unknown,
}

/// About the job that an adapter ran.
#[derive(ToSchema)]
#[expect(dead_code, reason = "what it describes is domain::Metadata")]
pub(super) struct AdapterMetadata {
    /// Which attempt it was.
    #[schema(nullable = false)]
    attempt: Option<i32>,
    /// When it ended.
    #[schema(nullable = false)]
    completed_time: Option<DateTime<Utc>>,
    /// How long it took, in the adapter's own notation.
    #[schema(nullable = false)]
    duration: Option<String>,
    /// Its name.
    #[schema(nullable = false)]
    job_name: Option<String>,
    /// Where it ran.
    #[schema(nullable = false)]
    job_namespace: Option<String>,
    /// When it started.
    #[schema(nullable = false)]
    started_time: Option<DateTime<Utc>>,
}

/// What is done to a resource; `hard_delete` is its removal once all work is done.
pub(super) struct AuditAction;

impl ToSchema for AuditAction {}

impl PartialSchema for AuditAction {
    fn schema() -> RefOr<Schema> {
        let mut schema = Object::with_type(Type::String);
        schema.description = Some(
            "What is done to a resource; `hard_delete` is its removal once all work is done."
                .to_owned(),
        );
        let names = audit::Action::ALL.map(|action| json!(action.as_str()));
        schema.enum_values = Some(names.to_vec());
        Schema::Object(schema).into()
    }
}
