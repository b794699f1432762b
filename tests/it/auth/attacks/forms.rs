//! Requests and tokens in other forms than the one that is taken.

use serde_json::json;

use super::super::signer::base64;
use super::{Attack, Call, Keys, claims, invalid, tokens, with};

pub(super) fn attacks(keys: &Keys) -> Vec<Attack> {
    let mut attacks = serializations(keys);
    attacks.extend(requests(keys));
    attacks
}

fn serializations(keys: &Keys) -> Vec<Attack> {
    let good = keys.ec.sign(&claims());
    let parts: Vec<_> = good.split('.').collect();
    let [header, payload, signature] = parts[..] else {
        panic!("{good}")
    };
    let general = json!({"payload": payload, "signatures": [
        {"protected": header, "signature": signature},
        {"protected": base64(r#"{"alg":"none"}"#), "signature": ""},
    ]});
    let flat = json!({"payload": payload, "protected": header, "signature": signature});
    // The longest there may be, and a byte more.
    let long = |length: usize| {
        let padding = |count: usize| keys.ec.sign(&with("padding", "x".repeat(count)));
        let mut count = (length - padding(0).len()) * 3 / 4;
        while padding(count + 1).len() <= length {
            count += 1;
        }
        padding(count)
    };
    let (fits, exceeds) = (long(16 * 1024), long(16 * 1024 + 4));
    assert!(fits.len() <= 16 * 1024 && exceeds.len() > 16 * 1024);
    vec![
        tokens("two signatures, as JSON", &general.to_string(), &good),
        tokens("one signature, as JSON", &flat.to_string(), &good),
        tokens(
            "five parts",
            &format!("{good}.{payload}.{signature}"),
            &good,
        ),
        tokens("four parts", &format!("{good}.{signature}"), &good),
        tokens("two parts", &format!("{header}.{payload}"), &good),
        tokens("one part", header, &good),
        tokens("a dot before", &format!(".{good}"), &good),
        tokens("a dot after", &format!("{good}."), &good),
        tokens(
            "a dot more between",
            &format!("{header}..{payload}.{signature}"),
            &good,
        ),
        tokens("no header", &format!(".{payload}.{signature}"), &good),
        tokens("no payload", &format!("{header}..{signature}"), &good),
        tokens("dots alone", "..", &good),
        tokens(
            "a header with padding",
            &format!("{header}=.{payload}.{signature}"),
            &good,
        ),
        tokens(
            "a payload with padding",
            &format!("{header}.{payload}==.{signature}"),
            &good,
        ),
        tokens("a signature with padding", &format!("{good}=="), &good),
        tokens(
            "a signature in the other base64",
            &format!("{header}.{payload}.+/{}", &signature[2..]),
            &good,
        ),
        tokens("a signature with a percent", &format!("{good}%3d"), &good),
        tokens(
            "a header that is no JSON",
            &format!("{}.{payload}.{signature}", base64("alg")),
            &good,
        ),
        tokens(
            "a header that is no UTF-8",
            &format!("{}.{payload}.{signature}", base64([0xff, 0xfe])),
            &good,
        ),
        tokens("a token that is too long", &exceeds, &fits),
        tokens("a token of dots", &".".repeat(8000), &good),
        tokens("a token of nothing but its name", "null", &good),
    ]
}

fn requests(keys: &Keys) -> Vec<Attack> {
    let good = keys.ec.sign(&claims());
    let bearer = format!("Bearer {good}");
    let one = || Call::header(&bearer);
    let missing = |name, attack| Attack {
        code: "AUT-001",
        ..invalid(name, attack, one())
    };
    let mut in_query = Call::headers(&[]);
    in_query.query = format!("?access_token={good}");
    let lower = Call::header(&format!("bearer {good}"));
    let spaced = Call::header(&format!("BEARER \t  {good}"));
    let basic = base64(format!("ada:{good}"));
    vec![
        missing("no token", Call::headers(&[])),
        missing("a token in the query", in_query),
        missing(
            "a token in a cookie",
            Call::headers(&[("cookie", &format!("authorization={good}"))]),
        ),
        missing(
            "a token in another header",
            Call::headers(&[("x-authorization", &bearer)]),
        ),
        missing(
            "a token for the proxy",
            Call::headers(&[("proxy-authorization", &bearer)]),
        ),
        missing("an empty header", Call::header("")),
        missing(
            "an identity header that is not set",
            Call::headers(&[("x-forwarded-user", "root")]),
        ),
        invalid(
            "two headers",
            Call::headers(&[("authorization", &bearer), ("authorization", &bearer)]),
            one(),
        ),
        invalid(
            "two headers, the second good",
            Call::headers(&[("authorization", "Bearer x"), ("authorization", &bearer)]),
            one(),
        ),
        invalid(
            "Bearer twice",
            Call::header(&format!("Bearer {bearer}")),
            one(),
        ),
        invalid("Bearer alone", Call::header("Bearer"), lower),
        invalid("Basic", Call::header(&format!("Basic {basic}")), one()),
        invalid("Token", Call::header(&format!("Token {good}")), one()),
        invalid("no scheme", Call::header(&good), one()),
        invalid(
            "a scheme stuck to its token",
            Call::header(&format!("Bearer:{good}")),
            one(),
        ),
        invalid(
            "a token in quotes",
            Call::header(&format!("Bearer \"{good}\"")),
            spaced,
        ),
        invalid(
            "something after the token",
            Call::header(&format!("{bearer} x")),
            Call::header(&format!("{bearer}  \t")),
        ),
        invalid(
            "two tokens with a comma",
            Call::header(&format!("{bearer}, {bearer}")),
            one(),
        ),
        invalid(
            "a token with a space within",
            Call::header(&format!("Bearer {}", good.replacen('.', ". ", 1))),
            one(),
        ),
        invalid(
            "a token with a tab within",
            Call::header(&format!("Bearer {}", good.replacen('.', "\t.", 1))),
            one(),
        ),
    ]
}
