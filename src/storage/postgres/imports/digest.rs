//! One digest per resource, which each database computes from its own rows. Both statements hash the same values in the
//! same order. They share no code with the import, so they also find its defects.
//!
//! Both sessions are in UTC, so that a time is the same text in both. Times that the source stores as text may have
//! nanoseconds; the statement cuts these to microseconds.

use std::collections::HashMap;

use sqlx::postgres::PgConnection;
use uuid::Uuid;

use crate::domain::ResourceId;
use crate::storage::postgres::error::Doing as _;
use crate::storage::postgres::measure::SqlOperation::Bulk;
use crate::storage::postgres::measure::SqlTable::Resources;
use crate::storage::postgres::{Db, Error, uuids};

/// The digest of each resource that was found.
pub type Digests = HashMap<ResourceId, String>;

/// Refused parts of the source's resources, which digests leave out.
#[derive(Debug, Default)]
pub struct LeftOut {
    reports: HashMap<ResourceId, Vec<String>>,
    references: HashMap<ResourceId, Vec<String>>,
}

impl LeftOut {
    pub fn push_report(&mut self, id: ResourceId, adapter: &str) {
        let keys = self.reports.entry(id).or_default();
        keys.push(format!("{id} {adapter}"));
    }

    pub fn push_reference(&mut self, id: ResourceId, ref_type: &str, target: &str) {
        let keys = self.references.entry(id).or_default();
        keys.push(format!("{id} {ref_type} {target}"));
    }

    /// Takes the parts of these resources.
    pub fn take(&mut self, ids: &[ResourceId]) -> Self {
        let take =
            |keys: &mut HashMap<_, _>| ids.iter().filter_map(|id| keys.remove_entry(id)).collect();
        Self {
            reports: take(&mut self.reports),
            references: take(&mut self.references),
        }
    }
}

/// A time in a member of JSON.
macro_rules! time {
    (source, $json:literal, $member:literal) => {
        concat!(
            "CASE WHEN length(",
            $json,
            " ->> '",
            $member,
            "') > 27 THEN regexp_replace(",
            $json,
            " ->> '",
            $member,
            "', '([.][0-9]{6})[0-9]+', '\\1') ELSE ",
            $json,
            " ->> '",
            $member,
            "' END::timestamptz"
        )
    };
    (target, $json:literal, $member:literal) => {
        concat!("(", $json, " ->> '", $member, "')::timestamptz")
    };
}

/// The conditions, the data and the metadata of a report `s`, which have the same form in both databases.
macro_rules! report_documents {
    ($side:ident) => {
        concat!(
            "(SELECT jsonb_agg(jsonb_build_array(c ->> 'type', c ->> 'status', c ->> 'reason', c ->> 'message', ",
            time!($side, "c", "last_transition_time"),
            ") ORDER BY place) FROM jsonb_array_elements(s.conditions) WITH ORDINALITY o (c, place)), \
             coalesce(s.data, '{}'), \
             CASE WHEN s.metadata IS NOT NULL THEN jsonb_build_array(\
             s.metadata -> 'attempt', s.metadata ->> 'duration', s.metadata ->> 'job_name', \
             s.metadata ->> 'job_namespace', ",
            time!($side, "s.metadata", "completed_time"), ", ", time!($side, "s.metadata", "started_time"), ") END"
        )
    };
}

