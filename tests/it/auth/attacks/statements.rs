//! Claims that are not for us, not of our issuer, not of this time, or no claims.

use serde_json::{Value, json};

use super::super::world::{ISSUER, NOW};
use super::{AUDIENCE, Attack, Call, Keys, claims, tokens, with, without};

pub(super) fn attacks(keys: &Keys) -> Vec<Attack> {
    let mut attacks = origins(keys);
    attacks.extend(times(keys));
    attacks.extend(texts(keys));
    attacks.extend(identities(keys));
    attacks
}

fn origins(keys: &Keys) -> Vec<Attack> {
    let good = keys.ed.sign(&claims());
    let token = |claims: Value| keys.ed.sign(&claims);
    let list = token(with("aud", json!(["other", AUDIENCE])));
    vec![
        tokens(
            "iss of another issuer",
            &token(with("iss", "https://evil.example")),
            &good,
        ),
        tokens(
            "iss with a slash at its end",
            &token(with("iss", format!("{ISSUER}/"))),
            &good,
        ),
        tokens(
            "iss in other case",
            &token(with("iss", "https://Issuer.example")),
            &good,
        ),
        tokens(
            "iss that goes on",
            &token(with("iss", format!("{ISSUER}.evil.example"))),
            &good,
        ),
        tokens("iss in a list", &token(with("iss", json!([ISSUER]))), &good),
        tokens("iss missing", &token(without("iss")), &good),
        tokens(
            "iss with a NUL",
            &token(with("iss", format!("{ISSUER}\0"))),
            &good,
        ),
        tokens(
            "aud of another service",
            &token(with("aud", "other")),
            &good,
        ),
        tokens("aud missing", &token(without("aud")), &good),
        tokens("aud that goes on", &token(with("aud", "api2")), &good),
        tokens(
            "aud list of others",
            &token(with("aud", json!(["other", "a", "pi"]))),
            &list,
        ),
        tokens(
            "aud list in a list",
            &token(with("aud", json!([[AUDIENCE]]))),
            &list,
        ),
        tokens(
            "aud list with other things",
            &token(with("aud", json!([AUDIENCE, 1]))),
            &list,
        ),
        tokens(
            "aud as an object",
            &token(with("aud", json!({AUDIENCE: true}))),
            &list,
        ),
        tokens(
            "aud list that is empty",
            &token(with("aud", json!([]))),
            &list,
        ),
    ]
}

fn times(keys: &Keys) -> Vec<Attack> {
    let token = |claims: Value| keys.ec.sign(&claims);
    let exp = |value: Value| token(with("exp", value));
    let good = exp(json!(NOW + 1));
    let fraction = exp(json!(1_767_261_599.5));
    let expired = |name, exp: Value, twin: &str| Attack {
        code: "AUT-003",
        ..tokens(name, &token(with("exp", exp)), twin)
    };
    vec![
        expired(
            "expired as long ago as the leeway",
            json!(NOW - 30),
            &exp(json!(NOW - 29)),
        ),
        expired(
            "expired by a fraction",
            json!(1_767_261_569.9),
            &exp(json!(1_767_261_570.1)),
        ),
        expired("expired long ago", json!(0), &good),
        expired("exp below zero", json!(-1), &good),
        Attack {
            code: "AUT-003",
            ..tokens(
                "expired, and for another service",
                &token(json!({"iss": ISSUER, "aud": "x", "exp": NOW - 99})),
                &good,
            )
        },
        tokens("exp missing", &token(without("exp")), &good),
        tokens("exp as null", &exp(json!(null)), &good),
        tokens("exp as text", &exp(json!((NOW + 3600).to_string())), &good),
        tokens("exp as a list", &exp(json!([NOW + 3600])), &good),
        tokens("exp as true", &exp(json!(true)), &good),
        tokens("exp beyond all years", &exp(json!(1e300)), &fraction),
        tokens("exp of 64 bits", &exp(json!(u64::MAX)), &fraction),
        tokens(
            "not valid by a second",
            &token(with("nbf", NOW + 31)),
            &token(with("nbf", NOW + 30)),
        ),
        tokens(
            "not valid by a fraction",
            &token(with("nbf", 1_767_261_630.1)),
            &token(with("nbf", 1_767_261_629.9)),
        ),
        tokens(
            "nbf as text",
            &token(with("nbf", "0")),
            &token(with("nbf", 0)),
        ),
        tokens(
            "nbf beyond all years",
            &token(with("nbf", 1e300)),
            &token(with("iat", NOW + 9999)),
        ),
    ]
}

