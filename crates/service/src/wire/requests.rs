//! Reads the bodies of requests.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Datelike as _, Duration, Utc};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::json::{BodyError, Members, ViolationSink, body, is_null};
use hyperfleet_domain::moment;
use hyperfleet_domain::reference::{RequestedReference, RequestedReferences};
use hyperfleet_domain::{
    Constraint, Entity, EntityRegistry, Labels, Metadata, Report, ReportState, ReportedCondition,
    RequestedResource, ResourceName, Violations, excerpt,
};

/// Longest reason of a force-delete, in characters.
pub(super) const REASON_CHARACTERS_MAX: usize = 1024;

/// Go's zero time, which means an absent time, in microseconds since 1970.
const ZERO_TIME: i64 = -62_135_596_800_000_000;

/// The kinds that a body may have.
#[derive(Debug, Clone, Copy)]
pub enum Kinds<'a> {
    /// The one that the path names.
    One(&'a Entity),
    Any(&'a EntityRegistry),
}

/// Reads the body of a create: a resource and its kind. Unknown members are ignored.
pub fn resource<'k>(
    bytes: &[u8],
    kinds: Kinds<'k>,
) -> Result<(&'k Entity, RequestedResource), BodyError> {
    let violations = &ViolationSink::default();
    let mut body = body(bytes, violations)?;
    let kind = body.text("kind");
    let entity = entity(kind.as_deref(), kinds, violations);
    let name = match body.take("name") {
        None => Some(String::new()),
        Some(raw) => violations.text(raw, "name"),
    };
    let name = name.and_then(|name| checked_name(name, entity, violations));
    let spec = spec(&mut body);
    if spec.is_none() && !violations.has("spec") {
        violations.add("spec", Constraint::Required, "spec is required");
    }
    check_spec(entity, spec.as_ref(), violations);
    let labels = labels(&mut body);
    let references = references(&mut body);
    violations.check()?;
    match (entity, name, spec) {
        (Some(entity), Some(name), Some(spec)) => Ok((
            entity,
            RequestedResource {
                name,
                spec,
                labels: labels.unwrap_or_default(),
                references: references.unwrap_or_default(),
            },
        )),
        // A missing member has its violation already.
        _ => Err(BodyError::Invalid(Violations::default())),
    }
}

/// The kind that a body names, even in an invalid body.
pub fn kind_of(bytes: &[u8]) -> Option<String> {
    let violations = &ViolationSink::default();
    let kind = body(bytes, violations).ok()?.text("kind");
    kind.filter(|_| !violations.has("kind"))
}

fn entity<'k>(
    kind: Option<&str>,
    kinds: Kinds<'k>,
    violations: &ViolationSink,
) -> Option<&'k Entity> {
    let expected = match kinds {
        Kinds::One(entity) => Some(entity),
        Kinds::Any(registry) => kind.and_then(|kind| registry.get(kind)),
    };
    let kind = kind.unwrap_or_default();
    if violations.has("kind") || expected.is_some_and(|entity| entity.kind == kind) {
        return expected;
    }
    let (constraint, message) = match expected {
        _ if kind.is_empty() => (Constraint::Required, "kind is required".to_owned()),
        Some(entity) => (Constraint::Enum, format!("kind must be '{}'", entity.kind)),
        None => {
            let message = format!("Unknown entity kind: {}", excerpt(kind));
            (Constraint::Enum, message)
        }
    };
    violations.add("kind", constraint, message);
    expected
}

/// Checks a name against its kind; against all names if the kind is unknown.
fn checked_name(
    name: String,
    entity: Option<&Entity>,
    violations: &ViolationSink,
) -> Option<ResourceName> {
    let (min, max) = entity.map_or((0, ResourceName::BYTES_MAX), |e| {
        (e.name_bytes_min, e.name_bytes_max)
    });
    let name = ResourceName::parse(name, min, max);
    name.map_err(|violation| violations.extend([violation]))
        .ok()
}

/// A `spec` that is present must be an object, not `null`.
pub(super) fn spec(body: &mut Members<'_>) -> Option<Map<String, Value>> {
    let is_null = body.is_null("spec");
    let raw = body.take("spec");
    let is_object = raw.is_some_and(|raw| raw.get().starts_with('{'));
    if is_null || (raw.is_some() && !is_object) {
        let message = "spec field must be an object";
        body.violations.add("spec", Constraint::Format, message);
        return None;
    }
    body.violations.document(raw?, "spec")
}

/// Checks a spec against its kind, if both are valid so far.
pub(super) fn check_spec(
    entity: Option<&Entity>,
    spec: Option<&Map<String, Value>>,
    violations: &ViolationSink,
) {
    if let Some((entity, spec)) = entity.zip(spec) {
        let mut found = Violations::default();
        entity.check_spec(spec, &mut found);
        violations.extend(found.into_vec());
    }
}

