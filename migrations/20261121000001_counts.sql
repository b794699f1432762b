-- How many resources there are of each kind and of each tenant, so that the total of a list without a search
-- reads no resources. Triggers keep the counts.

-- A count is the sum over 32 slots. Each connection writes one slot, so that writers seldom wait for each other.
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

-- Every writer locks rows in one order, so that no two writers wait for each other: resource_counts first, and
-- each table by its key.
CREATE FUNCTION count_resources() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER resources_added AFTER INSERT ON resources
    REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION count_resources();
CREATE TRIGGER resources_removed AFTER DELETE ON resources
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION count_resources();

CREATE FUNCTION forget_resource_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM resource_counts;
    DELETE FROM tenant_resource_counts;
    RETURN NULL;
END $$;
CREATE TRIGGER resources_truncated AFTER TRUNCATE ON resources
    FOR EACH STATEMENT EXECUTE FUNCTION forget_resource_counts();

-- For an operator who assigns resources to another tenant by hand (docs/tenancy.md). No program updates
-- `tenancy`, so the trigger costs requests nothing.
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