const OF_SOURCE: &str = concat!(
    "SELECT r.id::uuid, md5(jsonb_build_array(
        r.kind, r.name, r.owner_id, r.generation, r.created_time, r.updated_time, r.deleted_time,
        r.created_by, r.updated_by, CASE WHEN r.deleted_time IS NOT NULL THEN coalesce(r.deleted_by, $2) END,
        r.tenancy, r.spec,
        (SELECT coalesce(jsonb_object_agg(l.key, l.value), '{}') FROM resource_labels l WHERE l.resource_id = r.id),
        (SELECT coalesce(jsonb_object_agg(c.type, jsonb_build_array(
             c.status, c.reason, c.message, coalesce(c.observed_generation, 0), c.created_time,
             c.last_updated_time, c.last_transition_time)), '{}')
         FROM resource_conditions c WHERE c.resource_id = r.id),
        (SELECT coalesce(jsonb_agg(jsonb_build_array(f.ref_type, f.target_kind, f.target_id)
                                   ORDER BY f.ref_type COLLATE \"C\", f.target_id COLLATE \"C\"), '[]')
         FROM resource_references f WHERE f.source_id = r.id
           AND f.source_id || ' ' || f.ref_type || ' ' || f.target_id <> ALL($4)),
        (SELECT coalesce(jsonb_object_agg(s.adapter, jsonb_build_array(
             s.observed_generation, coalesce(s.created_time, s.last_report_time), s.last_report_time, ",
    report_documents!(source),
    ")), '{}') FROM adapter_statuses s WHERE s.resource_type = r.kind AND s.resource_id = r.id
           AND s.resource_id || ' ' || s.adapter <> ALL($3))
     )::text) FROM resources r WHERE r.id = ANY($1)"
);

/// Excludes resources that were changed here since.
const OF_TARGET: &str = concat!(
    "SELECT r.id, md5(jsonb_build_array(
        r.kind, r.name, r.owner_id, r.generation, r.created_at, r.updated_at, r.deleted_at,
        r.created_by, r.updated_by, r.deleted_by, r.tenancy, r.spec, r.labels,
        (SELECT coalesce(jsonb_object_agg(c ->> 'type', jsonb_build_array(
             c ->> 'status', c ->> 'reason', c ->> 'message', c -> 'observed_generation', ",
    time!(target, "c", "created_time"),
    ", ",
    time!(target, "c", "last_updated_time"),
    ", ",
    time!(target, "c", "last_transition_time"),
    ")), '{}') FROM jsonb_array_elements(r.conditions) c),
        (SELECT coalesce(jsonb_agg(jsonb_build_array(f.ref_type, f.target_kind, f.target_id)
                                   ORDER BY f.ref_type COLLATE \"C\", f.target_id), '[]')
         FROM resource_references f WHERE f.source_id = r.id),
        (SELECT coalesce(jsonb_object_agg(s.adapter, jsonb_build_array(
             s.observed_generation, s.created_at, s.reported_at, ",
    report_documents!(target),
    ")), '{}') FROM adapter_reports s WHERE s.resource_id = r.id)
     )::text) FROM resources r JOIN imported_resources i ON i.id = r.id AND i.revision = r.revision
     WHERE r.id = ANY($1)"
);

pub(super) async fn of_source(
    connection: &mut PgConnection,
    ids: &[String],
    left_out: LeftOut,
    deleted_by_default: &str,
) -> Result<Digests, Error> {
    let rows = sqlx::query_as::<_, (Uuid, String)>(OF_SOURCE).bind(ids);
    let rows = rows.bind(deleted_by_default);
    let keys = |parts: HashMap<_, Vec<_>>| parts.into_values().flatten().collect::<Vec<String>>();
    let rows = rows.bind(keys(left_out.reports));
    let rows = rows.bind(keys(left_out.references));
    let rows = rows.fetch_all(connection).await;
    Ok(digests(rows.doing("compute digests of the source")?))
}

impl Db<'_> {
    /// Digests of imported resources, except those that were changed or removed here since.
    pub async fn imported_digests(&mut self, ids: &[ResourceId]) -> Result<Digests, Error> {
        let rows = sqlx::query_as::<_, (Uuid, String)>(OF_TARGET);
        let rows = rows.bind(uuids(ids.iter().copied()));
        let rows = rows.fetch_all(self.connection()).await;
        Ok(digests(self.complete(
            rows,
            Bulk(Resources),
            "compute digests",
        )?))
    }
}

fn digests(rows: Vec<(Uuid, String)>) -> Digests {
    let rows = rows.into_iter();
    rows.map(|(id, digest)| (id.into(), digest)).collect()
}
