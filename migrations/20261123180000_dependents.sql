-- What depends on a resource, as functions: where a statement may look, but seldom does, a function that it does not
-- call costs nothing, while a part of a plan costs time whether it runs or not.

-- Whether a resource owns others, or others link to it: the last check of a deletion that is one statement.
--
-- VOLATILE, so that it sees what was committed before it is called: the statement that calls it has locked the row of
-- the resource by then, which may have taken a while, and itself sees only what was there when it began.
CREATE FUNCTION has_dependents(resource uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM resources r WHERE r.owner_id = resource)
        OR EXISTS (SELECT FROM resource_references l WHERE l.target_id = resource);
END $$;

-- How many resources it owns, counted up to two. Sees what the statement sees that calls it. COST 1 as of `has_tenancy`.
CREATE FUNCTION count_children(resource uuid) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1 AS $$
BEGIN
    RETURN (SELECT count(*) FROM (SELECT FROM resources r WHERE r.owner_id = resource LIMIT 2) r);
END $$;
