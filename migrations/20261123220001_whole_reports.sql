-- The same for reports.
CREATE FUNCTION is_whole(r adapter_reports) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN r.observed_generation >= 1 AND r.adapter <> '' AND jsonb_typeof(r.conditions) = 'array'
       AND jsonb_typeof(r.data) = 'object' AND jsonb_typeof(r.metadata) = 'object';
END $$;

-- stand-in: the constraint adapter_reports_are_whole, which asks the same
ALTER TABLE adapter_reports
    ADD CONSTRAINT adapter_reports_are_whole CHECK (is_whole(adapter_reports.*)) NOT VALID,
    DROP CONSTRAINT adapter_reports_observed_generation_check,
    DROP CONSTRAINT adapter_reports_adapter_check,
    DROP CONSTRAINT adapter_reports_conditions_check,
    DROP CONSTRAINT adapter_reports_data_check,
    DROP CONSTRAINT adapter_reports_metadata_check;
