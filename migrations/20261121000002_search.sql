-- What lists are searched for, found without reading the rest.

-- The answers that pollers wait for, in columns of their own: made from the conditions by the
-- database, so that they cannot differ from them. A report that changes none of these touches no
-- index: PostgreSQL then keeps the new row beside the old one (HOT).

-- In PL/pgSQL, which keeps the plan of what is in it: functions in SQL are planned anew by every
-- statement that calls them, which costs an update more than all else here.

-- `{"Reconciled=True", …}`: every condition with its status.
CREATE FUNCTION condition_states(conditions jsonb) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN ARRAY(SELECT (c ->> 'type') || '=' || (c ->> 'status') FROM jsonb_array_elements(conditions) c);
END $$;

-- Immutable in truth: times in conditions are UTC and say so, whatever the session's zone.
CREATE FUNCTION condition_time(conditions jsonb, kind text, member text) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN jsonb_path_query_first(
        conditions, '$[*] ? (@.type == $t)', jsonb_build_object('t', kind)) ->> member;
END $$;

ALTER TABLE resources
    ADD condition_states text[] NOT NULL
        GENERATED ALWAYS AS (condition_states(conditions)) STORED,
    ADD reconciled_updated_at timestamptz
        GENERATED ALWAYS AS (condition_time(conditions, 'Reconciled', 'last_updated_time')) STORED,
    ADD reconciled_transition_at timestamptz
        GENERATED ALWAYS AS (condition_time(conditions, 'Reconciled', 'last_transition_time')) STORED,
    ADD last_known_generation bigint
        GENERATED ALWAYS AS ((jsonb_path_query_first(conditions,
            '$[*] ? (@.type == "LastKnownReconciled").observed_generation') #>> '{}')::bigint) STORED;

CREATE INDEX resources_labels ON resources USING gin (labels jsonb_path_ops);
CREATE INDEX resources_condition_states ON resources USING gin (condition_states);
CREATE INDEX resources_reconciled_updated ON resources (kind, reconciled_updated_at);
CREATE INDEX resources_reconciled_transition ON resources (kind, reconciled_transition_at);
CREATE INDEX resources_last_known_generation ON resources (kind, last_known_generation);
-- For equality and for `like 'prefix%'`, in whatever order the database sorts texts.
CREATE INDEX resources_name ON resources (kind, name text_pattern_ops);
