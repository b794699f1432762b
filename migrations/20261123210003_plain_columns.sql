-- stand-in: the triggers resources_made_without_columns and resources_changed_without_columns compute the same
ALTER TABLE resources
    ALTER COLUMN condition_states DROP EXPRESSION,
    ALTER COLUMN reconciled_updated_at DROP EXPRESSION,
    ALTER COLUMN reconciled_transition_at DROP EXPRESSION,
    ALTER COLUMN last_known_generation DROP EXPRESSION;
