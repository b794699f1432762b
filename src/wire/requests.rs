//! Bodies of requests.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Datelike as _, Duration, Utc};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::json::{BodyFault, Members, Shape, body, decode, document, elements, members};
use crate::domain::moment;
use crate::domain::reference::{RequestedReference, RequestedReferences};
use crate::domain::{
    ConditionStatus, Constraint, Entity, EntityRegistry, Labels, Metadata, Report, ReportState,
    ReportedCondition, RequestedPatch, RequestedResource, ResourceName, Violation, Violations,
    shown,
};

/// Longest reason of a force-delete, in characters.
pub(super) const REASON_CHARACTERS_MAX: usize = 1024;

/// Which kinds a body may be of.
#[derive(Debug, Clone, Copy)]
pub enum Kinds<'a> {
    /// The one that the path names.
    One(&'a Entity),
    /// Any that there is.
    Any(&'a EntityRegistry),
}

/// Reads the body of a create: a resource, and the kind it is of. Unknown members are ignored.
pub fn resource<'a>(
    bytes: &[u8],
    kinds: Kinds<'a>,
) -> Result<(&'a Entity, RequestedResource), BodyFault> {
    let mut body = body(bytes)?;
    let faults = &mut Violations::default();
    let kind = body.value::<String>("kind", Shape::Text, faults);
    let entity = entity(kind.as_deref(), kinds, faults);
    let name = body.take("name", faults);
    let name = name.map_or(Some(String::new()), |raw| {
        decode(raw, "name", Shape::Text, faults)
    });
    let name = name.and_then(|name| checked_name(name, entity, faults));
    let spec = spec(&mut body, faults);
    if spec.is_none() && !has_fault(faults, "spec") {
        faults.push(required("spec", "spec is required"));
    }
    check_spec(entity, spec.as_ref(), faults);
    let labels = labels(&mut body, faults);
    let references = references(&mut body, faults);
    match (entity, name, spec) {
        (Some(entity), Some(name), Some(spec)) if faults.is_empty() => Ok((
            entity,
            RequestedResource {
                name,
                spec,
                labels: labels.unwrap_or_default(),
                references: references.unwrap_or_default(),
            },
        )),
        _ => Err(BodyFault::Invalid(std::mem::take(faults))),
    }
}

fn entity<'a>(kind: Option<&str>, kinds: Kinds<'a>, faults: &mut Violations) -> Option<&'a Entity> {
    let expected = match kinds {
        Kinds::One(entity) => Some(entity),
        Kinds::Any(registry) => kind.and_then(|kind| registry.get(kind)),
    };
    if has_fault(faults, "kind") {
        return expected;
    }
    let message = match (kind.unwrap_or_default(), expected) {
        (kind, Some(entity)) if kind == entity.kind => return expected,
        ("", _) => {
            return fault_of_kind(
                faults,
                Constraint::Required,
                "kind is required".to_owned(),
                expected,
            );
        }
        (_, Some(entity)) => format!("kind must be '{}'", entity.kind),
        (kind, None) => format!("Unknown entity kind: {}", shown(kind)),
    };
    fault_of_kind(faults, Constraint::Enum, message, expected)
}

fn fault_of_kind<'a>(
    faults: &mut Violations,
    constraint: Constraint,
    message: String,
    expected: Option<&'a Entity>,
) -> Option<&'a Entity> {
    faults.push(Violation::new("kind", constraint, message));
    expected
}

/// Checks a name against its kind; against all names where the kind is not known.
fn checked_name(
    name: String,
    entity: Option<&Entity>,
    faults: &mut Violations,
) -> Option<ResourceName> {
    let (min, max) = entity.map_or((0, ResourceName::BYTES_MAX), |e| {
        (e.name_bytes_min, e.name_bytes_max)
    });
    match ResourceName::parse(name, min, max) {
        Ok(name) => Some(name),
        Err(violation) => {
            faults.push(violation);
            None
        }
    }
}

/// A `spec` that is there must be an object: `null` is no way to leave it out.
fn spec(body: &mut Members<'_>, faults: &mut Violations) -> Option<Map<String, Value>> {
    let is_null = body.is_null("spec");
    let raw = body.take("spec", faults);
    let is_object = raw.is_some_and(|raw| raw.get().starts_with('{'));
    if is_null || (raw.is_some() && !is_object) {
        let message = "spec field must be an object";
        faults.push(Violation::new("spec", Constraint::Format, message));
        return None;
    }
    document(raw?, "spec", faults)
}

