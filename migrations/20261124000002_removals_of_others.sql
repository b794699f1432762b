-- The same for removals. Those that the statement has recorded itself are there already.
CREATE FUNCTION record_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes (at, resource_id, kind, action, revision, generation, updated_at, updated_by, deleted_at,
                         deleted_by, created_at, created_by, name, owner_id, tenancy, spec, labels, links, conditions)
    SELECT clock_timestamp(), t.id, t.kind, 'removed', t.revision, t.generation, t.updated_at, t.updated_by, t.deleted_at,
           t.deleted_by, t.created_at, t.created_by, t.name, t.owner_id, t.tenancy, t.spec, t.labels, links_of(t.id),
           t.conditions
    FROM touched t
    WHERE NOT EXISTS (
        SELECT FROM changes c
        WHERE c.resource_id = t.id AND c.generation IS NOT NULL AND c.action = 'removed'
          AND c.transaction = pg_current_xact_id()::text::bigint);
    RETURN NULL;
END $$;
CREATE TRIGGER resources_removed_by_others AFTER DELETE ON resources
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION record_removed();
