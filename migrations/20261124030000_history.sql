-- History: earlier states of resources, read from their changes (docs/decisions/0078-history.md).

-- The adapter whose report made the change; unset for other changes.
ALTER TABLE changes ADD COLUMN cause text;

-- The time of the latest change that retention has removed: states before it are not known any more.
ALTER TABLE changes_removed ADD COLUMN at timestamptz;

-- Of resources that are older than this table, the states before now were never recorded.
INSERT INTO changes_removed (upto, at)
SELECT 0, clock_timestamp() WHERE EXISTS (SELECT FROM resources) OR EXISTS (SELECT FROM changes_removed)
ON CONFLICT (only_one) DO UPDATE SET at = excluded.at;

-- For lists of a moment. Changes are stored nearly in the order of their times, so that this index of ranges is small, and
-- writers hardly notice it.
CREATE INDEX changes_at ON changes USING brin (at) WITH (pages_per_range = 16);
