-- The function `surroundings` of 20261124010000, with one more member of its referrers: `is_inside` says whether the
-- source is below the resource, on any level. Of a large family not every member is read. A DELETE of the resource
-- takes such a source along, so its reference does not block it.
--
-- Owners are found by their keys, from the source upwards, for as many sources as are read.
CREATE OR REPLACE FUNCTION surroundings(resource uuid, tenants jsonb, levels_max integer, rows_max bigint)
RETURNS TABLE (descendants jsonb, referrers jsonb) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    members uuid[];
BEGIN
    WITH RECURSIVE tree AS (
        SELECT resource AS id, 0 AS level, NULL::jsonb AS entry
        UNION ALL
        SELECT c.id, t.level + 1, c.entry || jsonb_build_object('level', t.level + 1)
        FROM tree t CROSS JOIN LATERAL (
            SELECT r.id, jsonb_build_object(
                'id', r.id, 'kind', r.kind, 'name', r.name, 'owner', r.owner_id, 'updated_at', r.updated_at,
                'deleted_at', r.deleted_at, 'is_seen', tenants IS NULL OR r.tenancy = tenants,
                'reconciled', jsonb_path_query_first(r.conditions, '$[*] ? (@.type == "Reconciled")')) AS entry
            FROM resources r WHERE r.owner_id BETWEEN t.id AND t.id
            ORDER BY r.owner_id, r.kind, r.created_at DESC, r.id DESC LIMIT rows_max + 1
        ) c
        WHERE t.level < levels_max
    )
    SELECT array_agg(t.id), jsonb_agg(t.entry) FILTER (WHERE t.level > 0)
    INTO members, descendants
    FROM (SELECT * FROM tree LIMIT rows_max + 2) t;

    SELECT jsonb_agg(s.entry) INTO referrers
    FROM (
        SELECT l.entry
        FROM unnest(members) m (id) CROSS JOIN LATERAL (
            SELECT jsonb_build_object(
                'id', s.id, 'kind', s.kind, 'name', s.name, 'owner', s.owner_id, 'ref_type', l.ref_type,
                'target', l.target_id, 'is_seen', tenants IS NULL OR s.tenancy = tenants,
                'is_inside', EXISTS (
                    WITH RECURSIVE owners AS (
                        SELECT s.owner_id AS id
                        UNION
                        SELECT r.owner_id FROM owners o JOIN resources r ON r.id = o.id
                    )
                    SELECT FROM owners o WHERE o.id = resource)) AS entry
            FROM resource_references l JOIN resources s ON s.id = l.source_id
            WHERE l.target_id BETWEEN m.id AND m.id AND s.deleted_at IS NULL AND l.source_id <> ALL (members)
            LIMIT rows_max + 1
        ) l
        LIMIT rows_max + 1
    ) s;
    RETURN NEXT;
END $$;
