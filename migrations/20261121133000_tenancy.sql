-- What it takes to hold every statement to the resources of one tenant (server.tenant.enforce).
--
-- Rows without a tenancy are in none of these indexes and in no row of the new table: a service without
-- tenancy pays for none of it but the look that the triggers take. The program before this one goes
-- on as it is.

-- Newest first, without sorting and without reading what other tenants have.
CREATE INDEX resources_newest_of_tenant_kind ON resources (tenancy, kind, created_at DESC, id DESC)
    INCLUDE (deleted_at) WHERE tenancy <> '{}';
CREATE INDEX resources_newest_of_tenant ON resources (tenancy, created_at DESC, id DESC)
    INCLUDE (deleted_at) WHERE tenancy <> '{}';
CREATE INDEX resources_finalizing_of_tenant ON resources (tenancy, kind)
    WHERE deleted_at IS NOT NULL AND tenancy <> '{}';

-- How many rows there are of each kind and tenant, as resource_counts has it for each kind.
CREATE TABLE tenant_resource_counts (
    tenancy jsonb    NOT NULL CHECK (tenancy <> '{}'),
    kind    text     NOT NULL,
    slot    smallint NOT NULL,
    count   bigint   NOT NULL,
    PRIMARY KEY (tenancy, kind, slot)
) WITH (fillfactor = 50);

CREATE OR REPLACE FUNCTION count_resources() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    one CONSTANT bigint := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    -- Both tables in this order, and each by its key: no two writers wait for each other.
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

CREATE OR REPLACE FUNCTION forget_resource_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM resource_counts;
    DELETE FROM tenant_resource_counts;
    RETURN NULL;
END $$;

-- No program before this one writes a tenancy, but whoever did by hand is counted. The indexes above keep
-- writers away until this is committed.
INSERT INTO tenant_resource_counts (tenancy, kind, slot, count)
SELECT tenancy, kind, 0, count(*) FROM resources WHERE tenancy <> '{}' GROUP BY tenancy, kind;

-- Whether a resource is of this tenant: for the owner in a path, asked of those alone who do not see all.
-- The cost is not true: with the true one the planner would rather plan anew for each request, for most
-- of which this is never called.
CREATE FUNCTION has_tenancy(resource uuid, wanted jsonb) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1 AS $$
BEGIN
    RETURN EXISTS (SELECT FROM resources r WHERE r.id = resource AND r.tenancy = wanted);
END $$;

-- An operator may give resources to a tenant by hand (docs/tenancy.md): totals stay true. Fires where
-- `tenancy` is set, which no program does.
CREATE FUNCTION recount_tenants() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tenant_resource_counts AS c (tenancy, kind, slot, count)
    SELECT t.tenancy, t.kind, pg_backend_pid() % 32, t.one
    FROM (VALUES (OLD.tenancy, OLD.kind, -1), (NEW.tenancy, NEW.kind, 1)) t (tenancy, kind, one)
    WHERE t.tenancy <> '{}' ORDER BY t.tenancy
    ON CONFLICT (tenancy, kind, slot) DO UPDATE SET count = c.count + excluded.count;
    RETURN NULL;
END $$;
CREATE TRIGGER resources_given AFTER UPDATE OF tenancy ON resources
    FOR EACH ROW WHEN (OLD.tenancy <> NEW.tenancy) EXECUTE FUNCTION recount_tenants();
