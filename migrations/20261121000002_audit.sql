-- The audit trail: who changed which resource, when and why. An entry is written in the transaction of the
-- change and never changed. It has no foreign key to the resource, which it outlives.
CREATE TABLE audit_entries (
    sequence          bigint      GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME audit_sequence_seq),
    at                timestamptz NOT NULL,
    resource_id       uuid        NOT NULL,
    generation_before integer,
    generation_after  integer,
    action            text        NOT NULL,
    actor             text        NOT NULL,
    request_id        text        NOT NULL,
    kind              text        NOT NULL,
    name              text        NOT NULL,
    reason            text,
    tenancy           jsonb       NOT NULL DEFAULT '{}',
    CONSTRAINT audit_pkey PRIMARY KEY (sequence),
    CONSTRAINT audit_action_check CHECK (action IN ('create', 'patch', 'delete', 'hard_delete', 'force_delete')),
    CONSTRAINT audit_tenancy_is_object CHECK (jsonb_typeof(tenancy) = 'object')
);
CREATE INDEX audit_resource ON audit_entries (resource_id, sequence DESC);
CREATE INDEX audit_actor ON audit_entries (actor, sequence DESC);
CREATE INDEX audit_at ON audit_entries (at);
-- The trail of one tenant. Entries without tenancy are not in it.
CREATE INDEX audit_tenant ON audit_entries (tenancy, sequence DESC) WHERE tenancy <> '{}';

CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Only retention removes entries: those older than the configured time.
    IF TG_OP = 'DELETE' AND current_setting('hyperfleet.audit_retention', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
