-- What `hyperfleet-api import` has taken over from a database of the older service. Requests never read or write
-- these tables; once the move is over, both may be emptied.

-- The database that the import reads; at most one row.
CREATE TABLE imports (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    -- Which server and database. Transaction numbers of another one mean nothing.
    source   text    NOT NULL,
    -- Every imported resource is as the source had it when this transaction began, or later. The next run reads what
    -- later transactions have written.
    since    bigint  NOT NULL
);

-- No foreign key to `resources`: it would cost every removal of a resource a look into this table.
CREATE TABLE imported_resources (
    id          uuid    PRIMARY KEY,
    -- As the import left it. Another one in `resources` says that the resource was changed here since.
    revision    bigint  NOT NULL,
    -- False until its references are written, and while a part of it is refused: the next run tries again.
    is_complete boolean NOT NULL
);
