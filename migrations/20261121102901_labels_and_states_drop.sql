-- Replaced by resources_labels_and_states.
DROP INDEX resources_labels;
DROP INDEX resources_condition_states;
