-- The triggers of `resources` count restored rows, so that rows of a restored `resource_counts` would count them again: only
-- triggers write these tables. With --disable-triggers nothing is counted, and the restored counts stay.
CREATE FUNCTION ignore_restored_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END $$;
CREATE TRIGGER resource_counts_written_by_triggers BEFORE INSERT ON resource_counts
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION ignore_restored_counts();
