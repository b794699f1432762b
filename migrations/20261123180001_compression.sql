-- Compresses large values with lz4 if the server has it, which takes less processor time than pglz, the default
-- (docs/internals/performance.md, "What a write costs"). Existing rows do not change until they are written again.
CREATE FUNCTION compress_with_lz4(target regclass, VARIADIC columns name[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE (SELECT format('ALTER TABLE %s ', target)
                    || string_agg(format('ALTER COLUMN %I SET COMPRESSION lz4', c), ', ') FROM unnest(columns) c);
EXCEPTION WHEN feature_not_supported THEN
    NULL; -- a server that was built without it
END $$;
SELECT compress_with_lz4('resources', 'conditions', 'spec');
