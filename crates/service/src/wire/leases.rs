//! Leases: the body of a request for one, and the view of one.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::json::{BodyError, ViolationSink, body};
use hyperfleet_domain::lease::{HeldLease, LeaseClaim, LeaseDuration, LeaseHolder};
use hyperfleet_domain::{Constraint, Violations, moment};

/// A lease.
#[derive(Serialize, ToSchema)]
#[schema(as = Lease, description = "A lease: which copy of a program is active, and until when.")]
pub(super) struct LeaseView<'a> {
    /// Since when the holder has held the lease without interruption.
    #[serde(serialize_with = "moment::serialize")]
    acquired_time: DateTime<Utc>,
    /// Duration after each renewal.
    #[schema(value_type = i32, minimum = 1, maximum = 3600)]
    duration_seconds: i64,
    /// When another holder can acquire the lease, unless it is renewed.
    #[serde(serialize_with = "moment::serialize")]
    expires_time: DateTime<Utc>,
    /// The active copy.
    #[schema(example = "dns-adapter-7c9f-1")]
    holder: &'a str,
    #[schema(example = "Lease")]
    kind: &'static str,
    #[schema(example = "dns-adapter")]
    name: &'a str,
    /// When the holder last renewed it.
    #[serde(serialize_with = "moment::serialize")]
    renewed_time: DateTime<Utc>,
}

/// The view of a lease.
pub fn lease(lease: &HeldLease) -> impl Serialize + '_ {
    LeaseView {
        acquired_time: lease.acquired_at,
        duration_seconds: lease.duration().num_seconds(),
        expires_time: lease.expires_at,
        holder: &lease.holder,
        kind: "Lease",
        name: &lease.name,
        renewed_time: lease.renewed_at,
    }
}

/// Reads the body of a request for a lease. Unknown members are ignored.
pub fn lease_claim(bytes: &[u8]) -> Result<LeaseClaim, BodyError> {
    let violations = &ViolationSink::default();
    let mut body = body(bytes, violations)?;
    let holder = body.text("holder").unwrap_or_default();
    let holder = LeaseHolder::parse(holder);
    let holder = holder.map_err(|violation| {
        if !violations.has("holder") {
            violations.extend([violation]);
        }
    });
    let seconds = body.integer("duration_seconds");
    if seconds.is_none() && !violations.has("duration_seconds") {
        let message = "duration_seconds is required";
        violations.add("duration_seconds", Constraint::Required, message);
    }
    let duration = seconds.map(LeaseDuration::parse).transpose();
    let duration = duration.map_err(|violation| violations.extend([violation]));
    violations.check()?;
    match (holder, duration) {
        (Ok(holder), Ok(Some(duration))) => Ok(LeaseClaim { holder, duration }),
        // A missing member has its violation already.
        _ => Err(BodyError::Invalid(Violations::default())),
    }
}
