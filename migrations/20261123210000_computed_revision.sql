-- The columns that follow from `conditions` (`condition_states`, `reconciled_updated_at`, `reconciled_transition_at`,
-- `last_known_generation`) are given by the statement that sets `conditions`. PostgreSQL reads the expressions of computed
-- columns again for every statement, which took a tenth of a change (docs/internals/performance.md, "What a write costs").
--
-- `computed_revision` is the revision of the last statement that gave them. For a writer that leaves it alone (the release
-- before, an operator) triggers compute them.
ALTER TABLE resources ADD COLUMN computed_revision bigint NOT NULL DEFAULT 0;

-- The generation that one condition speaks of.
CREATE FUNCTION condition_generation(conditions jsonb, kind text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN jsonb_path_query_first(
        conditions, '$[*] ? (@.type == $t)', jsonb_build_object('t', kind)) ->> 'observed_generation';
END $$;

CREATE FUNCTION compute_condition_columns() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.conditions = OLD.conditions THEN
        RETURN NEW;
    END IF;
    NEW.condition_states := condition_states(NEW.conditions);
    NEW.reconciled_updated_at := condition_time(NEW.conditions, 'Reconciled', 'last_updated_time');
    NEW.reconciled_transition_at := condition_time(NEW.conditions, 'Reconciled', 'last_transition_time');
    NEW.last_known_generation := condition_generation(NEW.conditions, 'LastKnownReconciled');
    RETURN NEW;
END $$;
