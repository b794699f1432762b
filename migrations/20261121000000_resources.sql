-- Resources, what adapters report about them, and the links between them.
--
-- A resource is one row, whatever its kind: kinds are configuration, not tables. Labels and conditions are
-- in that row, so that a read is one row and a report is one update.

-- These functions compute columns from `conditions`. They are in PL/pgSQL, which keeps its plans: PostgreSQL
-- plans a function in SQL again for every statement that calls it, which would be the largest cost of an update.

-- Every condition with its status: `{"Reconciled=True", …}`.
CREATE FUNCTION condition_states(conditions jsonb) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN ARRAY(SELECT (c ->> 'type') || '=' || (c ->> 'status') FROM jsonb_array_elements(conditions) c);
END $$;

-- A time of one condition. Immutable whatever the time zone of the session: the texts end with `Z`.
CREATE FUNCTION condition_time(conditions jsonb, kind text, member text) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN jsonb_path_query_first(
        conditions, '$[*] ? (@.type == $t)', jsonb_build_object('t', kind)) ->> member;
END $$;

CREATE TABLE resources (
    id          uuid        PRIMARY KEY,
    -- NO ACTION is checked at the end of the statement: one DELETE may remove a parent with all its children,
    -- but never the parent alone.
    owner_id    uuid        REFERENCES resources (id),
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    deleted_at  timestamptz,
    -- Incremented by every write, reports included. A writer saves only if it is unchanged since the read.
    revision    bigint      NOT NULL DEFAULT 1,
    generation  integer     NOT NULL CHECK (generation >= 1),
    kind        text        NOT NULL CHECK (kind <> ''),
    name        text        NOT NULL CHECK (name <> ''),
    created_by  text        NOT NULL,
    updated_by  text        NOT NULL,
    deleted_by  text,
    tenancy     jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(tenancy) = 'object'),
    labels      jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(labels) = 'object'),
    conditions  jsonb       NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(conditions) = 'array'),
    spec        jsonb       NOT NULL CHECK (jsonb_typeof(spec) = 'object'),
    -- What searches ask about conditions. The database computes these columns, so they never contradict
    -- `conditions`. A report that changes none of them changes no index (HOT update).
    condition_states         text[] NOT NULL
        GENERATED ALWAYS AS (condition_states(conditions)) STORED,
    reconciled_updated_at    timestamptz
        GENERATED ALWAYS AS (condition_time(conditions, 'Reconciled', 'last_updated_time')) STORED,
    reconciled_transition_at timestamptz
        GENERATED ALWAYS AS (condition_time(conditions, 'Reconciled', 'last_transition_time')) STORED,
    last_known_generation    bigint
        GENERATED ALWAYS AS ((jsonb_path_query_first(conditions,
            '$[*] ? (@.type == "LastKnownReconciled").observed_generation') #>> '{}')::bigint) STORED,
    CONSTRAINT resources_deletion_is_whole CHECK ((deleted_at IS NULL) = (deleted_by IS NULL)),
    CONSTRAINT resources_not_own_owner CHECK (owner_id <> id)
) WITH (fillfactor = 80); -- leaves space in the page for the next version of the row

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

-- Whether a resource belongs to a tenant: checks the owner in a nested path, for callers who see one tenant.
-- COST 1 is lower than the real cost: with the real one PostgreSQL would plan the statement for each request,
-- though most requests never call the function.
CREATE FUNCTION has_tenancy(resource uuid, wanted jsonb) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1 AS $$
BEGIN
    RETURN EXISTS (SELECT FROM resources r WHERE r.id = resource AND r.tenancy = wanted);
END $$;

-- The latest accepted report of each adapter on each resource.
CREATE TABLE adapter_reports (
    resource_id         uuid        NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    created_at          timestamptz NOT NULL,
    reported_at         timestamptz NOT NULL,
    observed_generation integer     NOT NULL CHECK (observed_generation >= 1),
    adapter             text        NOT NULL CHECK (adapter <> ''),
    conditions          jsonb       NOT NULL CHECK (jsonb_typeof(conditions) = 'array'),
    data                jsonb       NOT NULL CHECK (jsonb_typeof(data) = 'object'),
    metadata            jsonb       CHECK (jsonb_typeof(metadata) = 'object'),
    PRIMARY KEY (resource_id, adapter)
) WITH (fillfactor = 80);

-- Links between resources that do not own each other. A resource that a link points to cannot be removed.
CREATE TABLE resource_references (
    source_id   uuid NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    target_id   uuid NOT NULL REFERENCES resources (id),
    ref_type    text NOT NULL CHECK (ref_type <> ''),
    target_kind text NOT NULL,
    PRIMARY KEY (source_id, ref_type, target_id)
);
CREATE INDEX resource_references_target ON resource_references (target_id);
