-- Clusters :from to :to as those of childless.sql, each with :children node pools that two adapters have reported on.
\ir childless.sql
CREATE TEMPORARY TABLE pools AS
SELECT gen_random_uuid() AS id, ('01990002-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid AS owner_id, p AS number
FROM generate_series(:from, :to) n, generate_series(1, :children) p;

INSERT INTO resources (id, owner_id, created_at, updated_at, revision, generation, kind, name, created_by, updated_by,
                       labels, conditions, spec)
SELECT p.id, p.owner_id, t.created_at, t.updated_at, t.revision, t.generation, 'NodePool', 'pool-' || p.number,
       t.created_by, t.updated_by, t.labels, t.conditions, '{"replicas": 3, "machine": {"type": "n2-standard-8"}}'
FROM pools p, resources t WHERE t.name = 'bench-template';

INSERT INTO adapter_reports (resource_id, created_at, reported_at, observed_generation, adapter, conditions, data, metadata)
SELECT p.id, t.created_at, t.reported_at, t.observed_generation, t.adapter, t.conditions, t.data, t.metadata
FROM pools p, adapter_reports t
WHERE t.resource_id = (SELECT id FROM resources WHERE name = 'bench-template') AND t.adapter IN ('validation', 'hypershift');
