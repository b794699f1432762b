-- Records the changes of writers that do not write `changes` themselves: the release before, `import`, an operator. Such a
-- writer is known by `computed_revision`, which it leaves alone. The whole row is stored as it was.

CREATE FUNCTION links_of(resource uuid) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((
        SELECT jsonb_agg(jsonb_build_object('type', l.ref_type, 'kind', l.target_kind, 'id', l.target_id))
        FROM resource_references l WHERE l.source_id = resource), '[]');
END $$;

-- As before, and records updates: the trigger that calls it for them fires for such a writer only, and holds the row's lock.
CREATE OR REPLACE FUNCTION compute_condition_columns() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO changes (at, resource_id, kind, action, generation_after, revision, generation, updated_at,
                             updated_by, deleted_at, deleted_by, created_at, created_by, name, owner_id, tenancy,
                             spec, labels, links, conditions)
        VALUES (clock_timestamp(), OLD.id, OLD.kind, 'modified', NEW.generation, OLD.revision, OLD.generation,
                OLD.updated_at, OLD.updated_by, OLD.deleted_at, OLD.deleted_by, OLD.created_at, OLD.created_by, OLD.name,
                OLD.owner_id, OLD.tenancy, OLD.spec, OLD.labels, links_of(OLD.id), OLD.conditions);
        IF NEW.conditions = OLD.conditions THEN
            RETURN NEW;
        END IF;
    END IF;
    NEW.condition_states := condition_states(NEW.conditions);
    NEW.reconciled_updated_at := condition_time(NEW.conditions, 'Reconciled', 'last_updated_time');
    NEW.reconciled_transition_at := condition_time(NEW.conditions, 'Reconciled', 'last_transition_time');
    NEW.last_known_generation := condition_generation(NEW.conditions, 'LastKnownReconciled');
    RETURN NEW;
END $$;

CREATE FUNCTION record_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes (at, resource_id, kind, action, generation_after)
    SELECT clock_timestamp(), t.id, t.kind, 'created', t.generation FROM touched t WHERE t.computed_revision = 0;
    RETURN NULL;
END $$;
CREATE TRIGGER resources_added_by_others AFTER INSERT ON resources
    REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION record_added();
