-- The checks of dependents read indexes, however many of all rows depend on one resource.
--
-- Where most resources have the same owner, the planner expects a child of any resource among the first rows of the
-- table, and reads it from its beginning: for a resource without children that is the whole table.

CREATE OR REPLACE FUNCTION has_dependents(resource uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
BEGIN
    RETURN EXISTS (SELECT FROM resources r WHERE r.owner_id = resource)
        OR EXISTS (SELECT FROM resource_references l WHERE l.target_id = resource);
END $$;

CREATE OR REPLACE FUNCTION count_children(resource uuid) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1
SET enable_seqscan = off AS $$
BEGIN
    RETURN (SELECT count(*) FROM (SELECT FROM resources r WHERE r.owner_id = resource LIMIT 2) r);
END $$;
