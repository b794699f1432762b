-- The schema that all migrations make, by pg_dump 15: `make schema`.

CREATE FUNCTION audit_era() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$SELECT 0::bigint$$;

CREATE FUNCTION audit_is_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- Only retention removes entries: those older than the configured time.
    IF TG_OP = 'DELETE' AND current_setting('hyperfleet.audit_retention', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION begin_audit_era() RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    begun bigint;
BEGIN
    LOCK TABLE audit_entries IN SHARE ROW EXCLUSIVE MODE;
    begun := greatest(audit_era() + 1, (SELECT max(e.era) + 1 FROM audit_entries e),
                      extract(epoch FROM clock_timestamp())::bigint);
    EXECUTE format('CREATE OR REPLACE FUNCTION audit_era() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS %L',
                   format('SELECT %s::bigint', begun));
    PERFORM setval('audit_sequence_seq', t.newest)
    FROM audit_sequence_seq s, (SELECT max(e.sequence) AS newest FROM audit_entries e) t
    WHERE t.newest > CASE WHEN s.is_called THEN s.last_value ELSE 0 END;
    PERFORM setval('changes_position', t.newest)
    FROM changes_position s, (SELECT greatest(max(c.position), (SELECT r.position FROM changes_removed r)) AS newest
                              FROM changes c) t
    WHERE t.newest > CASE WHEN s.is_called THEN s.last_value ELSE 0 END;
    RETURN begun;
END $$;

CREATE FUNCTION changes_end(OUT era bigint, OUT drawn bigint, OUT removed bigint, OUT writers text[]) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    drawn := (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM changes_position s);
    writers := ARRAY(
        SELECT DISTINCT l.virtualtransaction FROM pg_locks l
        WHERE l.locktype = 'relation' AND l.relation = 'changes'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()));
    era := audit_era();
    removed := coalesce((SELECT r.position FROM changes_removed r), 0);
END $$;

