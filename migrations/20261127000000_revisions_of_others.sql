-- A row that an operator changes by hand gets another revision, because tags name it: a client that has the state before
-- would be told that nothing has changed. Such a writer leaves `computed_revision` alone. The trigger for `tenancy`, which did
-- the same for that column only, has nothing left to do.
CREATE OR REPLACE FUNCTION compute_condition_columns() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO changes (at, resource_id, kind, action, generation_after, revision, generation, updated_at,
                             updated_by, deleted_at, deleted_by, created_at, created_by, name, owner_id, tenancy,
                             spec, labels, links, conditions)
        VALUES (clock_timestamp(), OLD.id, OLD.kind, 'modified', NEW.generation, OLD.revision, OLD.generation,
                OLD.updated_at, OLD.updated_by, OLD.deleted_at, OLD.deleted_by, OLD.created_at, OLD.created_by, OLD.name,
                OLD.owner_id, OLD.tenancy, OLD.spec, OLD.labels, links_of(OLD.id), OLD.conditions);
        NEW.revision := greatest(NEW.revision, OLD.revision + 1);
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
