//! Numbers in prose are the constants of the code.

use std::fs;

use crate::constants::value;
use crate::joined;
use crate::quantities::quantities;

/// What a page says, and the constants that its numbers are, in their order: file and name.
struct Claim {
    page: &'static str,
    phrase: &'static str,
    constants: &'static [(&'static str, &'static str)],
}

const fn says(
    page: &'static str,
    phrase: &'static str,
    constants: &'static [(&'static str, &'static str)],
) -> Claim {
    Claim {
        page,
        phrase,
        constants,
    }
}

const CONNECTION: &str = "crates/server-kit/src/http/connection.rs";
const ADMISSION: &str = "crates/server-kit/src/http/admission.rs";
const MEMORY: &str = "crates/server-kit/src/http/memory.rs";
const SOCKETS: &str = "crates/server-kit/src/sockets.rs";
const REDACTION: &str = "crates/server-kit/src/http/telemetry/redaction.rs";
const KIT_PROBLEM: &str = "crates/server-kit/src/http/problem.rs";
const SIDE: &str = "crates/server-kit/src/side.rs";
const QUEUE: &str = "crates/server-kit/src/telemetry/queue.rs";
const POOL: &str = "crates/storage/src/pool.rs";
const LANE: &str = "crates/storage/src/lane.rs";
const SLOW: &str = "crates/storage/src/measure.rs";
const JSON: &str = "crates/domain/src/json_limits.rs";
const REPORT: &str = "crates/domain/src/report.rs";
const EXPLAIN: &str = "crates/domain/src/explain/surroundings.rs";
const SEARCH: &str = "crates/domain/src/tsl/mod.rs";
const TAIL: &str = "crates/service/src/app/watch/tail.rs";
const KEYS: &str = "crates/auth/src/fetch.rs";
const UNIT_FILE: &str = "crates/fleet-model/src/unit/malformed.rs";

const DEPLOYMENT: &str = "docs/operations/deployment.md";
const MONITORING: &str = "docs/operations/monitoring.md";
const DATABASE: &str = "docs/internals/database.md";
const API: &str = "docs/reference/api.md";
const LIMITS: &str = "docs/reference/limits.md";
const FLEET_API: &str = "docs/reference/fleet-api.md";
const RULES: &str = "docs/guides/derived-conditions.md";
const TOKENS: &str = "docs/guides/authentication.md";

