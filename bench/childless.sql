-- Clusters :from to :to for requests that use them up, with the reports of the one that bench/seed.sql multiplies.
INSERT INTO resources (id, created_at, updated_at, revision, generation, kind, name, created_by, updated_by, labels,
                       conditions, spec)
SELECT ('01990002-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, t.created_at, t.updated_at, t.revision,
       t.generation, t.kind, 'supply-' || n, t.created_by, t.updated_by, t.labels, t.conditions, t.spec
FROM resources t, generate_series(:from, :to) n WHERE t.name = 'bench-template';

INSERT INTO adapter_reports (resource_id, created_at, reported_at, observed_generation, adapter, conditions, data, metadata)
SELECT ('01990002-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, t.created_at, t.reported_at, t.observed_generation,
       t.adapter, t.conditions, t.data, t.metadata
FROM adapter_reports t, generate_series(:from, :to) n
WHERE t.resource_id = (SELECT id FROM resources WHERE name = 'bench-template');
