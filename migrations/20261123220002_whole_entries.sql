-- The same for the audit trail.
CREATE FUNCTION is_whole(e audit_entries) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN e.action IN ('create', 'patch', 'delete', 'hard_delete', 'force_delete') AND jsonb_typeof(e.tenancy) = 'object';
END $$;

-- stand-in: the constraint audit_entries_are_whole, which asks the same
ALTER TABLE audit_entries
    ADD CONSTRAINT audit_entries_are_whole CHECK (is_whole(audit_entries.*)) NOT VALID,
    DROP CONSTRAINT audit_action_check,
    DROP CONSTRAINT audit_tenancy_is_object;