CREATE FUNCTION compress_with_lz4(target regclass, VARIADIC columns name[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    EXECUTE (SELECT format('ALTER TABLE %s ', target)
                    || string_agg(format('ALTER COLUMN %I SET COMPRESSION lz4', c), ', ') FROM unnest(columns) c);
EXCEPTION WHEN feature_not_supported THEN
    NULL; -- a server that was built without it
END $$;

CREATE FUNCTION condition_member(conditions jsonb, kind text, member text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $_$
BEGIN
    RETURN jsonb_path_query_first(
        conditions, '$[*] ? (@.type == $t)', jsonb_build_object('t', kind)) ->> member;
END $_$;

CREATE FUNCTION condition_states(conditions jsonb) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
BEGIN
    RETURN ARRAY(SELECT (c ->> 'type') || '=' || (c ->> 'status') FROM jsonb_array_elements(conditions) c);
END $$;

CREATE FUNCTION count_children(resource uuid) RETURNS bigint
    LANGUAGE plpgsql STABLE COST 1 PARALLEL SAFE
    SET enable_seqscan TO 'off'
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    RETURN (SELECT count(*) FROM (SELECT FROM resources r WHERE r.owner_id = resource LIMIT 2) r);
END $$;

CREATE FUNCTION count_resources() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    one CONSTANT bigint := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    INSERT INTO resource_counts AS c (kind, slot, count)
    SELECT kind, pg_backend_pid() % 32, one * count(*) FROM touched GROUP BY kind ORDER BY kind
    ON CONFLICT (kind, slot) DO UPDATE SET count = c.count + excluded.count;
    IF EXISTS (SELECT FROM touched WHERE tenancy <> '{}') THEN
        INSERT INTO tenant_resource_counts AS c (tenancy, kind, slot, count)
        SELECT tenancy, kind, pg_backend_pid() % 32, one * count(*) FROM touched
        WHERE tenancy <> '{}' GROUP BY tenancy, kind ORDER BY tenancy, kind
        ON CONFLICT (tenancy, kind, slot) DO UPDATE SET count = c.count + excluded.count;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION fill_condition_columns() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    NEW.condition_states := condition_states(NEW.conditions);
    NEW.reconciled_updated_at := condition_member(NEW.conditions, 'Reconciled', 'last_updated_time');
    NEW.reconciled_transition_at := condition_member(NEW.conditions, 'Reconciled', 'last_transition_time');
    NEW.last_known_generation := condition_member(NEW.conditions, 'LastKnownReconciled', 'observed_generation');
    RETURN NEW;
END $$;

CREATE FUNCTION has_dependents(resource uuid) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    RETURN EXISTS (SELECT FROM resources r WHERE r.owner_id = resource)
        OR EXISTS (SELECT FROM resource_references l WHERE l.target_id = resource);
END $$;

CREATE FUNCTION has_tenancy(resource uuid, wanted jsonb) RETURNS boolean
    LANGUAGE plpgsql STABLE COST 1 PARALLEL SAFE
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    RETURN EXISTS (SELECT FROM resources r WHERE r.id = resource AND r.tenancy = wanted);
END $$;

CREATE TABLE adapter_reports (
    resource_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    reported_at timestamp with time zone NOT NULL,
    observed_generation integer NOT NULL,
    adapter text NOT NULL,
    conditions jsonb NOT NULL,
    data jsonb NOT NULL,
    metadata jsonb
)
WITH (fillfactor='80');
ALTER TABLE ONLY adapter_reports ALTER COLUMN conditions SET COMPRESSION lz4;
ALTER TABLE ONLY adapter_reports ALTER COLUMN data SET COMPRESSION lz4;

CREATE FUNCTION is_valid_row(r adapter_reports) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
BEGIN
    RETURN r.observed_generation >= 1 AND r.adapter <> '' AND jsonb_typeof(r.conditions) = 'array'
       AND jsonb_typeof(r.data) = 'object' AND jsonb_typeof(r.metadata) = 'object';
END $$;

CREATE TABLE audit_entries (
    sequence bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    resource_id uuid NOT NULL,
    generation_before integer,
    generation_after integer,
    action text NOT NULL,
    actor text NOT NULL,
    request_id text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    reason text,
    tenancy jsonb DEFAULT '{}'::jsonb NOT NULL,
    era bigint DEFAULT audit_era() NOT NULL,
    commit_order bigint DEFAULT GREATEST(((pg_current_xact_id())::text)::bigint, (((pg_snapshot_xmax(pg_current_snapshot()))::text)::bigint - 1)) NOT NULL
);

CREATE FUNCTION is_valid_row(e audit_entries) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
BEGIN
    RETURN e.action IN ('create', 'patch', 'delete', 'hard_delete', 'force_delete') AND jsonb_typeof(e.tenancy) = 'object';
END $$;

CREATE TABLE resources (
    id uuid NOT NULL,
    owner_id uuid,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    revision bigint DEFAULT 1 NOT NULL,
    generation integer NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    created_by text NOT NULL,
    updated_by text NOT NULL,
    deleted_by text,
    tenancy jsonb DEFAULT '{}'::jsonb NOT NULL,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    conditions jsonb DEFAULT '[]'::jsonb NOT NULL,
    spec jsonb NOT NULL,
    condition_states text[] NOT NULL,
    reconciled_updated_at timestamp with time zone,
    reconciled_transition_at timestamp with time zone,
    last_known_generation bigint,
    computed_revision bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='80');
ALTER TABLE ONLY resources ALTER COLUMN conditions SET COMPRESSION lz4;
ALTER TABLE ONLY resources ALTER COLUMN spec SET COMPRESSION lz4;

CREATE FUNCTION is_valid_row(r resources) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
BEGIN
    RETURN r.generation >= 1 AND r.kind <> '' AND r.name <> '' AND r.owner_id <> r.id
       AND (r.deleted_at IS NULL) = (r.deleted_by IS NULL)
       AND jsonb_typeof(r.tenancy) = 'object' AND jsonb_typeof(r.labels) = 'object'
       AND jsonb_typeof(r.conditions) = 'array' AND jsonb_typeof(r.spec) = 'object'
       AND isfinite(r.created_at) AND isfinite(r.updated_at) AND isfinite(r.deleted_at) IS NOT FALSE;
END $$;

CREATE FUNCTION links_of(resource uuid) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    RETURN coalesce((
        SELECT jsonb_agg(jsonb_build_object('type', l.ref_type, 'kind', l.target_kind, 'id', l.target_id))
        FROM resource_references l WHERE l.source_id = resource), '[]');
END $$;

CREATE FUNCTION record_deletes_by_others() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO changes (at, resource_id, revision, generation, kind, action)
    SELECT clock_timestamp(), t.id, t.revision, t.generation, t.kind, 'removed'
    FROM touched t
    WHERE (SELECT c.action FROM changes c WHERE c.resource_id = t.id ORDER BY c.position DESC LIMIT 1)
          IS DISTINCT FROM 'removed';
    RETURN NULL;
END $$;

CREATE FUNCTION record_write_by_others() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        NEW.revision := greatest(NEW.revision, OLD.revision + 1);
    END IF;
    INSERT INTO changes (at, resource_id, revision, generation, kind, action, conditions, owner_id, created_at, updated_at,
                         deleted_at, name, created_by, updated_by, deleted_by, tenancy, labels, links, spec)
    VALUES (clock_timestamp(), NEW.id, NEW.revision, NEW.generation, NEW.kind,
            CASE TG_OP WHEN 'INSERT' THEN 'created' ELSE 'modified' END, NEW.conditions, NEW.owner_id, NEW.created_at,
            NEW.updated_at, NEW.deleted_at, NEW.name, NEW.created_by, NEW.updated_by, NEW.deleted_by, NEW.tenancy,
            NEW.labels, links_of(NEW.id), NEW.spec);
    RETURN NEW;
END $$;

CREATE FUNCTION recount_tenants() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO tenant_resource_counts AS c (tenancy, kind, slot, count)
    SELECT t.tenancy, t.kind, pg_backend_pid() % 32, t.one
    FROM (VALUES (OLD.tenancy, OLD.kind, -1), (NEW.tenancy, NEW.kind, 1)) t (tenancy, kind, one)
    WHERE t.tenancy <> '{}' ORDER BY t.tenancy
    ON CONFLICT (tenancy, kind, slot) DO UPDATE SET count = c.count + excluded.count;
    RETURN NULL;
END $$;

CREATE FUNCTION reset_resource_counts() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    DELETE FROM resource_counts;
    DELETE FROM tenant_resource_counts;
    RETURN NULL;
END $$;

CREATE FUNCTION skip_restored_counts() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN NULL;
END $$;

CREATE FUNCTION surroundings(resource uuid, tenants jsonb, levels_max integer, rows_max bigint) RETURNS TABLE(descendants jsonb, referrers jsonb)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET search_path TO 'public', 'pg_temp'
    AS $_$
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
END $_$;

CREATE TABLE audit_passes (
    number bigint NOT NULL,
    end_era bigint NOT NULL,
    end_commit_order bigint NOT NULL,
    end_sequence bigint NOT NULL,
    entries integer NOT NULL,
    newest_at timestamp with time zone NOT NULL,
    sealed_at timestamp with time zone NOT NULL,
    root bytea NOT NULL,
    previous bytea NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT audit_passes_are_valid CHECK (((number >= 0) AND (entries >= 0) AND (octet_length(root) = 32) AND (octet_length(previous) = 32) AND (octet_length(hash) = 32)))
);

ALTER TABLE audit_entries ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE changes (
    "position" bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    resource_id uuid NOT NULL,
    revision bigint NOT NULL,
    generation integer NOT NULL,
    kind text NOT NULL,
    action text NOT NULL,
    actor text,
    request_id text,
    cause text,
    conditions jsonb,
    owner_id uuid,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    deleted_at timestamp with time zone,
    name text,
    created_by text,
    updated_by text,
    deleted_by text,
    tenancy jsonb,
    labels jsonb,
    links jsonb,
    spec jsonb,
    CONSTRAINT changes_action_check CHECK ((action = ANY (ARRAY['created'::text, 'modified'::text, 'removed'::text])))
);
ALTER TABLE ONLY changes ALTER COLUMN conditions SET COMPRESSION lz4;
ALTER TABLE ONLY changes ALTER COLUMN spec SET COMPRESSION lz4;

ALTER TABLE changes ALTER COLUMN "position" ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME changes_position
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE changes_removed (
    only_one boolean DEFAULT true NOT NULL,
    "position" bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT changes_removed_only_one_check CHECK (only_one)
);

CREATE TABLE idempotency_keys (
    tenancy jsonb NOT NULL,
    caller text NOT NULL,
    key text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    fingerprint bytea NOT NULL,
    status smallint,
    tag text,
    body bytea
);

CREATE TABLE imported_resources (
    id uuid NOT NULL,
    revision bigint NOT NULL
);

CREATE TABLE leases (
    tenancy jsonb NOT NULL,
    name text NOT NULL,
    holder text NOT NULL,
    acquired_at timestamp with time zone NOT NULL,
    renewed_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE resource_counts (
    kind text NOT NULL,
    slot smallint NOT NULL,
    count bigint NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE resource_references (
    source_id uuid NOT NULL,
    target_id uuid NOT NULL,
    ref_type text NOT NULL,
    target_kind text NOT NULL,
    CONSTRAINT resource_references_ref_type_check CHECK ((ref_type <> ''::text))
);

CREATE VIEW resource_states AS
 SELECT c."position",
    c.at,
    c.action,
    c.actor,
    c.request_id,
    c.cause,
    c.resource_id AS id,
    c.kind,
    d.name,
    d.owner_id,
    c.generation,
    c.revision,
    d.created_at,
    d.created_by,
    d.updated_at,
    d.updated_by,
    d.deleted_at,
    d.deleted_by,
    COALESCE(d.spec, ( SELECT s.spec
           FROM changes s
          WHERE ((s.resource_id = c.resource_id) AND (s."position" < d."position") AND (s.updated_at IS NOT NULL) AND (s.spec IS NOT NULL))
          ORDER BY s."position" DESC
         LIMIT 1)) AS spec,
    d.labels,
    d.tenancy,
    COALESCE(c.conditions, ( SELECT s.conditions
           FROM changes s
          WHERE ((s.resource_id = c.resource_id) AND (s."position" < c."position") AND (s.conditions IS NOT NULL))
          ORDER BY s."position" DESC
         LIMIT 1)) AS conditions,
    d.links
   FROM (changes c
     CROSS JOIN LATERAL ( SELECT d_1."position",
            d_1.at,
            d_1.resource_id,
            d_1.revision,
            d_1.generation,
            d_1.kind,
            d_1.action,
            d_1.actor,
            d_1.request_id,
            d_1.cause,
            d_1.conditions,
            d_1.owner_id,
            d_1.created_at,
            d_1.updated_at,
            d_1.deleted_at,
            d_1.name,
            d_1.created_by,
            d_1.updated_by,
            d_1.deleted_by,
            d_1.tenancy,
            d_1.labels,
            d_1.links,
            d_1.spec
           FROM changes d_1
          WHERE ((d_1.resource_id = c.resource_id) AND (d_1."position" <= c."position") AND (d_1.updated_at IS NOT NULL))
          ORDER BY d_1."position" DESC
         LIMIT 1) d);

CREATE TABLE tenant_resource_counts (
    tenancy jsonb NOT NULL,
    kind text NOT NULL,
    slot smallint NOT NULL,
    count bigint NOT NULL,
    CONSTRAINT tenant_resource_counts_tenancy_check CHECK ((tenancy <> '{}'::jsonb))
)
WITH (fillfactor='50');

ALTER TABLE ONLY adapter_reports
    ADD CONSTRAINT adapter_reports_pkey PRIMARY KEY (resource_id, adapter);

ALTER TABLE adapter_reports
    ADD CONSTRAINT adapter_reports_valid CHECK (is_valid_row(adapter_reports.*));

ALTER TABLE audit_entries
    ADD CONSTRAINT audit_entries_valid CHECK (is_valid_row(audit_entries.*));

ALTER TABLE ONLY audit_passes
    ADD CONSTRAINT audit_passes_pkey PRIMARY KEY (number);

ALTER TABLE ONLY audit_entries
    ADD CONSTRAINT audit_pkey PRIMARY KEY (sequence);

ALTER TABLE ONLY changes
    ADD CONSTRAINT changes_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY changes_removed
    ADD CONSTRAINT changes_removed_pkey PRIMARY KEY (only_one);

ALTER TABLE ONLY idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenancy, caller, key);

ALTER TABLE ONLY imported_resources
    ADD CONSTRAINT imported_resources_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (tenancy, name);

ALTER TABLE ONLY resource_counts
    ADD CONSTRAINT resource_counts_pkey PRIMARY KEY (kind, slot);

ALTER TABLE ONLY resource_references
    ADD CONSTRAINT resource_references_pkey PRIMARY KEY (source_id, ref_type, target_id);

ALTER TABLE ONLY resources
    ADD CONSTRAINT resources_pkey PRIMARY KEY (id);

ALTER TABLE resources
    ADD CONSTRAINT resources_valid CHECK (is_valid_row(resources.*));

ALTER TABLE ONLY tenant_resource_counts
    ADD CONSTRAINT tenant_resource_counts_pkey PRIMARY KEY (tenancy, kind, slot);

CREATE INDEX audit_actor ON audit_entries USING btree (actor, sequence DESC);

CREATE INDEX audit_at ON audit_entries USING btree (at);

CREATE INDEX audit_order ON audit_entries USING btree (era, commit_order, sequence);

CREATE INDEX audit_resource ON audit_entries USING btree (resource_id, sequence DESC);

CREATE INDEX audit_tenant ON audit_entries USING btree (tenancy, sequence DESC) WHERE (tenancy <> '{}'::jsonb);

CREATE INDEX changes_at ON changes USING brin (at) WITH (pages_per_range='16');

CREATE INDEX changes_declared ON changes USING btree (resource_id, "position") WHERE (updated_at IS NOT NULL);

CREATE INDEX changes_resource ON changes USING btree (resource_id, "position");

CREATE INDEX idempotency_keys_created ON idempotency_keys USING btree (created_at);

CREATE INDEX resource_references_target ON resource_references USING btree (target_id);

CREATE UNIQUE INDEX resources_child_name ON resources USING btree (owner_id, kind, name) WHERE ((owner_id IS NOT NULL) AND (deleted_at IS NULL));

CREATE INDEX resources_finalizing ON resources USING btree (kind) WHERE (deleted_at IS NOT NULL);

CREATE INDEX resources_finalizing_of_tenant ON resources USING btree (tenancy, kind) WHERE ((deleted_at IS NOT NULL) AND (tenancy <> '{}'::jsonb));

CREATE INDEX resources_labels_and_states ON resources USING gin (labels jsonb_path_ops, condition_states) WITH (gin_pending_list_limit='256');

CREATE INDEX resources_last_known_generation ON resources USING btree (kind, last_known_generation);

CREATE INDEX resources_name ON resources USING btree (kind, name text_pattern_ops);

CREATE INDEX resources_newest ON resources USING btree (created_at DESC, id DESC) INCLUDE (deleted_at);

CREATE INDEX resources_newest_of_kind ON resources USING btree (kind, created_at DESC, id DESC) INCLUDE (deleted_at);

CREATE INDEX resources_newest_of_owner ON resources USING btree (owner_id, kind, created_at DESC, id DESC) INCLUDE (deleted_at) WHERE (owner_id IS NOT NULL);

CREATE INDEX resources_newest_of_tenant ON resources USING btree (tenancy, created_at DESC, id DESC) INCLUDE (deleted_at) WHERE (tenancy <> '{}'::jsonb);

CREATE INDEX resources_newest_of_tenant_kind ON resources USING btree (tenancy, kind, created_at DESC, id DESC) INCLUDE (deleted_at) WHERE (tenancy <> '{}'::jsonb);

CREATE INDEX resources_reconciled_transition ON resources USING btree (kind, reconciled_transition_at);

CREATE INDEX resources_reconciled_updated ON resources USING btree (kind, reconciled_updated_at);

CREATE UNIQUE INDEX resources_root_name ON resources USING btree (kind, name, tenancy) WHERE ((owner_id IS NULL) AND (deleted_at IS NULL));

CREATE INDEX resources_unreconciled ON resources USING btree (kind, reconciled_transition_at) INCLUDE (deleted_at) WHERE (condition_states @> ARRAY['Reconciled=False'::text]);

CREATE TRIGGER audit_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_entries FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER audit_passes_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_passes FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER resource_counts_skip_restored BEFORE INSERT ON resource_counts FOR EACH ROW WHEN ((pg_trigger_depth() = 0)) EXECUTE FUNCTION skip_restored_counts();

CREATE TRIGGER resources_count_deleted AFTER DELETE ON resources REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION count_resources();

CREATE TRIGGER resources_count_inserted AFTER INSERT ON resources REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION count_resources();

CREATE TRIGGER resources_count_reassigned AFTER UPDATE OF tenancy ON resources FOR EACH ROW WHEN ((old.tenancy <> new.tenancy)) EXECUTE FUNCTION recount_tenants();

CREATE TRIGGER resources_count_truncated AFTER TRUNCATE ON resources FOR EACH STATEMENT EXECUTE FUNCTION reset_resource_counts();

CREATE TRIGGER resources_fill_inserted BEFORE INSERT ON resources FOR EACH ROW WHEN ((new.computed_revision = 0)) EXECUTE FUNCTION fill_condition_columns();

CREATE TRIGGER resources_fill_updated BEFORE UPDATE ON resources FOR EACH ROW WHEN ((new.computed_revision = old.computed_revision)) EXECUTE FUNCTION fill_condition_columns();

CREATE TRIGGER resources_record_deleted AFTER DELETE ON resources REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION record_deletes_by_others();

CREATE TRIGGER resources_record_inserted AFTER INSERT ON resources FOR EACH ROW WHEN (((new.computed_revision = 0) AND (current_setting('search_path'::text) <> ''::text))) EXECUTE FUNCTION record_write_by_others();

CREATE TRIGGER resources_record_updated BEFORE UPDATE ON resources FOR EACH ROW WHEN ((new.computed_revision = old.computed_revision)) EXECUTE FUNCTION record_write_by_others();

CREATE TRIGGER tenant_resource_counts_skip_restored BEFORE INSERT ON tenant_resource_counts FOR EACH ROW WHEN ((pg_trigger_depth() = 0)) EXECUTE FUNCTION skip_restored_counts();

ALTER TABLE ONLY adapter_reports
    ADD CONSTRAINT adapter_reports_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES resources(id) ON DELETE CASCADE;

ALTER TABLE ONLY resource_references
    ADD CONSTRAINT resource_references_source_id_fkey FOREIGN KEY (source_id) REFERENCES resources(id) ON DELETE CASCADE;

ALTER TABLE ONLY resource_references
    ADD CONSTRAINT resource_references_target_id_fkey FOREIGN KEY (target_id) REFERENCES resources(id);

ALTER TABLE ONLY resources
    ADD CONSTRAINT resources_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES resources(id);