/// Checks a spec against its kind, if both are there: what is no object has its fault already.
fn check_spec(entity: Option<&Entity>, spec: Option<&Map<String, Value>>, faults: &mut Violations) {
    if let Some((entity, spec)) = entity.zip(spec) {
        entity.check_spec(spec, faults);
    }
}

fn labels(body: &mut Members<'_>, faults: &mut Violations) -> Option<Labels> {
    let members = body.object("labels", faults)?;
    let mut pairs = BTreeMap::new();
    let mut is_whole = true;
    for (key, raw) in members.into_entries() {
        // As in every map of the older service, nothing is an empty value.
        let value = if is_null(raw) {
            Some(String::new())
        } else {
            decode::<String>(raw, "labels", Shape::Text, faults)
        };
        is_whole &= value.is_some();
        pairs.insert(key.into_owned(), value.unwrap_or_default());
    }
    match Labels::parse(pairs) {
        Ok(labels) => is_whole.then_some(labels),
        Err(violations) => {
            faults.extend(violations);
            None
        }
    }
}

fn references(body: &mut Members<'_>, faults: &mut Violations) -> Option<RequestedReferences> {
    let members = body.object("references", faults)?;
    let mut references = RequestedReferences::new();
    let mut is_whole = true;
    for (ref_type, raw) in members.into_entries() {
        let elements = if is_null(raw) {
            Some(Vec::new())
        } else {
            elements(raw, "references", faults)
        };
        is_whole &= elements.is_some();
        let mut targets = Vec::new();
        for (index, raw) in elements.unwrap_or_default().into_iter().enumerate() {
            let path = format!("references.{}[{index}]", shown(&ref_type));
            let target = target(raw, &path, faults);
            is_whole &= target.is_some();
            targets.extend(target);
        }
        references.insert(ref_type.into_owned(), targets);
    }
    is_whole.then_some(references)
}

fn target(raw: &RawValue, path: &str, faults: &mut Violations) -> Option<RequestedReference> {
    let mut members = members(raw, path, faults)?;
    Some(RequestedReference {
        id: members.value("id", Shape::Text, faults).unwrap_or_default(),
        kind: members
            .value("kind", Shape::Text, faults)
            .unwrap_or_default(),
    })
}

/// Reads the body of a patch. Unknown members are faults: a misspelt one would change nothing.
///
/// The spec is checked against `entity`; where the path does not say which kind it is about, that is
/// left to whoever finds the resource.
pub fn patch(bytes: &[u8], entity: Option<&Entity>) -> Result<RequestedPatch, BodyFault> {
    let mut body = body(bytes)?;
    let mut faults = Violations::default();
    let spec = spec(&mut body, &mut faults);
    check_spec(entity, spec.as_ref(), &mut faults);
    let patch = RequestedPatch {
        spec,
        labels: labels(&mut body, &mut faults),
        references: references(&mut body, &mut faults),
    };
    if let Some(unknown) = body.unknown() {
        let unknown = shown(unknown);
        let text = format!("Invalid request format: json: unknown field \"{unknown}\"");
        return Err(BodyFault::Malformed(text));
    }
    if !faults.is_empty() {
        return Err(BodyFault::Invalid(faults));
    }
    if patch.spec.is_none() && patch.labels.is_none() && patch.references.is_none() {
        return Err(BodyFault::NothingToUpdate);
    }
    Ok(patch)
}

/// Reads the body of a force-delete: its reason.
pub fn force_delete(bytes: &[u8]) -> Result<String, BodyFault> {
    let mut body = body(bytes)?;
    let mut faults = Violations::default();
    let reason = body
        .value::<String>("reason", Shape::Text, &mut faults)
        .unwrap_or_default();
    if reason.is_empty() && faults.is_empty() {
        faults.push(required("reason", "reason is required"));
    } else if reason.chars().count() > REASON_CHARACTERS_MAX {
        let message = format!("reason must be at most {REASON_CHARACTERS_MAX} characters");
        faults.push(Violation::new("reason", Constraint::MaxLength, message));
    }
    if faults.is_empty() {
        Ok(reason)
    } else {
        Err(BodyFault::Invalid(faults))
    }
}

