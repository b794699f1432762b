-- Multiplies one cluster that was made through the API, with its reports and its audit entry, into
-- clusters :from to :to of :clusters. One millisecond apart, so that the newest is the one with the
-- highest number; ids can be computed from the number (see SEEDED_ID in statements.py, id_of in
-- requests.lua). Without :reports only the clusters: lists look at nothing else.
--
-- What searches.py looks for is spread evenly, and as much of it in few clusters as in many:
--   status of Reconciled is False    1,000 clusters, of which 100 have the label shard = 3
--   name begins with rare-             100
--   label cohort = early               100
--   Reconciled was last seen in 2020   100
-- All others are reconciled, in shards 0 to 99 (one in a hundred has shard = 3, too), and were last
-- seen within the last hours, each at another moment.
BEGIN;
INSERT INTO resources (id, owner_id, created_at, updated_at, revision, generation, kind, name,
                       created_by, updated_by, tenancy, labels, conditions, spec)
WITH template AS (
    SELECT r.*, (SELECT ordinality - 1 FROM jsonb_array_elements(r.conditions) WITH ORDINALITY c
                 WHERE c.value ->> 'type' = 'Reconciled') AS place
    FROM resources r WHERE r.name = 'bench-template'
), numbers AS (
    SELECT n, n % (:clusters / 1000) = 5 AND n / (:clusters / 1000) < 1000 AS is_false,
           n / (:clusters / 1000) % 10 * 10 + 3 AS shard_of_false,
           n % (:clusters / 100) = 0 AND n / (:clusters / 100) <= 100 AS is_rare,
           n % (:clusters / 100) = 2 AND n / (:clusters / 100) < 100 AS is_early,
           n % (:clusters / 100) = 4 AND n / (:clusters / 100) < 100 AS is_stale
    FROM generate_series(:from, :to) n
)
SELECT ('01990000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, t.owner_id,
       t.created_at + (n - 3600000) * interval '1 ms', t.updated_at + (n - 3600000) * interval '1 ms',
       t.revision, t.generation, t.kind,
       CASE WHEN is_rare THEN 'rare-' ELSE 'bench-' END || n, t.created_by, t.updated_by, t.tenancy,
       t.labels || jsonb_build_object('shard', (CASE WHEN is_false THEN shard_of_false ELSE n % 100 END)::text)
                || CASE WHEN is_early THEN '{"cohort": "early"}'::jsonb ELSE '{}' END,
       jsonb_set(
           jsonb_set(t.conditions, ARRAY[place::text, 'status'], to_jsonb(CASE WHEN is_false THEN 'False' ELSE 'True' END)),
           ARRAY[place::text, 'last_updated_time'],
           to_jsonb(to_char(CASE WHEN is_stale THEN '2020-01-01'::timestamp
                            ELSE (t.created_at AT TIME ZONE 'UTC') + (n - 3600000) * interval '1 ms' END,
                            'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))),
       t.spec
FROM template t, numbers;

INSERT INTO adapter_reports (resource_id, created_at, reported_at, observed_generation, adapter,
                             conditions, data, metadata)
SELECT ('01990000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, t.created_at, t.reported_at,
       t.observed_generation, t.adapter, t.conditions, t.data, t.metadata
FROM adapter_reports t, generate_series(:from, :to) n
WHERE t.resource_id = (SELECT id FROM resources WHERE name = 'bench-template') AND :reports;

INSERT INTO audit_entries (at, resource_id, generation_before, generation_after, action, actor, request_id,
                   kind, name, reason)
SELECT t.at, ('01990000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, t.generation_before,
       t.generation_after, t.action, t.actor, t.request_id, t.kind, 'bench-' || n, t.reason
FROM audit_entries t, generate_series(:from, :to) n
WHERE t.name = 'bench-template' AND :reports;
COMMIT;
