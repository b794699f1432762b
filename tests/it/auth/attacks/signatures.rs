//! Signatures that are none, or of something else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::super::signer::{Signer, base64, sign_by_secret, unbase64};
use super::{Attack, Call, Keys, claims, invalid, tokens, with};

/// What stands before an RSA key of 2048 bits when it is written as a public key.
const SPKI: [u8; 24] = [
    0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01,
    0x01, 0x05, 0x00, 0x03, 0x82, 0x01, 0x0f, 0x00,
];
/// The order of the group of Ed25519, least byte first.
const ED25519_ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

pub(super) fn attacks(keys: &Keys) -> Vec<Attack> {
    let mut attacks = secrets(keys);
    attacks.extend(algorithms(keys));
    attacks.extend(changed(keys));
    attacks
}

/// A token whose header says another algorithm than what signed it.
fn says(signer: &Signer, kid: &str, algorithm: &str, by: &str) -> String {
    let header = json!({"alg": algorithm, "kid": kid}).to_string();
    signer.sign_text(by, &header, &claims().to_string())
}

fn unsigned(algorithm: &str) -> String {
    let header = json!({"alg": algorithm, "kid": "ec"}).to_string();
    format!("{}.{}.", base64(header), base64(claims().to_string()))
}

/// The public key as a secret: everybody knows it.
fn secrets(keys: &Keys) -> Vec<Attack> {
    let jwk = keys.rsa.jwk();
    let number = |name: &str| unbase64(jwk[name].as_str().unwrap());
    let (n, e) = (number("n"), number("e"));
    let numbers = [
        &[0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00][..],
        &n,
        &[0x02, 0x03],
        &e,
    ]
    .concat();
    let spki = [&SPKI[..], &numbers].concat();
    let text = STANDARD.encode(&spki).into_bytes();
    let lines: Vec<_> = text.chunks(64).map(String::from_utf8_lossy).collect();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        lines.join("\n")
    );
    let good = keys.rsa.sign(&claims());
    let by = |secret: &[u8]| sign_by_secret(secret, "rsa", &claims());
    vec![
        tokens("HS256 by the public key as PEM", &by(pem.as_bytes()), &good),
        tokens(
            "HS256 by the public key as PEM without its last line end",
            &by(pem.trim_end().as_bytes()),
            &good,
        ),
        tokens("HS256 by the public key as DER", &by(&spki), &good),
        tokens("HS256 by the public key as PKCS#1", &by(&numbers), &good),
        tokens("HS256 by the modulus", &by(&n), &good),
        tokens(
            "HS256 by the text of the modulus",
            &by(jwk["n"].as_str().unwrap().as_bytes()),
            &good,
        ),
        tokens("HS256 by the JWK", &by(jwk.to_string().as_bytes()), &good),
        tokens("HS256 by nothing", &by(b""), &good),
        tokens(
            "HS256 by the public point of ES256",
            &sign_by_secret(
                &unbase64(keys.ec.jwk()["x"].as_str().unwrap()),
                "ec",
                &claims(),
            ),
            &good,
        ),
    ]
}

