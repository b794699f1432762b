-- Functions find the tables whatever the search_path of the session: pg_dump and pg_restore empty it, as do logical replication
-- and the privileged commands of the server. Functions that name nothing but parts of PostgreSQL need no setting: is_whole(),
-- which every write calls, and audit_era(), which the server could not inline.

-- The schema that the migrations run in, for this transaction, and for the functions below by FROM CURRENT.
SELECT set_config('search_path', relnamespace::regnamespace::text || ', pg_temp', true)
FROM pg_class WHERE oid = 'resources'::regclass;

-- As before, and sets sequences that are behind their tables: logical replication copies rows without them.
CREATE OR REPLACE FUNCTION begin_audit_era() RETURNS bigint LANGUAGE plpgsql AS $$
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
    FROM changes_position s, (SELECT greatest(max(c.position), (SELECT r.upto FROM changes_removed r)) AS newest
                              FROM changes c) t
    WHERE t.newest > CASE WHEN s.is_called THEN s.last_value ELSE 0 END;
    RETURN begun;
END $$;

ALTER FUNCTION begin_audit_era() SET search_path FROM CURRENT;
ALTER FUNCTION changes_end() SET search_path FROM CURRENT;
ALTER FUNCTION compute_condition_columns() SET search_path FROM CURRENT;
ALTER FUNCTION count_children(uuid) SET search_path FROM CURRENT;
ALTER FUNCTION count_resources() SET search_path FROM CURRENT;
ALTER FUNCTION forget_resource_counts() SET search_path FROM CURRENT;
ALTER FUNCTION has_dependents(uuid) SET search_path FROM CURRENT;
ALTER FUNCTION has_tenancy(uuid, jsonb) SET search_path FROM CURRENT;
ALTER FUNCTION links_of(uuid) SET search_path FROM CURRENT;
ALTER FUNCTION record_added() SET search_path FROM CURRENT;
ALTER FUNCTION record_removal() SET search_path FROM CURRENT;
ALTER FUNCTION recount_tenants() SET search_path FROM CURRENT;
ALTER FUNCTION surroundings(uuid, jsonb, integer, bigint) SET search_path FROM CURRENT;
