//! Headers that name another key, another type, or things that are not understood.

use serde_json::{Value, json};

use super::super::signer::base64;
use super::{Attack, Keys, claims, extended, tokens};

pub(super) fn attacks(keys: &Keys) -> Vec<Attack> {
    let mut attacks = kids(keys);
    attacks.extend(own_keys(keys));
    attacks.extend(types(keys));
    attacks
}

fn kids(keys: &Keys) -> Vec<Attack> {
    let good = keys.ec.sign(&claims());
    let named = |kid: Value| extended(&keys.ec, &json!({ "kid": kid }));
    vec![
        tokens("kid of another key", &named(json!("other")), &good),
        tokens("kid of a key of another kind", &named(json!("rsa")), &good),
        tokens(
            "kid that leads out of the folder",
            &named(json!("../../../../dev/null")),
            &good,
        ),
        tokens(
            "kid with an absolute path",
            &named(json!("/etc/hostname")),
            &good,
        ),
        tokens(
            "kid with SQL",
            &named(json!("x' UNION SELECT 'key' --")),
            &good,
        ),
        tokens("kid with a command", &named(json!("ec|sleep 9")), &good),
        tokens(
            "kid with a URL",
            &named(json!("http://127.0.0.1:1/keys")),
            &good,
        ),
        tokens("kid in other case", &named(json!("EC")), &good),
        tokens("kid with a NUL", &named(json!("ec\0")), &good),
        tokens("kid with a space", &named(json!("ec ")), &good),
        tokens("kid that is huge", &named(json!("k".repeat(8000))), &good),
        tokens("kid that is empty", &named(json!("")), &good),
        tokens("kid as a number", &named(json!(0)), &good),
        tokens("kid as null", &named(json!(null)), &good),
        tokens("kid as a list", &named(json!(["ec"])), &good),
        tokens(
            "kid twice",
            &keys.ec.sign_text(
                "ES256",
                r#"{"alg":"ES256","kid":"other","kid":"ec"}"#,
                &claims().to_string(),
            ),
            &good,
        ),
        tokens(
            "alg twice",
            &keys.ec.sign_text(
                "ES256",
                r#"{"alg":"none","alg":"ES256","kid":"ec"}"#,
                &claims().to_string(),
            ),
            &good,
        ),
    ]
}

/// Tokens that bring their own judge. The twin names it, too, and is judged by ours.
fn own_keys(keys: &Keys) -> Vec<Attack> {
    let jwk = keys.stranger.jwk();
    let certificate = rcgen::generate_simple_self_signed(vec!["evil.example".to_owned()]).unwrap();
    let x5c = base64::engine::general_purpose::STANDARD;
    let x5c = base64::Engine::encode(&x5c, certificate.cert.der());
    let pair = |name, members: Value| {
        let attack = extended(&keys.stranger, &members);
        tokens(name, &attack, &extended(&keys.ec, &members))
    };
    vec![
        pair("jwk with the stranger's key", json!({"jwk": jwk})),
        pair(
            "jku with the stranger's keys",
            json!({"jku": "https://evil.example/keys"}),
        ),
        pair(
            "jku of a data URL",
            json!({"jku": format!("data:application/json,{}", json!({"keys": [jwk]}))}),
        ),
        pair(
            "x5u with the stranger's certificate",
            json!({"x5u": "https://evil.example/cert"}),
        ),
        pair("x5c with the stranger's certificate", json!({"x5c": [x5c]})),
        pair(
            "x5t of the stranger's certificate",
            json!({"x5t": base64([7; 20])}),
        ),
        pair("kid of the stranger", json!({})),
    ]
}

fn types(keys: &Keys) -> Vec<Attack> {
    let signed = |members: Value| extended(&keys.ec, &members);
    let jwt = signed(json!({"typ": "JWT"}));
    vec![
        tokens(
            "crit that nobody understands",
            &signed(json!({"crit": ["exp"]})),
            &jwt,
        ),
        tokens("crit that is empty", &signed(json!({"crit": []})), &jwt),
        tokens(
            "b64 that is critical",
            &signed(json!({"crit": ["b64"], "b64": false})),
            &jwt,
        ),
        tokens(
            "typ of a logout token",
            &signed(json!({"typ": "logout+jwt"})),
            &signed(json!({"typ": "at+jwt"})),
        ),
        tokens(
            "typ of a proof of possession",
            &signed(json!({"typ": "dpop+jwt"})),
            &signed(json!({"typ": "application/AT+JWT"})),
        ),
        tokens(
            "typ JOSE",
            &signed(json!({"typ": "JOSE"})),
            &signed(json!({"typ": "jwt"})),
        ),
        tokens(
            "typ that is empty",
            &signed(json!({"typ": ""})),
            &signed(json!({})),
        ),
        tokens("typ as a list", &signed(json!({"typ": ["JWT"]})), &jwt),
    ]
}
