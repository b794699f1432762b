-- One hash chain over the passes of the audit trail, in place of a chain for each tenancy
-- (docs/decisions/0086-audit-passes.md). The service seals the trail anew.
DROP TABLE audit_seals;
DROP FUNCTION audit_seals_are_append_only();

-- A pass covers the entries after the end of the pass before, up to its own end. The first row covers nothing that is left:
-- it is the origin of the chain, or the last pass that retention has removed.
CREATE TABLE audit_passes (
    -- 1, 2, …; 0 for the origin.
    number           bigint      CONSTRAINT audit_passes_pkey PRIMARY KEY,
    end_era          bigint      NOT NULL,
    end_commit_order bigint      NOT NULL,
    end_sequence     bigint      NOT NULL,
    entries          integer     NOT NULL,
    -- Of all entries up to the end, so that it never falls from one pass to the next.
    newest_at        timestamptz NOT NULL,
    sealed_at        timestamptz NOT NULL,
    root             bytea       NOT NULL,
    previous         bytea       NOT NULL,
    hash             bytea       NOT NULL,
    CONSTRAINT audit_passes_are_valid CHECK (number >= 0 AND entries >= 0 AND octet_length(root) = 32
                                             AND octet_length(previous) = 32 AND octet_length(hash) = 32)
);
-- As for audit_entries: retention removes rows, and nothing changes them.
CREATE TRIGGER audit_passes_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_passes
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