/// Reads the body of a report that arrives at `now`. Unknown members are ignored.
pub fn report(bytes: &[u8], now: DateTime<Utc>) -> Result<Report, BodyFault> {
    let mut body = body(bytes)?;
    let faults = &mut Violations::default();
    let adapter = adapter(&mut body, faults);
    let observed_generation = body.value::<i32>("observed_generation", Shape::Number, faults);
    if observed_generation.unwrap_or(0) < 1 && !has_fault(faults, "observed_generation") {
        let message = "observed_generation must be >= 1";
        faults.push(Violation::new(
            "observed_generation",
            Constraint::Min,
            message,
        ));
    }
    let conditions = conditions(&mut body, faults);
    let observed_at = time(&mut body, "observed_time", faults)?;
    // Go's zero time means that none was given.
    let observed_at = observed_at.filter(|at| *at != zero_time()).unwrap_or(now);
    check_age(observed_at, now, faults);
    let data = body.take("data", faults);
    let data = data.and_then(|raw| document(raw, "data", faults));
    let metadata = metadata(&mut body, faults)?;
    if !faults.is_empty() {
        return Err(BodyFault::Invalid(std::mem::take(faults)));
    }
    let mut state = ReportState {
        adapter,
        observed_generation: observed_generation.unwrap_or(0),
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

fn adapter(body: &mut Members<'_>, faults: &mut Violations) -> String {
    let adapter = body
        .value::<String>("adapter", Shape::Text, faults)
        .unwrap_or_default();
    if adapter.is_empty() && !has_fault(faults, "adapter") {
        faults.push(required("adapter", "adapter is required"));
    } else if adapter.len() > Report::ADAPTER_BYTES_MAX {
        let message = format!(
            "adapter must be at most {} bytes",
            Report::ADAPTER_BYTES_MAX
        );
        faults.push(Violation::new("adapter", Constraint::MaxLength, message));
    }
    adapter
}

fn conditions(body: &mut Members<'_>, faults: &mut Violations) -> Vec<ReportedCondition> {
    let elements = body.array("conditions", faults).unwrap_or_default();
    if elements.len() > Report::CONDITIONS_MAX {
        let message = format!(
            "conditions must have at most {} entries",
            Report::CONDITIONS_MAX
        );
        faults.push(Violation::new("conditions", Constraint::Max, message));
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut conditions = Vec::with_capacity(elements.len());
    for (index, raw) in elements.into_iter().enumerate() {
        if let Some(condition) = condition(raw, index, faults) {
            if !seen.insert(condition.kind.clone()) {
                let kind = shown(&condition.kind);
                let message = format!("duplicate condition type '{kind}' at index {index}");
                let field = format!("conditions[{index}].type");
                faults.push(Violation::new(field, Constraint::Unique, message));
            }
            conditions.push(condition);
        }
    }
    let texts = conditions
        .iter()
        .flat_map(|c| [Some(&c.kind), c.reason.as_ref(), c.message.as_ref()]);
    let bytes: usize = texts.flatten().map(String::len).sum();
    if bytes > Report::TEXTS_BYTES_MAX {
        let message = format!(
            "conditions must have at most {} bytes of text",
            Report::TEXTS_BYTES_MAX
        );
        faults.push(Violation::new("conditions", Constraint::MaxLength, message));
    }
    conditions
}

fn check_length(path: &str, text: Option<&String>, max: usize, faults: &mut Violations) {
    if text.is_some_and(|text| text.len() > max) {
        let name = path.rsplit('.').next().unwrap_or(path);
        let message = format!("{name} must be at most {max} bytes");
        faults.push(Violation::new(path, Constraint::MaxLength, message));
    }
}

fn condition(raw: &RawValue, index: usize, faults: &mut Violations) -> Option<ReportedCondition> {
    let path = format!("conditions[{index}]");
    let mut members = members(raw, &path, faults)?;
    let known = faults.as_slice().len();
    let kind = members
        .value::<String>("type", Shape::Text, faults)
        .unwrap_or_default();
    let status = members
        .value::<String>("status", Shape::Text, faults)
        .unwrap_or_default();
    let reason = members.value("reason", Shape::Text, faults);
    let message = members.value("message", Shape::Text, faults);
    check_length(
        &format!("{path}.type"),
        Some(&kind),
        Report::TYPE_BYTES_MAX,
        faults,
    );
    check_length(
        &format!("{path}.reason"),
        reason.as_ref(),
        Report::REASON_BYTES_MAX,
        faults,
    );
    check_length(
        &format!("{path}.message"),
        message.as_ref(),
        Report::MESSAGE_BYTES_MAX,
        faults,
    );
    if faults.as_slice().len() > known {
        return None;
    }
    if kind.is_empty() {
        let message = format!("condition type cannot be empty at index {index}");
        faults.push(required(&format!("{path}.type"), &message));
        return None;
    }
    let Some(status) = ConditionStatus::parse(&status) else {
        let (shown_status, shown_kind) = (shown(&status), shown(&kind));
        let message = format!(
            "invalid status value '{shown_status}' for condition at index {index} (type: {shown_kind}): must be 'True', 'False', or 'Unknown'"
        );
        faults.push(Violation::new(
            format!("{path}.status"),
            Constraint::Enum,
            message,
        ));
        return None;
    };
    Some(ReportedCondition {
        // Known once the time of the report is.
        last_transition_at: DateTime::UNIX_EPOCH,
        message,
        reason,
        status,
        kind,
    })
}

fn check_age(observed_at: DateTime<Utc>, now: DateTime<Utc>, faults: &mut Violations) {
    let (ahead, age) = (Report::AHEAD_MINUTES_MAX, Report::AGE_MINUTES_MAX);
    let fault = if observed_at - now > Duration::minutes(ahead) {
        (
            Constraint::Max,
            format!("observed_time must not be more than {ahead}m0s in the future"),
        )
    } else if now - observed_at > Duration::minutes(age) {
        (
            Constraint::Min,
            format!("observed_time must not be more than {age}m0s in the past"),
        )
    } else {
        return;
    };
    faults.push(Violation::new("observed_time", fault.0, fault.1));
}

/// What is known of the job; members that nobody knows are dropped.
fn metadata(
    body: &mut Members<'_>,
    faults: &mut Violations,
) -> Result<Option<Metadata>, BodyFault> {
    let Some(mut members) = body.object("metadata", faults) else {
        return Ok(None);
    };
    let metadata = Metadata {
        attempt: members.value("attempt", Shape::Number, faults),
        completed_at: time(&mut members, "completed_time", faults)?,
        duration: members.value("duration", Shape::Text, faults),
        job_name: members.value("job_name", Shape::Text, faults),
        job_namespace: members.value("job_namespace", Shape::Text, faults),
        started_at: time(&mut members, "started_time", faults)?,
    };
    for (name, text) in [
        ("duration", &metadata.duration),
        ("job_name", &metadata.job_name),
        ("job_namespace", &metadata.job_namespace),
    ] {
        check_length(
            &members.path_of(name),
            text.as_ref(),
            Report::METADATA_BYTES_MAX,
            faults,
        );
    }
    Ok(Some(metadata))
}

/// A time with its zone (RFC 3339), in whole microseconds.
fn time(
    members: &mut Members<'_>,
    name: &str,
    faults: &mut Violations,
) -> Result<Option<DateTime<Utc>>, BodyFault> {
    let Some(text) = members.value::<String>(name, Shape::Text, faults) else {
        return Ok(None);
    };
    // A zone may carry it over the ends of what can be written.
    let parsed = moment::parse(&text).filter(|at| (0..=9999).contains(&at.year()));
    parsed.map(Some).ok_or_else(|| {
        BodyFault::Malformed(format!(
            "Invalid request format: parsing time '{}' of field '{}': expected RFC 3339 with a zone, such as 2026-01-01T10:00:00Z",
            shown(&text),
            members.path_of(name),
        ))
    })
}

fn zero_time() -> DateTime<Utc> {
    DateTime::from_timestamp(-62_135_596_800, 0).unwrap_or_default()
}

fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

fn required(field: &str, message: &str) -> Violation {
    Violation::new(field, Constraint::Required, message)
}

fn has_fault(faults: &Violations, field: &str) -> bool {
    faults.as_slice().iter().any(|f| f.field == field)
}
