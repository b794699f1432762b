-- Removals by others were recorded when the statement had ended, without the references of the resource: these had been
-- removed with it. Triggers of a row fire in the order of their names, and those of foreign keys are named RI_…: this one
-- comes before them. What the statement has recorded itself is there already.
CREATE FUNCTION record_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM changes c
        WHERE c.resource_id = OLD.id AND c.generation IS NOT NULL AND c.action = 'removed'
          AND c.transaction = pg_current_xact_id()::text::bigint) THEN
        INSERT INTO changes (at, resource_id, kind, action, revision, generation, updated_at, updated_by, deleted_at,
                             deleted_by, created_at, created_by, name, owner_id, tenancy, spec, labels, links, conditions)
        VALUES (clock_timestamp(), OLD.id, OLD.kind, 'removed', OLD.revision, OLD.generation, OLD.updated_at,
                OLD.updated_by, OLD.deleted_at, OLD.deleted_by, OLD.created_at, OLD.created_by, OLD.name, OLD.owner_id,
                OLD.tenancy, OLD.spec, OLD.labels, links_of(OLD.id), OLD.conditions);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER "A_resource_removed_by_others" AFTER DELETE ON resources
    FOR EACH ROW EXECUTE FUNCTION record_removal();

-- The earlier trigger stays, and has nothing left to do.
CREATE OR REPLACE FUNCTION record_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END $$;