fn algorithms(keys: &Keys) -> Vec<Attack> {
    let (ec, rsa, ed) = (&keys.ec, &keys.rsa, &keys.ed);
    let good = ec.sign(&claims());
    let good_rsa = rsa.sign(&claims());
    let relabelled = |algorithm| says(ec, "ec", algorithm, "ES256");
    vec![
        tokens("alg none", &unsigned("none"), &good),
        tokens("alg None", &unsigned("None"), &good),
        tokens("alg nOnE", &unsigned("nOnE"), &good),
        tokens("alg NONE", &unsigned("NONE"), &good),
        tokens("alg none with a signature", &relabelled("none"), &good),
        tokens("alg empty", &relabelled(""), &good),
        tokens("alg in lower case", &relabelled("es256"), &good),
        tokens("alg with a space", &relabelled("ES256 "), &good),
        tokens("alg with a NUL", &relabelled("ES256\0"), &good),
        tokens("alg ES256K", &relabelled("ES256K"), &good),
        tokens("alg ES384 of a P-256 key", &relabelled("ES384"), &good),
        tokens(
            "alg missing",
            &ec.sign_text("ES256", r#"{"kid":"ec"}"#, &claims().to_string()),
            &good,
        ),
        tokens(
            "alg as a list",
            &ec.sign_text(
                "ES256",
                r#"{"alg":["ES256"],"kid":"ec"}"#,
                &claims().to_string(),
            ),
            &good,
        ),
        tokens(
            "alg as null",
            &ec.sign_text("ES256", r#"{"alg":null,"kid":"ec"}"#, &claims().to_string()),
            &good,
        ),
        tokens("PS256", &rsa.sign_with("PS256", &claims()), &good_rsa),
        tokens(
            "PS256 said to be RS256",
            &says(rsa, "rsa", "RS256", "PS256"),
            &says(rsa, "rsa", "RS256", "RS256"),
        ),
        tokens(
            "RS512 of a key for RS256 alone",
            &keys.rs256.sign_with("RS512", &claims()),
            &keys.rs256.sign(&claims()),
        ),
        tokens(
            "RS384 said to be RS256",
            &says(rsa, "rsa", "RS256", "RS384"),
            &rsa.sign_with("RS384", &claims()),
        ),
        tokens(
            "RS256 said to be RS512",
            &says(rsa, "rsa", "RS512", "RS256"),
            &rsa.sign_with("RS512", &claims()),
        ),
        tokens(
            "RS256 token under an ES256 key",
            &says(rsa, "ec", "RS256", "RS256"),
            &good_rsa,
        ),
        tokens(
            "RS256 token said to be ES256",
            &says(rsa, "rsa", "ES256", "RS256"),
            &good_rsa,
        ),
        tokens(
            "ES256 token under an RSA key",
            &says(ec, "rsa", "ES256", "ES256"),
            &good,
        ),
        tokens(
            "ES256 token under an EdDSA key",
            &says(ec, "ed", "ES256", "ES256"),
            &good,
        ),
        tokens(
            "EdDSA token under an ES256 key",
            &says(ed, "ec", "EdDSA", "EdDSA"),
            &ed.sign(&claims()),
        ),
        tokens(
            "EdDSA said to be Ed448",
            &says(ed, "ed", "Ed448", "EdDSA"),
            &ed.sign(&claims()),
        ),
    ]
}

fn changed(keys: &Keys) -> Vec<Attack> {
    let (ec, rsa, ed) = (&keys.ec, &keys.rsa, &keys.ed);
    let good = ec.sign(&claims());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let signed = |signature: &[u8]| format!("{message}.{}", base64(signature));
    let bytes = unbase64(signature);
    let ed_token = ed.sign(&claims());
    let payload = base64(with("email", "eve@example.com").to_string());
    let swapped = |token: &str| {
        let parts: Vec<_> = token.split('.').collect();
        [parts[0], &payload, parts[2]].join(".")
    };
    let other_token = ec.sign(&with("email", "eve@example.com"));
    let (_, other_signature) = other_token.rsplit_once('.').unwrap();
    let rsa_token = rsa.sign(&claims());
    let (rsa_message, _) = rsa_token.rsplit_once('.').unwrap();
    vec![
        tokens("no signature", &format!("{message}."), &good),
        tokens(
            "signature in DER",
            &signed(&ec.signature("ES256-DER", message)),
            &good,
        ),
        tokens("signature of zeros", &signed(&[0; 64]), &good),
        tokens(
            "signature of an RSA key of ones",
            &format!("{rsa_message}.{}", base64([1; 256])),
            &rsa_token,
        ),
        tokens(
            "signature of an RSA key of zeros",
            &format!("{rsa_message}.{}", base64([0; 256])),
            &rsa_token,
        ),
        tokens("signature cut short", &signed(&bytes[..63]), &good),
        tokens(
            "signature drawn out",
            &signed(&[&bytes[..], &[0]].concat()),
            &good,
        ),
        tokens(
            "signature turned round",
            &signed(&[&bytes[32..], &bytes[..32]].concat()),
            &good,
        ),
        tokens(
            "signature of EdDSA that is another of the same",
            &malleable(&ed_token),
            &ed_token,
        ),
        tokens(
            "signature of another token",
            &format!("{message}.{other_signature}"),
            &good,
        ),
        tokens(
            "RS256 with another payload",
            &swapped(&rsa.sign(&claims())),
            &rsa.sign(&claims()),
        ),
        tokens("ES256 with another payload", &swapped(&good), &good),
        tokens("EdDSA with another payload", &swapped(&ed_token), &ed_token),
        tokens(
            "signed by a stranger",
            &says(&keys.stranger, "ec", "ES256", "ES256"),
            &good,
        ),
        invalid(
            "signed by a stranger without a kid",
            Call::token(&keys.stranger.sign_text(
                "ES256",
                r#"{"alg":"ES256"}"#,
                &claims().to_string(),
            )),
            Call::token(&ec.sign_text("ES256", r#"{"alg":"ES256"}"#, &claims().to_string())),
        ),
    ]
}

/// Adds the order of the group to the second half: the same signature to careless eyes.
fn malleable(token: &str) -> String {
    let (message, signature) = token.rsplit_once('.').unwrap();
    let mut bytes = unbase64(signature);
    let mut carry = 0;
    for (byte, order) in bytes[32..].iter_mut().zip(ED25519_ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = u8::try_from(sum & 0xff).unwrap();
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    format!("{message}.{}", base64(bytes))
}
