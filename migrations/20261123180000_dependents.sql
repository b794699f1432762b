-- The dependents of a resource, as functions: a function that a statement does not call costs nothing, while a part of
-- its plan costs time whether it runs or not.

-- Whether a resource has children, or others reference it: the last check of a deletion in one statement.
--
-- VOLATILE, so that it sees everything that was committed before its call. By then the calling statement has locked the
-- row of the resource, which may have taken a while; the statement itself sees only rows from before its start.
CREATE FUNCTION has_dependents(resource uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM resources r WHERE r.owner_id = resource)
        OR EXISTS (SELECT FROM resource_references l WHERE l.target_id = resource);
END $$;

-- Number of children, counted up to two. Sees the same rows as the calling statement. COST 1 as for `has_tenancy`.
CREATE FUNCTION count_children(resource uuid) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1 AS $$
BEGIN
    RETURN (SELECT count(*) FROM (SELECT FROM resources r WHERE r.owner_id = resource LIMIT 2) r);
END $$;
