//! One digest per resource, which each database computes from its own rows. Both statements hash the same values in the
//! same order. They share no code with the import, so they also find its defects.
//!
//! Both sessions are in UTC, so that a time is the same text in both.

/// A time in a member of JSON. The source stores some with nanoseconds, which the statement cuts to microseconds.
macro_rules! time {
    ($json:literal, $member:literal) => {
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
}

/// The conditions, the data and the metadata of a report `s`, which have the same form in both databases.
macro_rules! report_documents {
    () => {
        concat!(
            "(SELECT jsonb_agg(jsonb_build_array(c ->> 'type', c ->> 'status', c ->> 'reason', c ->> 'message', ",
            time!("c", "last_transition_time"),
            ") ORDER BY place) FROM jsonb_array_elements(s.conditions) WITH ORDINALITY o (c, place)), \
             coalesce(s.data, '{}'), \
             CASE WHEN s.metadata IS NOT NULL THEN jsonb_build_array(\
             s.metadata -> 'attempt', s.metadata ->> 'duration', s.metadata ->> 'job_name', s.metadata ->> 'job_namespace', ",
            time!("s.metadata", "completed_time"), ", ", time!("s.metadata", "started_time"), ") END"
        )
    };
}

/// `$1`: ids. `$2`: the author of a deletion without one.
pub(super) const OF_SOURCE: &str = concat!(
    "SELECT r.id::uuid, md5(jsonb_build_array(
        r.id, r.kind, r.name, r.owner_id, r.generation, r.created_time, r.updated_time, r.deleted_time,
        r.created_by, r.updated_by, CASE WHEN r.deleted_time IS NOT NULL THEN coalesce(r.deleted_by, $2) END,
        r.tenancy, r.spec,
        (SELECT coalesce(jsonb_object_agg(l.key, l.value), '{}') FROM resource_labels l WHERE l.resource_id = r.id),
        (SELECT coalesce(jsonb_object_agg(c.type, jsonb_build_array(
             c.status, c.reason, c.message, coalesce(c.observed_generation, 0), c.created_time,
             c.last_updated_time, c.last_transition_time)), '{}')
         FROM resource_conditions c WHERE c.resource_id = r.id),
        (SELECT coalesce(jsonb_agg(jsonb_build_array(f.ref_type, f.target_kind, f.target_id)
                                   ORDER BY f.ref_type COLLATE \"C\", f.target_id COLLATE \"C\"), '[]')
         FROM resource_references f WHERE f.source_id = r.id),
        (SELECT coalesce(jsonb_object_agg(s.adapter, jsonb_build_array(
             s.observed_generation, coalesce(s.created_time, s.last_report_time), s.last_report_time, ",
    report_documents!(),
    ")), '{}') FROM adapter_statuses s WHERE s.resource_type = r.kind AND s.resource_id = r.id)
     )::text)::uuid FROM resources r WHERE r.id = ANY($1)"
);

/// `$1`: ids. `is_as_imported` is unset for a resource that was not imported, and false for one that was changed here since.
pub(super) const OF_TARGET: &str = concat!(
    "SELECT r.id, md5(jsonb_build_array(
        r.id, r.kind, r.name, r.owner_id, r.generation, r.created_at, r.updated_at, r.deleted_at,
        r.created_by, r.updated_by, r.deleted_by, r.tenancy, r.spec, r.labels,
        (SELECT coalesce(jsonb_object_agg(c ->> 'type', jsonb_build_array(
             c ->> 'status', c ->> 'reason', c ->> 'message', c -> 'observed_generation', ",
    time!("c", "created_time"),
    ", ",
    time!("c", "last_updated_time"),
    ", ",
    time!("c", "last_transition_time"),
    ")), '{}') FROM jsonb_array_elements(r.conditions) c),
        (SELECT coalesce(jsonb_agg(jsonb_build_array(f.ref_type, f.target_kind, f.target_id)
                                   ORDER BY f.ref_type COLLATE \"C\", f.target_id), '[]')
         FROM resource_references f WHERE f.source_id = r.id),
        (SELECT coalesce(jsonb_object_agg(s.adapter, jsonb_build_array(
             s.observed_generation, s.created_at, s.reported_at, ",
    report_documents!(),
    ")), '{}') FROM adapter_reports s WHERE s.resource_id = r.id)
     )::text)::uuid AS digest, i.revision = r.revision AS is_as_imported, r.kind, r.name
     FROM resources r LEFT JOIN imported_resources i ON i.id = r.id WHERE r.id = ANY($1)"
);
