-- The schema of 0.2, from which later migrations start (docs/internals/database.md explains it; schema.sql shows the result
-- of all migrations).
--
-- Functions with a `search_path` name tables: pg_dump, pg_restore and logical replication empty that of their session. The
-- setting below is the schema that the migrations run in, for this transaction and, by FROM CURRENT, for those functions.
-- They are in PL/pgSQL, which keeps its plans: PostgreSQL plans a function in SQL again for every statement that calls it.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- ---------------------------------------------------------------------------------------------------------------------
-- Resources
-- ---------------------------------------------------------------------------------------------------------------------

-- A resource is one row, whatever its kind: kinds are configuration, not tables. Labels and conditions are in that row,
-- so that a read is one row and a report is one update.
CREATE TABLE resources (
    id          uuid        PRIMARY KEY,
    -- NO ACTION is checked at the end of the statement: one DELETE can remove a parent together with all its children,
    -- but never a parent without its children.
    owner_id    uuid        REFERENCES resources (id),
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    deleted_at  timestamptz,
    -- Incremented by every write, reports included. A writer saves only if the revision has not changed since the read.
    revision    bigint      NOT NULL DEFAULT 1,
    generation  integer     NOT NULL,
    kind        text        NOT NULL,
    name        text        NOT NULL,
    created_by  text        NOT NULL,
    updated_by  text        NOT NULL,
    deleted_by  text,
    tenancy     jsonb       NOT NULL DEFAULT '{}',
    labels      jsonb       NOT NULL DEFAULT '{}',
    conditions  jsonb       NOT NULL DEFAULT '[]',
    spec        jsonb       NOT NULL,
    -- Columns for searches and metrics, computed from `conditions` by the statement that sets `conditions`. Generated
    -- columns would take a tenth of the time of a change, because PostgreSQL parses their expressions again for every
    -- statement (docs/internals/performance.md, "What a write costs"). A report that changes none of them changes no
    -- index (HOT update).
    condition_states         text[] NOT NULL,
    reconciled_updated_at    timestamptz,
    reconciled_transition_at timestamptz,
    last_known_generation    bigint,
    -- The revision of the last statement that set these columns and recorded its change. For a writer that does not set it
    -- (`import`, an operator), triggers do both.
    computed_revision        bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 80); -- leaves space in the page for the next version of the row

-- The latest accepted report of each adapter on each resource.
CREATE TABLE adapter_reports (
    resource_id         uuid        NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    created_at          timestamptz NOT NULL,
    reported_at         timestamptz NOT NULL,
    observed_generation integer     NOT NULL,
    adapter             text        NOT NULL,
    conditions          jsonb       NOT NULL,
    data                jsonb       NOT NULL,
    metadata            jsonb,
    PRIMARY KEY (resource_id, adapter)
) WITH (fillfactor = 80);

-- References between resources that do not own each other. A resource that is referenced cannot be removed.
CREATE TABLE resource_references (
    source_id   uuid NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    target_id   uuid NOT NULL REFERENCES resources (id),
    ref_type    text NOT NULL CHECK (ref_type <> ''),
    target_kind text NOT NULL,
    PRIMARY KEY (source_id, ref_type, target_id)
);
CREATE INDEX resource_references_target ON resource_references (target_id);

-- One constraint for each table, which calls a function: PostgreSQL reads the expression of every constraint again for each
-- statement that writes to the table, which takes ten times as long as to evaluate it.
CREATE FUNCTION is_valid_row(r resources) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN r.generation >= 1 AND r.kind <> '' AND r.name <> '' AND r.owner_id <> r.id
       AND (r.deleted_at IS NULL) = (r.deleted_by IS NULL)
       AND jsonb_typeof(r.tenancy) = 'object' AND jsonb_typeof(r.labels) = 'object'
       AND jsonb_typeof(r.conditions) = 'array' AND jsonb_typeof(r.spec) = 'object'
       AND isfinite(r.created_at) AND isfinite(r.updated_at) AND isfinite(r.deleted_at) IS NOT FALSE;
END $$;
CREATE FUNCTION is_valid_row(r adapter_reports) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN r.observed_generation >= 1 AND r.adapter <> '' AND jsonb_typeof(r.conditions) = 'array'
       AND jsonb_typeof(r.data) = 'object' AND jsonb_typeof(r.metadata) = 'object';