/// A claim that is reworded is reworded here too.
#[rustfmt::skip]
const CLAIMS: &[Claim] = &[
    // Connections and requests.
    says(DEPLOYMENT, "After 1,000 requests on one connection", &[(CONNECTION, "REQUESTS_MAX")]),
    says(DEPLOYMENT, "After 2,000 the connection is closed", &[(CONNECTION, "REQUESTS_END")]),
    says(LIMITS, "for each 16 KiB that have arrived", &[(CONNECTION, "BYTES_PER_SECOND_MIN")]),
    says(DEPLOYMENT, "4,096 wait in the kernel", &[(SOCKETS, "BACKLOG")]),
    says(DEPLOYMENT, "connection takes two files", &[(SOCKETS, "DESCRIPTORS_EACH")]),
    says(DEPLOYMENT, "and 256 are reserved", &[(SOCKETS, "DESCRIPTORS_SPARE")]),
    says(DEPLOYMENT, "below 1,000. Health and metrics accept 1,024 connections", &[(SOCKETS, "CONNECTIONS_FEW"), (SOCKETS, "SIDE_CONNECTIONS_MAX")]),
    says(DEPLOYMENT, "health and metrics are 5 s", &[(SIDE, "IDLE_TIME")]),
    says(DEPLOYMENT, "in at most 2 s each", &[(SIDE, "DRAIN_TIME")]),
    says(DEPLOYMENT, "have 4 s to be sent", &[("crates/server-kit/src/telemetry/traces.rs", "FLUSH_TIME_MAX")]),
    says(DEPLOYMENT, "after at most 4 s", &[("src/startup/process.rs", "END_TIME_MAX")]),
    says(DEPLOYMENT, "A body of more than 64 KiB counts", &[(MEMORY, "SMALL")]),
    says(DEPLOYMENT, "reserves 2 KiB for each item (32 KiB in the ten seconds after a refusal)", &[(MEMORY, "ITEM_BYTES"), (MEMORY, "ITEM_BYTES_SHORT"), (MEMORY, "SHORT_TIME")]),
    says(LIMITS, "| body, after decompression | 1 MiB", &[(KIT_PROBLEM, "BODY_BYTES_MAX")]),
    says(DEPLOYMENT, "at most 5 minutes ahead and 30 minutes old", &[(REPORT, "AHEAD_MINUTES_MAX"), (REPORT, "AGE_MINUTES_MAX")]),
    says("docs/reference/errors.md", "the body has more than 1 MiB, unpacked", &[(KIT_PROBLEM, "BODY_BYTES_MAX")]),
    says("docs/reference/errors.md", "more than 64 levels; more than 20,000 arrays and objects", &[(JSON, "DEPTH_MAX"), (JSON, "NESTS_MAX")]),

    // Connections to the database.
    says(DEPLOYMENT, "at most one for every three connections", &[("src/startup/process.rs", "CONNECTIONS_PER_THREAD_MIN")]),
    says(DEPLOYMENT, "256 searches and 192 writes that wait for a row lock", &[(LANE, "SEARCHES_WAITING_MAX"), (LANE, "HELD_ROWS_WAITING_MAX")]),
    says(DEPLOYMENT, "| 5 s | the wait of a request for a connection", &[("src/startup/database.rs", "ACQUIRE_SECONDS_MAX")]),
    says(DEPLOYMENT, "`database.pool.request_timeout` and 5 s", &[(POOL, "SILENCE_MAX")]),
    says(DEPLOYMENT, "| 2 s | an attempt to connect", &[(POOL, "ATTEMPT")]),
    says(DEPLOYMENT, "may run for up to two seconds in addition", &[(POOL, "GONE_NOTICED")]),
    says(DEPLOYMENT, "Every five seconds an instance closes unused connections", &[("src/startup/database.rs", "TRIM_PERIOD")]),

    // What the log and the metrics say.
    says(MONITORING, "up to 1 MiB of lines wait for it", &[(QUEUE, "WAITING_BYTES_MAX")]),
    says(MONITORING, "of JSON bodies up to 64 KiB, the first 4 KiB", &[(REDACTION, "BODY_BYTES_MAX"), (REDACTION, "LOGGED_BYTES_MAX")]),
    says(MONITORING, "statements that take longer than 200 ms", &[(SLOW, "SLOW")]),
    says(MONITORING, "five seconds after a panic", &[("crates/server-kit/src/supervise.rs", "PAUSE")]),
    says("docs/operations/runbooks.md", "Statements above 200 ms", &[(SLOW, "SLOW")]),
    says("docs/operations/runbooks.md", "1 MiB of lines waits for it", &[(QUEUE, "WAITING_BYTES_MAX")]),
    says("docs/reference/metrics.md", "in the background, every 15 seconds", &[("src/startup/metrics/unreconciled.rs", "PERIOD")]),
    says("docs/reference/metrics.md", "the instance has been up for ten minutes", &[("src/startup/metrics/hidden_deletions.rs", "PATIENCE")]),
    says("docs/reference/metrics.md", "once, up to 100 pairs", &[("crates/service/src/app/unrequired_adapters.rs", "NAMED_MAX")]),

    // The database.
    says(DATABASE, "1,000 in a transaction", &[("crates/service/src/app/expiry.rs", "STEP_ROWS")]),
    says(DATABASE, "polls every 25 ms on a connection of its own", &[(TAIL, "PERIOD")]),
    says(DATABASE, "every 500 ms without watchers", &[(TAIL, "PERIOD_IDLE")]),
    says(DATABASE, "Every two seconds an instance reads", &[("src/startup/sealing.rs", "PERIOD")]),
    says(DATABASE, "at most 5,000 stable entries", &[("crates/service/src/app/sealing.rs", "ENTRIES_MAX")]),

    // Requests of the REST API.
    says(API, "at most 1 MiB uncompressed, 64 levels, 20,000 arrays and objects", &[(KIT_PROBLEM, "BODY_BYTES_MAX"), (JSON, "DEPTH_MAX"), (JSON, "NESTS_MAX")]),
    says(API, "At most 4,096 bytes and 100 tags", &[("crates/domain/src/precondition.rs", "BYTES_MAX"), ("crates/domain/src/precondition.rs", "TAGS_MAX")]),
    says(API, "to 255 characters. Requests with the same key", &[("crates/domain/src/idempotency.rs", "BYTES_MAX")]),
    says(API, "only its first 1000 entries", &[("crates/domain/src/dry_run.rs", "LISTED_MAX")]),
    says(API, "at most 5 minutes in the future and 30 minutes in the past", &[(REPORT, "AHEAD_MINUTES_MAX"), (REPORT, "AGE_MINUTES_MAX")]),
    says(LIMITS, "| adapters that report on one resource | 256", &[(REPORT, "ADAPTERS_MAX")]),
    says(LIMITS, "| conditions of a report | 100", &[(REPORT, "CONDITIONS_MAX")]),
    says(LIMITS, "| 316, 1,024 and 32,768 bytes", &[(REPORT, "TYPE_BYTES_MAX"), (REPORT, "REASON_BYTES_MAX"), (REPORT, "MESSAGE_BYTES_MAX")]),
    says(LIMITS, "| all texts of all conditions of a report | 128 KiB", &[(REPORT, "TEXTS_BYTES_MAX")]),
    says(LIMITS, "| a text of `metadata` | 1,024 bytes", &[(REPORT, "METADATA_BYTES_MAX")]),
    says(API, "At most 1000 descendants on 16 levels and 1000 references", &[(EXPLAIN, "DESCENDANTS_MAX"), (EXPLAIN, "LEVELS_MAX"), (EXPLAIN, "REFERRERS_MAX")]),
    says(API, "`items` contains the first 20", &[(EXPLAIN, "LISTED_MAX")]),
    says(API, "the first 300 characters of an adapter's text", &[("crates/domain/src/explain/words.rs", "QUOTED_MAX")]),
    says("docs/guides/explain.md", "at most 1000 descendants and 1000 references", &[(EXPLAIN, "DESCENDANTS_MAX"), (EXPLAIN, "REFERRERS_MAX")]),
    says("docs/guides/plan-changes.md", "have the first 1000 entries", &[("crates/domain/src/dry_run.rs", "LISTED_MAX")]),
    says("docs/guides/watch.md", "an instance has room for 2,048 watches", &[(ADMISSION, "WATCHERS_MAX")]),
    says("docs/guides/watch.md", "comes at least every 15 seconds", &[("crates/service/src/http/watching.rs", "HEARTBEAT")]),

    // Searches.
    says("docs/guides/search.md", "at most 4096 bytes, 100 tests (16 of them on values in specs), 64 levels of parentheses, 1000 elements in a list, and 256 bytes in a pattern", &[(SEARCH, "TEXT_BYTES_MAX"), (SEARCH, "TESTS_MAX"), (SEARCH, "SPEC_VALUES_MAX"), (SEARCH, "DEPTH_MAX"), (SEARCH, "ELEMENTS_MAX"), (SEARCH, "PATTERN_BYTES_MAX")]),
    says("docs/guides/search.md", "if more than 10,000 items come before it", &[("crates/storage/src/list.rs", "SKIPPED_QUICKLY_MAX")]),
    says("docs/guides/search.md", "if 256 requests wait already", &[(LANE, "SEARCHES_WAITING_MAX")]),

    // Rules of conditions.
    says(RULES, "| an expression | 2048 bytes", &[("crates/expressions/src/expression.rs", "SOURCE_BYTES_MAX")]),
    says(RULES, "| 48 levels", &[("crates/expressions/src/scope.rs", "DEPTH_MAX")]),
    says(RULES, "100,000 units", &[("crates/expressions/src/meter.rs", "UNITS_MAX")]),
    says(RULES, "or 32 bytes of text", &[("crates/expressions/src/value.rs", "BYTES_PER_UNIT")]),
    says(RULES, "65,536 bytes of JSON", &[("crates/domain/src/condition_rules/mod.rs", "BYTES_MAX")]),
    says(RULES, "20,000 values, 1 MiB of text", &[("crates/expressions/src/data_size.rs", "VALUES_MAX"), ("crates/expressions/src/data_size.rs", "TEXTS_BYTES_MAX")]),

    // Tokens and tenants.
    says(TOKENS, "1 MiB, 100 keys", &[(KEYS, "KEY_SET_BYTES_MAX"), (KEYS, "KEYS_MAX")]),
    says(TOKENS, "a compact JWS of 16 KiB at most", &[("crates/auth/src/token.rs", "TOKEN_BYTES_MAX")]),
    says(TOKENS, "the first 16 keys that fit", &[("crates/auth/src/keys.rs", "TRIES_MAX")]),
    says(TOKENS, "trimmed, at most 256 bytes", &[("crates/auth/src/identity.rs", "IDENTITY_BYTES_MAX")]),
    says("docs/guides/tenancy.md", "to 63 bytes of", &[("crates/domain/src/tenancy/rules.rs", "VALUE_BYTES_MAX")]),

    // Fleet.
    says(FLEET_API, "takes 128 KiB of the memory for clients", &[(ADMISSION, "WATCHER_BYTES")]),
    says(FLEET_API, "and a journal 448 KiB", &[("crates/fleet/src/inspect/events.rs", "BYTES_MAX")]),
    says(FLEET_API, "It has at most 128 KiB", &[("crates/fleet/src/inspect/journal.rs", "ENTRY_BYTES_MAX")]),
    says(FLEET_API, "A comment every 15 seconds", &[("crates/fleet-model/src/wire/event.rs", "HEARTBEAT")]),
    says(FLEET_API, "(at most 30 days)", &[("crates/fleet-model/src/wire/drain.rs", "DEADLINE_SECONDS_MAX")]),
    says(FLEET_API, "number of newest entries, at most 10,000", &[("crates/fleet/src/inspect/mod.rs", "LINES_MAX")]),
    says(FLEET_API, "may have up to 1000 changes", &[("crates/fleet-model/src/wire/metadata.rs", "CHANGES_MAX")]),
    says("docs/reference/unit-files.md", "have 2047 bytes at most", &[(UNIT_FILE, "LINE_BYTES_MAX")]),
    says("docs/reference/unit-files.md", "of 64 KiB at most, with at most 1000 options", &[(UNIT_FILE, "FILE_BYTES_MAX"), (UNIT_FILE, "OPTIONS_MAX")]),
    says("docs/reference/unit-files.md", "section together may have 8 KiB", &[("crates/fleet-model/src/unit/validity.rs", "REQUIREMENTS_BYTES_MAX")]),
    says("docs/operations/fleetd.md", "for up to 110 s", &[("crates/fleetd/src/daemon.rs", "LEAVE_TIME_MAX")]),
    says("docs/internals/agent.md", "for up to 110 s", &[("crates/fleetd/src/daemon.rs", "LEAVE_TIME_MAX")]),
    says("docs/internals/engine.md", "at least 400 steps", &[("crates/fleet/src/engine/decider/steps.rs", "PORTION_STEPS_MIN")]),
    says("docs/internals/lists.md", "its own writes within five seconds", &[("crates/fleet/src/mirror/mod.rs", "PATIENCE")]),
];

#[test]
fn numbers_in_prose_are_those_of_the_code() {
    let mut wrong = Vec::new();
    for Claim {
        page,
        phrase,
        constants,
    } in CLAIMS
    {
        let text = joined(&fs::read_to_string(page).unwrap());
        if !text.contains(phrase) {
            wrong.push(format!(
                "{page} no longer says {phrase:?}: adjust {}",
                file!()
            ));
        }
        let said = quantities(phrase);
        let defined = constants.iter().map(|(file, name)| value(file, name));
        let defined: Vec<_> = defined.collect();
        if said != defined {
            wrong.push(format!(
                "{page} says {phrase:?}, but {constants:?} are {defined:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
