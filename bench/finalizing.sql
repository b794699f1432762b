-- Clusters :from to :to as those of childless.sql that wait for their last adapter only.
\ir childless.sql
UPDATE resources SET generation = 2, deleted_at = updated_at, deleted_by = updated_by
WHERE id BETWEEN ('01990002-0000-7000-8000-' || lpad((:from)::text, 12, '0'))::uuid
             AND ('01990002-0000-7000-8000-' || lpad((:to)::text, 12, '0'))::uuid;
UPDATE adapter_reports SET observed_generation = 2,
    conditions = conditions || jsonb_build_array(conditions -> 0 || '{"type": "Finalized", "status": "True"}')
WHERE resource_id BETWEEN ('01990002-0000-7000-8000-' || lpad((:from)::text, 12, '0'))::uuid
                      AND ('01990002-0000-7000-8000-' || lpad((:to)::text, 12, '0'))::uuid
  AND adapter <> 'hypershift';