END $$;
ALTER TABLE resources ADD CONSTRAINT resources_valid CHECK (is_valid_row(resources.*));
ALTER TABLE adapter_reports ADD CONSTRAINT adapter_reports_valid CHECK (is_valid_row(adapter_reports.*));

-- Compresses large values with lz4 if the server has it, which takes less processor time than pglz, the default
-- (docs/internals/performance.md, "What a write costs").
CREATE FUNCTION compress_with_lz4(target regclass, VARIADIC columns name[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE (SELECT format('ALTER TABLE %s ', target)
                    || string_agg(format('ALTER COLUMN %I SET COMPRESSION lz4', c), ', ') FROM unnest(columns) c);
EXCEPTION WHEN feature_not_supported THEN
    NULL; -- a server that was built without it
END $$;
SELECT compress_with_lz4('resources', 'conditions', 'spec');
SELECT compress_with_lz4('adapter_reports', 'conditions', 'data');

-- A name is unique among active rows: of one tenant for roots, of one owner for children.
CREATE UNIQUE INDEX resources_root_name ON resources (kind, name, tenancy)
    WHERE owner_id IS NULL AND deleted_at IS NULL;
CREATE UNIQUE INDEX resources_child_name ON resources (owner_id, kind, name)
    WHERE owner_id IS NOT NULL AND deleted_at IS NULL;

-- Lists, newest first: a page is read in index order, without sorting.
CREATE INDEX resources_newest_of_kind ON resources (kind, created_at DESC, id DESC) INCLUDE (deleted_at);
CREATE INDEX resources_newest ON resources (created_at DESC, id DESC) INCLUDE (deleted_at);
CREATE INDEX resources_newest_of_owner ON resources (owner_id, kind, created_at DESC, id DESC) INCLUDE (deleted_at)
    WHERE owner_id IS NOT NULL;
-- Few rows are finalizing. The total of active rows is that of all rows (resource_counts) minus these.
CREATE INDEX resources_finalizing ON resources (kind) WHERE deleted_at IS NOT NULL;

-- The same for the lists of one tenant. Rows without tenancy are not in these indexes, so that a service that
-- does not use tenants does not pay for them.
CREATE INDEX resources_newest_of_tenant_kind ON resources (tenancy, kind, created_at DESC, id DESC)
    INCLUDE (deleted_at) WHERE tenancy <> '{}';
CREATE INDEX resources_newest_of_tenant ON resources (tenancy, created_at DESC, id DESC)
    INCLUDE (deleted_at) WHERE tenancy <> '{}';
CREATE INDEX resources_finalizing_of_tenant ON resources (tenancy, kind)
    WHERE deleted_at IS NOT NULL AND tenancy <> '{}';

-- ---------------------------------------------------------------------------------------------------------------------
-- Questions about a resource, as functions: a function that a statement does not call costs nothing, while a part of its
-- plan costs time whether it runs or not
-- ---------------------------------------------------------------------------------------------------------------------

-- Whether a resource belongs to a tenant: checks the owner in a nested path, for callers who see one tenant.
--
-- COST 1 is lower than the real cost: with the real one PostgreSQL would plan the statement for each request,
-- though most requests never call the function.
CREATE FUNCTION has_tenancy(resource uuid, wanted jsonb) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1 SET search_path FROM CURRENT AS $$
BEGIN
    RETURN EXISTS (SELECT FROM resources r WHERE r.id = resource AND r.tenancy = wanted);
END $$;

-- Number of children, counted up to two. Sees the same rows as the calling statement. COST 1 as for `has_tenancy`.
--
-- Sequential scans are off, as in `has_dependents`: if most resources have the same owner, the planner expects a child
-- of any resource among the first rows of the table and chooses a sequential scan. For a resource without children that
-- is a full table scan.
CREATE FUNCTION count_children(resource uuid) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1 SET enable_seqscan = off SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT count(*) FROM (SELECT FROM resources r WHERE r.owner_id = resource LIMIT 2) r);
END $$;

-- Whether a resource has children or is referenced: the last check of a deletion in one statement.
--
-- VOLATILE, so that it sees everything that was committed before its call. By then the calling statement has locked the
-- row of the resource, which may have taken a while; the statement itself sees only rows from before its start.
CREATE FUNCTION has_dependents(resource uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET search_path FROM CURRENT AS $$
BEGIN
    RETURN EXISTS (SELECT FROM resources r WHERE r.owner_id = resource)
        OR EXISTS (SELECT FROM resource_references l WHERE l.target_id = resource);
END $$;

-- The references of a resource, as `changes` records them.
CREATE FUNCTION links_of(resource uuid) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN coalesce((
        SELECT jsonb_agg(jsonb_build_object('type', l.ref_type, 'kind', l.target_kind, 'id', l.target_id))
        FROM resource_references l WHERE l.source_id = resource), '[]');
END $$;

-- The surroundings of a resource, for its explanation: its descendants, and the active resources that reference it or a
-- descendant.
--
-- A function, because its statements must find each owner and each target in its index. If most resources have the same
-- owner, or most references the same target, the planner expects a match among the first rows and would scan a table,
-- another index or a join. Other plans are therefore off in this function, and equality is written as BETWEEN, because
-- the planner expects few rows in a range that it does not know.
--
-- Both lists have at most `rows_max` + 1 entries, so that the service sees whether there are more. `tenants` is the
-- tenancy that the client sees, null for every one. Resources outside it block a deletion, too: they are returned
-- with `is_seen` = false, so that they are counted but not named. `is_inside` says whether a referrer is below the resource,
-- on any level: a DELETE of the resource takes it along, so that its reference blocks nothing. Of a large family not every
-- member is read.
-- The limits inside LATERAL make each step a lookup; that of the recursion ends it early.
CREATE FUNCTION surroundings(resource uuid, tenants jsonb, levels_max integer, rows_max bigint)
RETURNS TABLE (descendants jsonb, referrers jsonb) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET search_path FROM CURRENT AS $$
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

-- ---------------------------------------------------------------------------------------------------------------------
-- Counts: the total of a list without a search reads no resources
-- ---------------------------------------------------------------------------------------------------------------------

-- A count is the sum over 32 slots. Each connection writes one slot, so that writers seldom wait for the same row lock.
CREATE TABLE resource_counts (
    kind  text     NOT NULL,
    slot  smallint NOT NULL,
    count bigint   NOT NULL,
    PRIMARY KEY (kind, slot)
) WITH (fillfactor = 50);
-- Resources without tenancy are not counted here.
CREATE TABLE tenant_resource_counts (
    tenancy jsonb    NOT NULL CHECK (tenancy <> '{}'),
    kind    text     NOT NULL,
    slot    smallint NOT NULL,
    count   bigint   NOT NULL,
    PRIMARY KEY (tenancy, kind, slot)
) WITH (fillfactor = 50);

-- Triggers, so that no writer can forget a count. Every writer locks rows in one order, so that no two writers wait for
-- each other: resource_counts first, and each table by its key.
CREATE FUNCTION count_resources() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
CREATE TRIGGER resources_count_inserted AFTER INSERT ON resources
    REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION count_resources();
CREATE TRIGGER resources_count_deleted AFTER DELETE ON resources
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION count_resources();

CREATE FUNCTION reset_resource_counts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM resource_counts;
    DELETE FROM tenant_resource_counts;
    RETURN NULL;
END $$;
CREATE TRIGGER resources_count_truncated AFTER TRUNCATE ON resources
    FOR EACH STATEMENT EXECUTE FUNCTION reset_resource_counts();

-- For an operator who assigns resources to another tenant in SQL (docs/guides/tenancy.md). No program updates
-- `tenancy`, so the trigger costs requests nothing.
CREATE FUNCTION recount_tenants() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO tenant_resource_counts AS c (tenancy, kind, slot, count)
    SELECT t.tenancy, t.kind, pg_backend_pid() % 32, t.one
    FROM (VALUES (OLD.tenancy, OLD.kind, -1), (NEW.tenancy, NEW.kind, 1)) t (tenancy, kind, one)
    WHERE t.tenancy <> '{}' ORDER BY t.tenancy
    ON CONFLICT (tenancy, kind, slot) DO UPDATE SET count = c.count + excluded.count;
    RETURN NULL;
END $$;
CREATE TRIGGER resources_count_reassigned AFTER UPDATE OF tenancy ON resources
    FOR EACH ROW WHEN (OLD.tenancy <> NEW.tenancy) EXECUTE FUNCTION recount_tenants();

-- The triggers above count restored rows, so that rows of a restored `resource_counts` would count them again: only
-- triggers write these tables. With --disable-triggers nothing is counted, and the restored counts stay.
CREATE FUNCTION skip_restored_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END $$;
CREATE TRIGGER resource_counts_skip_restored BEFORE INSERT ON resource_counts
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION skip_restored_counts();
CREATE TRIGGER tenant_resource_counts_skip_restored BEFORE INSERT ON tenant_resource_counts
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION skip_restored_counts();

-- ---------------------------------------------------------------------------------------------------------------------
-- Changes: history and watches (docs/decisions/0074-watch.md, docs/decisions/0087-changes-are-states.md)
-- ---------------------------------------------------------------------------------------------------------------------

-- Every recorded change of a resource, with its after-image: the members of the state that differ from the state after
-- the previous change. The view `resource_states` contains complete states.
CREATE TABLE changes (
    -- Allocated while the change holds the row lock of the resource, so that changes of one resource are in the order
    -- of their commits.
    position    bigint      GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME changes_position) PRIMARY KEY,
    at          timestamptz NOT NULL,
    resource_id uuid        NOT NULL,
    -- After the change. For a removal, before it.
    revision    bigint      NOT NULL,
    generation  integer     NOT NULL,
    kind        text        NOT NULL,
    action      text        NOT NULL CHECK (action IN ('created', 'modified', 'removed')),
    -- Unset for a writer other than the service.
    actor       text,
    request_id  text,
    -- The adapter whose report made the change; unset for other changes.
    cause       text,

    -- Unset if the conditions are the same as after the previous change.
    conditions  jsonb,

    -- The declared state without the spec: either all of these columns are set, or, for a report or a removal, none.
    owner_id    uuid,
    created_at  timestamptz,
    updated_at  timestamptz,
    deleted_at  timestamptz,
    name        text,
    created_by  text,
    updated_by  text,
    deleted_by  text,
    tenancy     jsonb,
    labels      jsonb,
    links       jsonb,
    -- Unset if the spec is the same as after the previous change.
    spec        jsonb
);
SELECT compress_with_lz4('changes', 'conditions', 'spec');
CREATE INDEX changes_resource ON changes (resource_id, position);
-- Finds the few declared changes among many reports.
CREATE INDEX changes_declared ON changes (resource_id, position) WHERE updated_at IS NOT NULL;
-- For lists as of a time. Changes are stored almost in the order of their times, so that this BRIN index is small and
-- costs writers little.
CREATE INDEX changes_at ON changes USING brin (at) WITH (pages_per_range = 16);

-- What retention has removed; at most one row. Retention leaves the last change up to `position` of each existing
-- resource, with the complete state, because later changes build on it.
CREATE TABLE changes_removed (
    only_one boolean     PRIMARY KEY DEFAULT true CHECK (only_one),
    -- Changes up to this position may be removed.
    position bigint      NOT NULL,
    -- The time of the latest removed change. States as of earlier times are no longer available.
    at       timestamptz NOT NULL
);

-- The state of a resource after each of its changes. For a removal, the last state.
CREATE VIEW resource_states AS
SELECT c.position, c.at, c.action, c.actor, c.request_id, c.cause, c.resource_id AS id, c.kind, d.name, d.owner_id,
       c.generation, c.revision, d.created_at, d.created_by, d.updated_at, d.updated_by, d.deleted_at, d.deleted_by,
       coalesce(d.spec, (
           SELECT s.spec FROM changes s
           WHERE s.resource_id = c.resource_id AND s.position < d.position AND s.updated_at IS NOT NULL AND s.spec IS NOT NULL
           ORDER BY s.position DESC LIMIT 1)) AS spec,
       d.labels, d.tenancy,
       coalesce(c.conditions, (
           SELECT s.conditions FROM changes s
           WHERE s.resource_id = c.resource_id AND s.position < c.position AND s.conditions IS NOT NULL
           ORDER BY s.position DESC LIMIT 1)) AS conditions,
       d.links
FROM changes c CROSS JOIN LATERAL (
    SELECT * FROM changes d
    WHERE d.resource_id = c.resource_id AND d.position <= c.position AND d.updated_at IS NOT NULL
    ORDER BY d.position DESC LIMIT 1) d;

-- Writers that do not set `computed_revision`. Triggers, because they are other programs: `import`, and an operator's SQL.

-- Every condition with its status: `{"Reconciled=True", …}`.
CREATE FUNCTION condition_states(conditions jsonb) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN ARRAY(SELECT (c ->> 'type') || '=' || (c ->> 'status') FROM jsonb_array_elements(conditions) c);
END $$;

-- A member of one condition.
CREATE FUNCTION condition_member(conditions jsonb, kind text, member text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN jsonb_path_query_first(
        conditions, '$[*] ? (@.type == $t)', jsonb_build_object('t', kind)) ->> member;
END $$;

CREATE FUNCTION fill_condition_columns() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.condition_states := condition_states(NEW.conditions);
    NEW.reconciled_updated_at := condition_member(NEW.conditions, 'Reconciled', 'last_updated_time');
    NEW.reconciled_transition_at := condition_member(NEW.conditions, 'Reconciled', 'last_transition_time');
    NEW.last_known_generation := condition_member(NEW.conditions, 'LastKnownReconciled', 'observed_generation');
    RETURN NEW;
END $$;
CREATE TRIGGER resources_fill_inserted BEFORE INSERT ON resources
    FOR EACH ROW WHEN (NEW.computed_revision = 0) EXECUTE FUNCTION fill_condition_columns();
-- The condition is short, because PostgreSQL parses it again for every statement.
CREATE TRIGGER resources_fill_updated BEFORE UPDATE ON resources
    FOR EACH ROW WHEN (NEW.computed_revision = OLD.computed_revision) EXECUTE FUNCTION fill_condition_columns();

-- Records a row with its complete state. An update also increments the revision: entity tags contain the revision, so
-- without the increment a client with the previous state would get 304.
CREATE FUNCTION record_write_by_others() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
CREATE TRIGGER resources_record_updated BEFORE UPDATE ON resources
    FOR EACH ROW WHEN (NEW.computed_revision = OLD.computed_revision) EXECUTE FUNCTION record_write_by_others();
-- Not for the rows of a data-only restore, whose changes are restored as rows: their positions would clash with those of
-- changes that are recorded again. pg_dump and pg_restore empty the search_path of their session.
CREATE TRIGGER resources_record_inserted AFTER INSERT ON resources
    FOR EACH ROW WHEN (NEW.computed_revision = 0 AND current_setting('search_path') <> '')
    EXECUTE FUNCTION record_write_by_others();

-- What the statement has recorded itself is there already.
CREATE FUNCTION record_deletes_by_others() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO changes (at, resource_id, revision, generation, kind, action)
    SELECT clock_timestamp(), t.id, t.revision, t.generation, t.kind, 'removed'
    FROM touched t
    WHERE (SELECT c.action FROM changes c WHERE c.resource_id = t.id ORDER BY c.position DESC LIMIT 1)
          IS DISTINCT FROM 'removed';
    RETURN NULL;
END $$;
CREATE TRIGGER resources_record_deleted AFTER DELETE ON resources
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION record_deletes_by_others();

-- ---------------------------------------------------------------------------------------------------------------------
-- The audit trail: who changed which resource, when and why
-- ---------------------------------------------------------------------------------------------------------------------

-- Positions in the trail are the order (era, commit_order, sequence), in which no entry ever appears before an existing one
-- (docs/internals/database.md, "The order of the audit trail").

-- The era of new entries and changes: 0, or the time (Unix) of the last restore. Transaction numbers and positions of the state
-- before it mean nothing. A function, so that the default of the column and the statements of readers have it as a constant
-- in their plans.
CREATE FUNCTION audit_era() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT 0::bigint';

-- An entry is written in the transaction of the change and never changed. It has no foreign key to the resource, which it
-- outlives.
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
    era               bigint      NOT NULL DEFAULT audit_era(),
    -- The number of the entry's transaction, or of the latest transaction that had ended when the statement began, whichever
    -- is higher: the first may be lower than that of an earlier change of the same resource, because a transaction has its
    -- number before it waits for locks.
    commit_order      bigint      NOT NULL DEFAULT greatest(pg_current_xact_id()::text::bigint,
                                                            pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1),
    CONSTRAINT audit_pkey PRIMARY KEY (sequence)
);
CREATE FUNCTION is_valid_row(e audit_entries) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN e.action IN ('create', 'patch', 'delete', 'hard_delete', 'force_delete') AND jsonb_typeof(e.tenancy) = 'object';
END $$;
ALTER TABLE audit_entries ADD CONSTRAINT audit_entries_valid CHECK (is_valid_row(audit_entries.*));

CREATE INDEX audit_resource ON audit_entries (resource_id, sequence DESC);
CREATE INDEX audit_actor ON audit_entries (actor, sequence DESC);
CREATE INDEX audit_at ON audit_entries (at);
-- The trail of one tenant. The index does not contain entries without tenancy.
CREATE INDEX audit_tenant ON audit_entries (tenancy, sequence DESC) WHERE tenancy <> '{}';
-- For reading the trail after a position.
CREATE INDEX audit_order ON audit_entries (era, commit_order, sequence);

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

-- For an operator who has restored the database: later entries and changes come after all that a reader may have seen. Waits
-- for writers, because no entry of the earlier era may appear any more. Sets sequences that are behind their tables, too:
-- logical replication copies rows without them.
CREATE FUNCTION begin_audit_era() RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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

-- The end of the changes, from which a reader derives up to which position no further change can appear.
--
-- `drawn`, the highest allocated position, is read before `writers`. A transaction locks the table before it allocates
-- a position, and releases the lock only when its commit is visible. A transaction that allocated a position up to
-- `drawn` is therefore in `writers`, or has ended. When all of `writers` have ended, every snapshot contains all
-- changes up to `drawn`, and none can be added.
CREATE FUNCTION changes_end(OUT era bigint, OUT drawn bigint, OUT removed bigint, OUT writers text[])
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
BEGIN
    drawn := (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM changes_position s);
    writers := ARRAY(
        SELECT DISTINCT l.virtualtransaction FROM pg_locks l
        WHERE l.locktype = 'relation' AND l.relation = 'changes'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()));
    era := audit_era();
    removed := coalesce((SELECT r.position FROM changes_removed r), 0);
