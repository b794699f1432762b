-- One constraint instead of nine that say the same. PostgreSQL reads the expression of every constraint again for each
-- statement that writes to the table, which takes ten times as long as to evaluate it: one that calls a function is short
-- (docs/internals/performance.md, "What a write costs").
CREATE FUNCTION is_whole(r resources) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN r.generation >= 1 AND r.kind <> '' AND r.name <> '' AND r.owner_id <> r.id
       AND (r.deleted_at IS NULL) = (r.deleted_by IS NULL)
       AND jsonb_typeof(r.tenancy) = 'object' AND jsonb_typeof(r.labels) = 'object'
       AND jsonb_typeof(r.conditions) = 'array' AND jsonb_typeof(r.spec) = 'object';
END $$;

-- Not validated: the constraints that it replaces held until now.
-- stand-in: the constraint resources_are_whole, which asks the same
ALTER TABLE resources
    ADD CONSTRAINT resources_are_whole CHECK (is_whole(resources.*)) NOT VALID,
    DROP CONSTRAINT resources_generation_check,
    DROP CONSTRAINT resources_kind_check,
    DROP CONSTRAINT resources_name_check,
    DROP CONSTRAINT resources_tenancy_check,
    DROP CONSTRAINT resources_labels_check,
    DROP CONSTRAINT resources_conditions_check,
    DROP CONSTRAINT resources_spec_check,
    DROP CONSTRAINT resources_deletion_is_whole,
    DROP CONSTRAINT resources_not_own_owner;
