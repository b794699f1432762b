-- The same for the counts of tenants.
CREATE TRIGGER tenant_resource_counts_written_by_triggers BEFORE INSERT ON tenant_resource_counts
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION ignore_restored_counts();
