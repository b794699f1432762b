-- Requests with an Idempotency-Key that were carried out, with their answers (docs/decisions/0073-idempotency-keys.md).
--
-- A row is written by the transaction of the change itself, first of all: a repetition waits for that transaction at the
-- primary key. Then it finds the answer, or, if the change was rolled back, is carried out itself.
CREATE TABLE idempotency_keys (
    tenancy     jsonb       NOT NULL,
    caller      text        NOT NULL,
    key         text        NOT NULL,
    created_at  timestamptz NOT NULL,
    -- SHA-256 of what the request asks for.
    fingerprint bytea       NOT NULL,
    -- The answer. NULL inside the transaction of the change alone.
    status      smallint,
    tag         text,
    body        bytea,
    PRIMARY KEY (tenancy, caller, key)
);
-- Retention removes the oldest rows.
CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);