END $$;

-- One hash chain over the passes of the audit trail (docs/decisions/0086-audit-passes.md).
--
-- A pass covers the entries after the end of the previous pass, up to its own end. The first row covers no remaining
-- entries: it is the origin of the chain, or the last pass that retention has removed.
CREATE TABLE audit_passes (
    -- 1, 2, …; 0 for the origin.
    number           bigint      CONSTRAINT audit_passes_pkey PRIMARY KEY,
    end_era          bigint      NOT NULL,
    end_commit_order bigint      NOT NULL,
    end_sequence     bigint      NOT NULL,
    entries          integer     NOT NULL,
    -- The newest time of all entries up to the end, so that it never decreases from one pass to the next.
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

-- ---------------------------------------------------------------------------------------------------------------------
-- What else the service stores
-- ---------------------------------------------------------------------------------------------------------------------

-- Completed requests with an Idempotency-Key, with their responses (docs/decisions/0073-idempotency-keys.md).
--
-- The transaction of the change inserts the row first, so that a repeated request waits for that transaction at the
-- primary key. It then finds the response, or, if the change was rolled back, makes the change itself.
CREATE TABLE idempotency_keys (
    tenancy     jsonb       NOT NULL,
    caller      text        NOT NULL,
    key         text        NOT NULL,
    created_at  timestamptz NOT NULL,
    -- SHA-256 of the request.
    fingerprint bytea       NOT NULL,
    -- The response. NULL only inside the transaction of the change.
    status      smallint,
    tag         text,
    body        bytea,
    PRIMARY KEY (tenancy, caller, key)
);
-- Retention removes the oldest rows.
CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);

-- Leases of adapters: of several copies, only the holder works (docs/decisions/0084-leases.md).
--
-- Times are those of the database's clock, so that instances of the service need not agree on the time.
CREATE TABLE leases (
    tenancy     jsonb       NOT NULL,
    name        text        NOT NULL,
    holder      text        NOT NULL,
    acquired_at timestamptz NOT NULL,
    renewed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenancy, name)
);

-- What `hyperfleet-api import` has copied from a database of the Go HyperFleet API (docs/decisions/0085-whole-imports.md).
-- Requests never read or write this table. After the migration it can be truncated.
--
-- No foreign key to `resources`: every removal of a resource would have to read this table.
CREATE TABLE imported_resources (
    id       uuid   PRIMARY KEY,
    -- The revision that the import wrote. If `resources` has another one, the resource has been changed in this service
    -- since.
    revision bigint NOT NULL
);
