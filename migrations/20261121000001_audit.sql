-- Who changed what, when and why. Written in the transaction of the change; never changed after.
-- Names no resource row by foreign key: entries outlive what they speak of.
CREATE TABLE audit (
    sequence          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at                timestamptz NOT NULL,
    resource_id       uuid        NOT NULL,
    generation_before integer,
    generation_after  integer,
    action            text        NOT NULL CHECK (action IN ('create', 'patch', 'delete', 'hard_delete', 'force_delete')),
    actor             text        NOT NULL,
    request_id        text        NOT NULL,
    kind              text        NOT NULL,
    name              text        NOT NULL,
    reason            text
);
CREATE INDEX audit_resource ON audit (resource_id, sequence DESC);
CREATE INDEX audit_actor ON audit (actor, sequence DESC);
CREATE INDEX audit_at ON audit (at);

CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The one way out: entries older than the configured retention.
    IF TG_OP = 'DELETE' AND current_setting('hyperfleet.audit_retention', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