/// Payloads that different readers read differently.
fn texts(keys: &Keys) -> Vec<Attack> {
    let good = keys.ec.sign(&claims());
    let header = r#"{"alg":"ES256","kid":"ec"}"#;
    let signed = |payload: &str| keys.ec.sign_text("ES256", header, payload);
    let exp = NOW + 3600;
    let members = format!(r#""iss":"{ISSUER}","aud":"{AUDIENCE}","exp":{exp}"#);
    let plain = signed(&format!("{{{members}}}"));
    vec![
        tokens(
            "exp twice",
            &signed(&format!(r#"{{{members},"exp":{exp}}}"#)),
            &plain,
        ),
        tokens(
            "iss twice, once in disguise",
            &signed(&format!(r#"{{"\u0069ss":"x",{members}}}"#)),
            &plain,
        ),
        tokens(
            "a name twice further in",
            &signed(&format!(r#"{{{members},"a":{{"b":1,"b":2}}}}"#)),
            &signed(&format!(r#"{{{members},"a":{{"b":1}}}}"#)),
        ),
        tokens(
            "payload that is a list",
            &signed(&format!("[{{{members}}}]")),
            &plain,
        ),
        tokens("payload that is text", &signed("\"x\""), &plain),
        tokens("payload that is null", &signed("null"), &plain),
        tokens("payload that is empty", &signed(""), &plain),
        tokens(
            "payload with something after it",
            &signed(&format!("{{{members}}}{{}}")),
            &plain,
        ),
        tokens(
            "payload with a byte order mark",
            &signed(&format!("\u{feff}{{{members}}}")),
            &plain,
        ),
        tokens(
            "payload with a comment",
            &signed(&format!("{{{members}/**/}}")),
            &plain,
        ),
        tokens(
            "payload with exp that is no number",
            &signed(&format!(
                r#"{{"iss":"{ISSUER}","aud":"{AUDIENCE}","exp":NaN}}"#
            )),
            &good,
        ),
        tokens(
            "payload nested a thousand deep",
            &signed(&format!(
                "{{{members},\"a\":{}{}}}",
                "[".repeat(1000),
                "]".repeat(1000)
            )),
            &signed(&format!(
                "{{{members},\"a\":{}{}}}",
                "[".repeat(50),
                "]".repeat(50)
            )),
        ),
    ]
}

/// Identities that would not be what they look like in the audit trail.
fn identities(keys: &Keys) -> Vec<Attack> {
    let call = |email: Value| Call::change(&keys.ec.sign(&with("email", email)));
    let unknown = |name, email: Value, twin: &str| Attack {
        name,
        code: "AUT-001",
        call: call(email),
        twin: call(json!(twin)),
    };
    vec![
        unknown(
            "identity with a NUL",
            json!("ada\0@example.com"),
            "ada@example.com",
        ),
        unknown("identity with a line end", json!("ada\nroot"), "ada root"),
        unknown("identity with an escape", json!("ada\u{1b}[2K"), "ada[2K"),
        unknown("identity with a delete", json!("ada\u{7f}"), "ada"),
        unknown(
            "identity that is too long",
            json!("a".repeat(257)),
            &"a".repeat(256),
        ),
        unknown("identity that is empty", json!(" "), "a"),
        unknown("identity as a list", json!(["ada"]), "ada"),
        unknown("identity as a number", json!(7), "7"),
    ]
}
