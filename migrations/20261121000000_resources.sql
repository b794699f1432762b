-- A resource is one row whatever its kind: kinds are configuration, not tables.
-- Conditions and labels live in the row, so that every read is one row and every report one update.
CREATE TABLE resources (
    id          uuid        PRIMARY KEY,
    -- NO ACTION, checked at the end of the statement: a whole family may go in one DELETE, a parent alone never.
    owner_id    uuid        REFERENCES resources (id),
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    deleted_at  timestamptz,
    -- Every write of the row adds one, reports included: what a writer compares before it writes.
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
    CONSTRAINT resources_deletion_is_whole CHECK ((deleted_at IS NULL) = (deleted_by IS NULL)),
    CONSTRAINT resources_not_own_owner CHECK (owner_id <> id)
) WITH (fillfactor = 80); -- room for the next report beside the row it updates

-- Names are unique among active rows: of one tenant for roots, of one owner for children.
CREATE UNIQUE INDEX resources_root_name ON resources (kind, name, tenancy)
    WHERE owner_id IS NULL AND deleted_at IS NULL;
CREATE UNIQUE INDEX resources_child_name ON resources (owner_id, kind, name)
    WHERE owner_id IS NOT NULL AND deleted_at IS NULL;

-- Newest first, without sorting and without reading the rows before the page.
CREATE INDEX resources_newest_of_kind ON resources (kind, created_at DESC, id DESC) INCLUDE (deleted_at);
CREATE INDEX resources_newest ON resources (created_at DESC, id DESC) INCLUDE (deleted_at);
CREATE INDEX resources_newest_of_owner ON resources (owner_id, kind, created_at DESC, id DESC) INCLUDE (deleted_at)
    WHERE owner_id IS NOT NULL;
-- Finalizing rows are few: totals of active rows are those of all rows less these.
CREATE INDEX resources_finalizing ON resources (kind) WHERE deleted_at IS NOT NULL;

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

-- Links between resources that do not own each other. A target with a link cannot be removed.
CREATE TABLE resource_references (
    source_id   uuid NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    target_id   uuid NOT NULL REFERENCES resources (id),
    ref_type    text NOT NULL CHECK (ref_type <> ''),
    target_kind text NOT NULL,
    PRIMARY KEY (source_id, ref_type, target_id)
);
CREATE INDEX resource_references_target ON resource_references (target_id);

-- How many rows there are of each kind, so that totals need not count them. Many slots a kind, so
-- that writers seldom meet on one.
CREATE TABLE resource_counts (
    kind  text     NOT NULL,
    slot  smallint NOT NULL,
    count bigint   NOT NULL,
    PRIMARY KEY (kind, slot)
) WITH (fillfactor = 50);

CREATE FUNCTION count_resources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO resource_counts AS c (kind, slot, count)
        SELECT kind, pg_backend_pid() % 32, count(*) FROM touched GROUP BY kind ORDER BY kind
        ON CONFLICT (kind, slot) DO UPDATE SET count = c.count + excluded.count;
    ELSE
        INSERT INTO resource_counts AS c (kind, slot, count)
        SELECT kind, pg_backend_pid() % 32, -count(*) FROM touched GROUP BY kind ORDER BY kind
        ON CONFLICT (kind, slot) DO UPDATE SET count = c.count + excluded.count;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER resources_added AFTER INSERT ON resources
    REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION count_resources();
CREATE TRIGGER resources_removed AFTER DELETE ON resources
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION count_resources();

CREATE FUNCTION forget_resource_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM resource_counts;
    RETURN NULL;
END $$;
CREATE TRIGGER resources_truncated AFTER TRUNCATE ON resources
    FOR EACH STATEMENT EXECUTE FUNCTION forget_resource_counts();
