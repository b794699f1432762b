-- For lists of a moment: the changes by which resources came, went, or were rewritten by a writer other than the service. All
-- others leave a resource at its place in a list by creation, name or owner. Nearly the only ones are creations and removals, so
-- that no other request writes this index (src/storage/postgres/past_walked.rs).
CREATE INDEX changes_whole ON changes (at, kind) WHERE action = 'created' OR created_at IS NOT NULL;
