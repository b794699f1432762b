-- Leases of adapters: of several copies, the holder works (docs/decisions/0084-leases.md).
--
-- Times are those of the database's clock, so that instances of the service need not agree on the time.
CREATE TABLE leases (
    tenancy     jsonb       NOT NULL,
    name        text        NOT NULL,
    holder      text        NOT NULL,
    acquired_at timestamptz NOT NULL,
    renewed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenancy, name)
);
