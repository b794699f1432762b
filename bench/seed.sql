-- Multiplies one cluster that was made through the API, with its reports and its audit entry, into
-- clusters :from to :to. One millisecond apart, so that the newest is the one with the highest
-- number; ids can be computed from the number (see SEEDED_ID in statements.py, id_of in
-- requests.lua). Without :reports only the clusters: lists look at nothing else.
BEGIN;
INSERT INTO resources (id, owner_id, created_at, updated_at, revision, generation, kind, name,
                       created_by, updated_by, tenancy, labels, conditions, spec)
SELECT ('01990000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, t.owner_id,
       t.created_at + (n - 3600000) * interval '1 ms', t.updated_at + (n - 3600000) * interval '1 ms',
       t.revision, t.generation, t.kind, 'bench-' || n, t.created_by, t.updated_by,
       t.tenancy, t.labels, t.conditions, t.spec
FROM resources t, generate_series(:from, :to) n
WHERE t.name = 'bench-template';

INSERT INTO adapter_reports (resource_id, created_at, reported_at, observed_generation, adapter,
                             conditions, data, metadata)
SELECT ('01990000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, t.created_at, t.reported_at,
       t.observed_generation, t.adapter, t.conditions, t.data, t.metadata
FROM adapter_reports t, generate_series(:from, :to) n
WHERE t.resource_id = (SELECT id FROM resources WHERE name = 'bench-template') AND :reports;

INSERT INTO audit (at, resource_id, generation_before, generation_after, action, actor, request_id,
                   kind, name, reason)
SELECT t.at, ('01990000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, t.generation_before,
       t.generation_after, t.action, t.actor, t.request_id, t.kind, 'bench-' || n, t.reason
FROM audit t, generate_series(:from, :to) n
WHERE t.name = 'bench-template' AND :reports;
COMMIT;
VACUUM ANALYZE;
CHECKPOINT;