pub(super) fn labels(body: &mut Members<'_>) -> Option<Labels> {
    let violations = body.violations;
    let members = body.object("labels")?;
    let mut pairs = BTreeMap::new();
    let mut is_complete = true;
    for (key, raw) in members.into_entries() {
        // The older service stores an empty value.
        let value = if is_null(raw) {
            violations.extend([Labels::null(&key)]);
            None
        } else {
            violations.text(raw, "labels")
        };
        is_complete &= value.is_some();
        pairs.insert(key.into_owned(), value.unwrap_or_default());
    }
    let labels = Labels::parse(pairs);
    let labels = labels.map_err(|found| violations.extend(found)).ok();
    labels.filter(|_| is_complete)
}

pub(super) fn references(body: &mut Members<'_>) -> Option<RequestedReferences> {
    let violations = body.violations;
    let members = body.object("references")?;
    let mut references = RequestedReferences::new();
    let mut is_complete = true;
    for (ref_type, raw) in members.into_entries() {
        let elements = if is_null(raw) {
            Some(Vec::new())
        } else {
            violations.elements(raw, "references")
        };
        is_complete &= elements.is_some();
        let mut targets = Vec::new();
        for (index, raw) in elements.unwrap_or_default().into_iter().enumerate() {
            let path = format!("references.{}[{index}]", excerpt(&ref_type));
            let target = target(raw, &path, violations);
            is_complete &= target.is_some();
            targets.extend(target);
        }
        references.insert(ref_type.into_owned(), targets);
    }
    is_complete.then_some(references)
}

fn target(raw: &RawValue, path: &str, violations: &ViolationSink) -> Option<RequestedReference> {
    let mut members = violations.members(raw, path)?;
    Some(RequestedReference {
        id: members.text("id").unwrap_or_default(),
        kind: members.text("kind").unwrap_or_default(),
    })
}

/// Reads the body of a force-delete: its reason.
pub fn force_delete(bytes: &[u8]) -> Result<String, BodyError> {
    let violations = &ViolationSink::default();
    let mut body = body(bytes, violations)?;
    let reason = body.text("reason").unwrap_or_default();
    if reason.is_empty() && violations.count() == 0 {
        violations.add("reason", Constraint::Required, "reason is required");
    } else if reason.chars().count() > REASON_CHARACTERS_MAX {
        let message = format!("reason must be at most {REASON_CHARACTERS_MAX} characters");
        violations.add("reason", Constraint::MaxLength, message);
    }
    violations.check()?;
    Ok(reason)
}

/// Reads the body of a report that arrives at `now`. Unknown members are ignored.
pub fn report(bytes: &[u8], now: DateTime<Utc>) -> Result<Report, BodyError> {
    let violations = &ViolationSink::default();
    let mut body = body(bytes, violations)?;
    let adapter = adapter(&mut body);
    let observed_generation = body.integer("observed_generation").unwrap_or(0);
    if observed_generation < 1 && !violations.has("observed_generation") {
        let message = "observed_generation must be >= 1";
        violations.add("observed_generation", Constraint::Min, message);
    }
    let conditions = conditions(&mut body);
    let observed_at = time(&mut body, "observed_time")?;
    let observed_at = observed_at.filter(|at| at.timestamp_micros() != ZERO_TIME);
    let observed_at = observed_at.unwrap_or(now);
    check_age(observed_at, now, violations);
    let data = body.take("data");
    let data = data.and_then(|raw| violations.document(raw, "data"));
    let metadata = metadata(&mut body)?;
    violations.check()?;
    let mut state = ReportState {
        adapter,
        observed_generation,
        created_at: observed_at,
        reported_at: observed_at,
        conditions,
    };
    state.follow(None);
    Ok(Report {
        state,
        data: data.unwrap_or_default(),
        metadata,
    })
}

fn adapter(body: &mut Members<'_>) -> String {
    const MAX: usize = Report::ADAPTER_BYTES_MAX;
    let adapter = body.text("adapter").unwrap_or_default();
    if adapter.trim().is_empty() && !body.violations.has("adapter") {
        let message = "adapter is required";
        body.violations
            .add("adapter", Constraint::Required, message);
    }
    check_length("adapter", Some(&adapter), MAX, body.violations);
    adapter
}

