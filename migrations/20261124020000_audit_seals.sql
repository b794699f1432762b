-- Seals of the audit trail: a hash chain for each tenancy, computed behind the writes (docs/decisions/0076-audit-seals.md).
--
-- A pass seals everything between two positions of the trail, with one row for each tenancy that has entries there. All rows of
-- a pass have the same begin (exclusive), end (inclusive), time of the newest entry, digest of the pass before, and digest of
-- the pass, which covers all of them.
CREATE TABLE audit_seals (
    tenancy            jsonb       NOT NULL,
    number             bigint      NOT NULL,
    begin_era          bigint      NOT NULL,
    begin_commit_order bigint      NOT NULL,
    begin_sequence     bigint      NOT NULL,
    end_era            bigint      NOT NULL,
    end_commit_order   bigint      NOT NULL,
    end_sequence       bigint      NOT NULL,
    newest_at          timestamptz NOT NULL,
    sealed_at          timestamptz NOT NULL,
    removed_at         timestamptz,
    -- Retention removed entries before this time. Not constrained: a forged mark is a fault of a verification.
    removed_before     timestamptz,
    entries            integer     NOT NULL,
    previous           bytea       NOT NULL,
    hash               bytea       NOT NULL,
    pass_previous      bytea       NOT NULL,
    pass_hash          bytea       NOT NULL,
    CONSTRAINT audit_seals_pkey PRIMARY KEY (tenancy, number),
    CONSTRAINT audit_seals_are_whole CHECK (number >= 1 AND entries >= 1 AND jsonb_typeof(tenancy) = 'object'
                                            AND octet_length(previous) = 32 AND octet_length(hash) = 32
                                            AND octet_length(pass_previous) = 32 AND octet_length(pass_hash) = 32)
);
-- For the end of the last pass, and for reading passes in their order.
CREATE INDEX audit_seals_end ON audit_seals (end_era, end_commit_order, end_sequence);
-- For the end of the part that retention has removed.
CREATE INDEX audit_seals_removed ON audit_seals (end_era, end_commit_order, end_sequence) WHERE removed_at IS NOT NULL;

-- Retention marks seals, and removes them. Nothing else changes them.
CREATE FUNCTION audit_seals_are_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('hyperfleet.audit_retention', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER audit_seals_append_only BEFORE UPDATE OR DELETE ON audit_seals
    FOR EACH STATEMENT EXECUTE FUNCTION audit_seals_are_append_only();
CREATE TRIGGER audit_seals_unchanged BEFORE UPDATE OF tenancy, number, begin_era, begin_commit_order, begin_sequence, end_era,
    end_commit_order, end_sequence, newest_at, sealed_at, entries, previous, hash, pass_previous, pass_hash OR TRUNCATE ON audit_seals
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
