//! What is counted of callers and keys.

use std::collections::BTreeMap;

use hyperfleet_auth::{Authenticator, HeaderField, Need};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use super::rotation::eager;
use super::signer::Signer;
use super::world::{ISSUER, NOW, Publisher, Says, authenticator, claims, key_set, slow, with};
use crate::support::TestClock;

/// What was counted since the last look, and the gauges; whole numbers all of them.
fn counted(snapshotter: &Snapshotter) -> BTreeMap<String, u64> {
    let all = snapshotter.snapshot().into_vec().into_iter();
    all.map(|(key, _, _, value)| {
        let labels = key
            .key()
            .labels()
            .map(|l| format!("{}={}", l.key(), l.value()));
        let labels: Vec<_> = labels.collect();
        let value = match value {
            DebugValue::Counter(count) => count,
            DebugValue::Gauge(value) => value.to_string().parse().unwrap(),
            DebugValue::Histogram(_) => panic!("no histogram"),
        };
        (format!("{} {}", key.key().name(), labels.join(",")), value)
    })
    .collect()
}

async fn try_token(authenticator: &Authenticator, header: &str, need: Need) {
    let field = |_: &str| match header {
        "" => HeaderField::Absent,
        header => HeaderField::One(header.as_bytes()),
    };
    let _ = authenticator.authenticate(field, need).await;
}

#[tokio::test]
async fn refusals_and_refreshes_are_counted_by_fixed_reasons() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let clock = TestClock::at("2026-01-01T10:00:00Z");
    let key = Signer::p256("key");
    let issuer = Publisher::start(Says::Keys(key_set(&[&key, &Signer::ed25519("b")])));
    let mut config = issuer.config();
    config.audience = "api".to_owned();
    let authenticator = authenticator(&[config], eager(), &clock);
    authenticator
        .fetch_keys_once(std::time::Duration::from_secs(20))
        .await;
    let of_issuer = format!("issuer={ISSUER}");
    let refreshes =
        format!("hyperfleet_api_jwks_refreshes_total {of_issuer},source=address,outcome=");
    let first = counted(&snapshotter);
    assert_eq!(first[&format!("{refreshes}success")], 1);
    assert_eq!(first[&format!("hyperfleet_api_jwks_keys {of_issuer}")], 2);
    let succeeded = "hyperfleet_api_jwks_last_success_timestamp_seconds";
    assert_eq!(
        first[&format!("{succeeded} {of_issuer},source=address")],
        1_767_261_600
    );

    let unknown = format!("Bearer {}", Signer::p256("x").sign(&claims()));
    for (status, outcome) in [(401, "denied"), (403, "denied"), (500, "status")] {
        issuer.say(Says::Status(status, String::new()));
        try_token(&authenticator, &unknown, Need::Proof).await;
        let then = counted(&snapshotter);
        assert_eq!(then[&format!("{refreshes}{outcome}")], 1, "{status}");
    }

    let bearer = |claims| format!("Bearer {}", key.sign(&claims));
    let api = |member: &str, value: serde_json::Value| {
        let mut claims = with("aud", "api");
        claims[member] = value;
        bearer(claims)
    };
    let long = format!("Bearer {}", "x".repeat(17_000));
    for (reason, header, need) in [
        ("missing", String::new(), Need::Proof),
        ("not_bearer", "Basic x".to_owned(), Need::Proof),
        ("malformed", "Bearer x".to_owned(), Need::Proof),
        ("too_long", long, Need::Proof),
        ("unknown_key", unknown, Need::Proof),
        (
            "issuer",
            bearer(with("iss", "https://evil.example")),
            Need::Proof,
        ),
        ("audience", bearer(claims()), Need::Proof),
        ("expired", api("exp", (NOW - 31).into()), Need::Proof),
        ("not_yet_valid", api("nbf", (NOW + 31).into()), Need::Proof),
        ("times", api("exp", "x".into()), Need::Proof),
        ("signature", bearer(with("aud", "api")) + "A", Need::Proof),
        (
            "algorithm",
            format!(
                "Bearer {}",
                super::signer::sign_by_secret(b"", "key", &claims())
            ),
            Need::Proof,
        ),
        ("identity", api("email", "".into()), Need::Identity),
    ] {
        counted(&snapshotter);
        try_token(&authenticator, &header, need).await;
        let name = format!("hyperfleet_api_auth_failures_total reason={reason}");
        let after = counted(&snapshotter);
        assert_eq!(after.get(&name), Some(&1), "{reason}: {after:?}");
    }
    counted(&snapshotter);
    try_token(&authenticator, &bearer(with("aud", "api")), Need::Identity).await;
    let after = counted(&snapshotter);
    let failures = after
        .iter()
        .filter(|(n, v)| n.contains("failures") && **v > 0);
    assert_eq!(failures.count(), 0, "{after:?}");
}

#[tokio::test]
async fn the_worse_of_two_entries_of_an_issuer_is_reported() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let clock = TestClock::at("2026-01-01T10:00:00Z");
    let key = Signer::p256("key");
    let well = Publisher::start(Says::Keys(key_set(&[&key, &Signer::ed25519("b")])));
    let sick = Publisher::start(Says::Keys("{}".to_owned()));
    let entry = |issuer: &Publisher, audience: &str| {
        let mut config = issuer.config();
        config.audience = audience.to_owned();
        config
    };
    let entries = [
        entry(&sick, "one"),
        entry(&well, "two"),
        entry(&well, "three"),
    ];
    let authenticator = authenticator(&entries, slow(), &clock);
    let limit = std::time::Duration::from_secs(20);
    authenticator.fetch_keys_once(limit).await;
    let seen = counted(&snapshotter);
    assert_eq!(
        seen[&format!("hyperfleet_api_jwks_keys issuer={ISSUER}")],
        0
    );
    let refreshes =
        format!("hyperfleet_api_jwks_refreshes_total issuer={ISSUER},source=address,outcome=");
    assert_eq!(seen[&format!("{refreshes}success")], 2);
    assert_eq!(seen[&format!("{refreshes}invalid")], 1);
    // A token of a key that is not known is a matter of the entry that is for it, and of no other.
    let unknown = Signer::p256("x").sign(&with("aud", "one"));
    try_token(&authenticator, &format!("Bearer {unknown}"), Need::Proof).await;
    let seen = counted(&snapshotter);
    let name = "hyperfleet_api_auth_failures_total reason=unknown_key";
    assert_eq!(seen.get(name), Some(&1), "{seen:?}");
    let others = seen.get(&format!("{refreshes}success"));
    assert_eq!(others.copied().unwrap_or_default(), 0);
}

#[tokio::test]
async fn an_issuer_without_keys_is_to_be_seen() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let clock = TestClock::at("2026-01-01T10:00:00Z");
    let issuer = Publisher::start(Says::Keys("{}".to_owned()));
    let authenticator = authenticator(&[issuer.config()], slow(), &clock);
    authenticator
        .fetch_keys_once(std::time::Duration::from_secs(20))
        .await;
    let seen = counted(&snapshotter);
    assert_eq!(
        seen[&format!("hyperfleet_api_jwks_keys issuer={ISSUER}")],
        0
    );
    let refreshes = "hyperfleet_api_jwks_refreshes_total";
    assert_eq!(
        seen[&format!("{refreshes} issuer={ISSUER},source=address,outcome=invalid")],
        1
    );
}