fn conditions(body: &mut Members<'_>) -> Vec<ReportedCondition> {
    const COUNT_MAX: usize = Report::CONDITIONS_MAX;
    const BYTES_MAX: usize = Report::TEXTS_BYTES_MAX;
    let violations = body.violations;
    let elements = body.take("conditions");
    let elements = elements.and_then(|raw| violations.elements(raw, "conditions"));
    let elements = elements.unwrap_or_default();
    if elements.len() > COUNT_MAX {
        let message = format!("conditions must have at most {COUNT_MAX} entries");
        violations.add("conditions", Constraint::Max, message);
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut conditions = Vec::with_capacity(elements.len());
    for (index, raw) in elements.into_iter().enumerate() {
        if let Some(condition) = condition(raw, index, violations) {
            if !seen.insert(condition.kind.clone()) {
                let kind = excerpt(&condition.kind);
                let message = format!("duplicate condition type '{kind}' at index {index}");
                let field = format!("conditions[{index}].type");
                violations.add(field, Constraint::Unique, message);
            }
            conditions.push(condition);
        }
    }
    let texts = conditions
        .iter()
        .flat_map(|c| [Some(&c.kind), c.reason.as_ref(), c.message.as_ref()]);
    let bytes: usize = texts.flatten().map(String::len).sum();
    if bytes > BYTES_MAX {
        let message = format!("conditions must have at most {BYTES_MAX} bytes of text");
        violations.add("conditions", Constraint::MaxLength, message);
    }
    conditions
}

fn check_length(path: &str, text: Option<&String>, max: usize, violations: &ViolationSink) {
    if text.is_some_and(|text| text.len() > max) {
        let name = path.rsplit('.').next().unwrap_or(path);
        let message = format!("{name} must be at most {max} bytes");
        violations.add(path, Constraint::MaxLength, message);
    }
}

fn condition(
    raw: &RawValue,
    index: usize,
    violations: &ViolationSink,
) -> Option<ReportedCondition> {
    let path = format!("conditions[{index}]");
    let mut members = violations.members(raw, &path)?;
    let known = violations.count();
    let kind = members.text("type").unwrap_or_default();
    let status = members.text("status").unwrap_or_default();
    let reason = members.text("reason");
    let message = members.text("message");
    for (name, text, max) in [
        ("type", Some(&kind), Report::TYPE_BYTES_MAX),
        ("reason", reason.as_ref(), Report::REASON_BYTES_MAX),
        ("message", message.as_ref(), Report::MESSAGE_BYTES_MAX),
    ] {
        check_length(&members.path_of(name), text, max, violations);
    }
    if violations.count() > known {
        return None;
    }
    if kind.is_empty() {
        let message = format!("condition type cannot be empty at index {index}");
        violations.add(members.path_of("type"), Constraint::Required, message);
        return None;
    }
    let Ok(status) = status.parse() else {
        let (status, kind) = (excerpt(&status), excerpt(&kind));
        let message = format!(
            "invalid status value '{status}' for condition at index {index} (type: {kind}): must be 'True', 'False', or 'Unknown'"
        );
        violations.add(members.path_of("status"), Constraint::Enum, message);
        return None;
    };
    Some(ReportedCondition {
        // Set once the time of the report is known.
        last_transition_at: DateTime::UNIX_EPOCH,
        message,
        reason,
        status,
        kind,
    })
}

fn check_age(observed_at: DateTime<Utc>, now: DateTime<Utc>, violations: &ViolationSink) {
    let (ahead, age) = (Report::AHEAD_MINUTES_MAX, Report::AGE_MINUTES_MAX);
    if observed_at - now > Duration::minutes(ahead) {
        let message = format!("observed_time must not be more than {ahead}m0s in the future");
        violations.add("observed_time", Constraint::Max, message);
    } else if now - observed_at > Duration::minutes(age) {
        let message = format!("observed_time must not be more than {age}m0s in the past");
        violations.add("observed_time", Constraint::Min, message);
    }
}

/// Reads the metadata of the job; unknown members are dropped.
fn metadata(body: &mut Members<'_>) -> Result<Option<Metadata>, BodyError> {
    let Some(mut members) = body.object("metadata") else {
        return Ok(None);
    };
    let metadata = Metadata {
        attempt: members.integer("attempt"),
        completed_at: time(&mut members, "completed_time")?,
        duration: members.text("duration"),
        job_name: members.text("job_name"),
        job_namespace: members.text("job_namespace"),
        started_at: time(&mut members, "started_time")?,
    };
    for (name, text) in [
        ("duration", &metadata.duration),
        ("job_name", &metadata.job_name),
        ("job_namespace", &metadata.job_namespace),
    ] {
        let (path, max) = (members.path_of(name), Report::METADATA_BYTES_MAX);
        check_length(&path, text.as_ref(), max, members.violations);
    }
    Ok(Some(metadata))
}

/// A time with its zone (RFC 3339), in whole microseconds.
fn time(members: &mut Members<'_>, name: &str) -> Result<Option<DateTime<Utc>>, BodyError> {
    let Some(text) = members.text(name) else {
        return Ok(None);
    };
    // The zone may carry it beyond the years that can be written.
    let parsed = moment::parse(&text).filter(|at| (0..=9999).contains(&at.year()));
    parsed.map(Some).ok_or_else(|| {
        BodyError::Malformed(format!(
            "Invalid request format: parsing time '{}' of field '{}': expected RFC 3339 with a zone, such as 2026-01-01T10:00:00Z",
            excerpt(&text),
            members.path_of(name),
        ))
    })
}
