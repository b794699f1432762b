//! States of resources before changes, as SQL: value by value that of the earliest change from there on that replaced it,
//! or else that of the resource now.

use std::sync::LazyLock;

/// The columns of [`StoredRow`](super::row::StoredRow) in their order, of the state of the resource `c.resource_id` of kind
/// `c.kind` before its first change with the position `c.since` or a later one; if `c.since` is unset, of its present state.
/// Needs [`STATE_JOINS`]. Consists of constants only.
pub(super) static STATE_COLUMNS: LazyLock<String> = LazyLock::new(|| {
    let later = |value: &str, partial: &str| {
        format!(
            "(SELECT l.{value} FROM changes l WHERE l.resource_id = c.resource_id AND l.position >= c.since
              AND l.{value} IS NOT NULL {partial} ORDER BY l.position LIMIT 1)"
        )
    };
    let desired = "AND l.generation IS NOT NULL";
    format!(
        "c.resource_id, c.kind, {name}, {owner_id}, {generation}, coalesce({revision}, r.revision),
         {created_at}, {created_by}, {updated_at}, {updated_by}, {deleted_at}, {deleted_by},
         coalesce({spec}, r.spec), coalesce({labels}, r.labels), {tenancy},
         coalesce({conditions}, r.conditions), coalesce({links}, {PRESENT_LINKS})",
        name = whole("name"),
        owner_id = whole("owner_id"),
        generation = declared("generation"),
        revision = later("revision", ""),
        created_at = whole("created_at"),
        created_by = whole("created_by"),
        updated_at = declared("updated_at"),
        updated_by = declared("updated_by"),
        deleted_at = declared("deleted_at"),
        deleted_by = declared("deleted_by"),
        spec = later("spec", desired),
        labels = later("labels", desired),
        tenancy = whole("tenancy"),
        conditions = later("conditions", ""),
        links = later("links", desired),
    )
});

/// Of the resource now.
pub(super) const PRESENT_LINKS: &str =
    "(SELECT jsonb_agg(jsonb_build_object('type', ref_type, 'kind', target_kind, 'id', target_id))
      FROM resource_references WHERE source_id = c.resource_id)";

/// The row of the resource now (`r`), its first change from `c.since` on that replaced what is declared (`d`), and the first
/// one that replaced the whole row (`w`).
pub(super) const STATE_JOINS: &str = " LEFT JOIN resources r ON r.id = c.resource_id
     LEFT JOIN LATERAL (SELECT l.* FROM changes l WHERE l.resource_id = c.resource_id AND l.position >= c.since
                        AND l.generation IS NOT NULL ORDER BY l.position LIMIT 1) d ON true
     LEFT JOIN LATERAL (SELECT l.* FROM changes l WHERE l.resource_id = c.resource_id AND l.position >= c.since
                        AND l.generation IS NOT NULL AND l.created_at IS NOT NULL
                        ORDER BY l.position LIMIT 1) w ON true ";

/// One of the values that declared changes replace together.
pub(super) fn declared(column: &str) -> String {
    format!("CASE WHEN d.position IS NULL THEN r.{column} ELSE d.{column} END")
}

/// One of the values that only other writers and removals replace, together.
pub(super) fn whole(column: &str) -> String {
    format!("CASE WHEN w.position IS NULL THEN r.{column} ELSE w.{column} END")
}
