//! Numbers come back as they were sent, or are refused.

use serde_json::{Value, json};

use super::{assert_malformed, report, routes};
use crate::support::{Problem as _, TestApi};

/// Integers as JSON spells them; what lies beyond 2^53 would not survive a detour over a float.
const INTEGERS: [&str; 9] = [
    "0",
    "-1",
    "9007199254740993",
    "-9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "1000000000000000000",
];

/// Floats of every size, some of them hard to read exactly.
const FLOATS: [&str; 24] = [
    "0.1",
    "-0.5",
    "1.0",
    "100.0",
    "1e5",
    "1e16",
    "1e17",
    "1E+19",
    "1e20",
    "-1e18",
    "1.7976931348623157e308",
    "2.2250738585072014e-308",
    "5e-324",
    "1e-7",
    "123456789.12345679",
    "0.30000000000000004",
    "9007199254740993.0",
    "7.2057594037927933e16",
    "18446744073709551615.0",
    "1.8446744073709552e19",
    "-9.223372036854775807e18",
    "-9.3e18",
    "-0.0",
    "-0",
];

#[tokio::test]
async fn integers_of_64_bits_are_stored_exactly() {
    let api = TestApi::spawn().await;
    for (number, integer) in INTEGERS.iter().enumerate() {
        let spec = format!(r#"{{"a":{integer},"b":[{{"c":{integer}}}]}}"#);
        let body = format!(r#"{{"kind":"Cluster","name":"n{number}0","spec":{spec}}}"#);
        let made = api.send_bytes("POST", "/clusters", body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let path = format!("/clusters/{}", made.id());
        let found = api.get(&path).await;
        let text = String::from_utf8(found.bytes.clone()).unwrap();
        let text = text.replace(": ", ":").replace(", ", ",");
        assert!(text.contains(&format!("\"spec\":{spec}")), "{text}");

        let same = api
            .send_bytes("PATCH", &path, format!(r#"{{"spec":{spec}}}"#))
            .await;
        assert_eq!(
            (same.status, &same.body["generation"]),
            (200, &json!(1)),
            "{integer}"
        );

        let report = report(&api)
            .to_string()
            .replace(r#"{"any":"thing"}"#, &spec);
        let path = format!("{path}/statuses");
        assert_eq!(api.send_bytes("PUT", &path, report).await.status, 201);
        let text = String::from_utf8(api.get(&path).await.bytes).unwrap();
        assert!(text.contains(&format!("\"data\":{spec}")), "{text}");
    }
}

#[tokio::test]
async fn integers_that_64_bits_do_not_hold_are_refused() {
    let api = TestApi::spawn().await;
    for route in routes(&api).await {
        let text = route.body.to_string();
        for number in [
            "18446744073709551616",
            "-9223372036854775809",
            "1000000000000000000000000000000",
        ] {
            let body = if route.method == "PUT" {
                text.replace("\"thing\"", number)
            } else if text.contains("\"spec\":{}") {
                text.replace("\"spec\":{}", &format!("\"spec\":{{\"a\":{number}}}"))
            } else {
                text.replace("\"size\":1", &format!("\"size\":{number}"))
            };
            assert_ne!(body, text);
            let answer = api.send_bytes(route.method, &route.path, body).await;
            assert_malformed(&answer, "does not fit in 64 bits", number);
        }
    }
}

#[tokio::test]
async fn floats_keep_their_value_and_the_same_ones_are_no_change() {
    let api = TestApi::spawn().await;
    for (number, text) in FLOATS.iter().enumerate() {
        let spec = format!(r#"{{"a":{text},"b":[[{text}]]}}"#);
        let body = format!(r#"{{"kind":"Cluster","name":"n{number}0","spec":{spec}}}"#);
        let made = api.send_bytes("POST", "/clusters", body).await;
        assert_eq!(made.status, 201, "{text}: {}", made.body);
        let path = format!("/clusters/{}", made.id());
        let found = api.get(&path).await;
        assert_eq!(found.body["spec"], made.body["spec"], "{text}");
        for answer in [&made, &found] {
            let raw = String::from_utf8(answer.bytes.clone()).unwrap();
            let stored = spelled(&raw);
            assert_eq!(
                stored.parse::<f64>(),
                text.parse::<f64>(),
                "{text} became {stored}"
            );
        }
        let same = api
            .send_bytes("PATCH", &path, format!(r#"{{"spec":{spec}}}"#))
            .await;
        assert_eq!(
            (same.status, &same.body["generation"]),
            (200, &json!(1)),
            "{text}"
        );
        let own = api.patch(&path, json!({"spec": found.body["spec"]})).await;
        assert_eq!(
            (own.status, &own.body["generation"]),
            (200, &json!(1)),
            "{text}"
        );
    }
}

#[tokio::test]
async fn the_same_number_in_another_spelling_is_no_change() {
    let api = TestApi::spawn().await;
    for (number, (one, other)) in [
        ("1", "1.0"),
        ("100", "1e2"),
        ("0", "-0.0"),
        ("0.5", "5e-1"),
        ("10000000000000000", "1e16"),
        ("-9223372036854775808", "-9.223372036854775808e18"),
    ]
    .iter()
    .enumerate()
    {
        for (round, (first, second)) in [(one, other), (other, one)].iter().enumerate() {
            let name = format!("n{number}{round}");
            let body = format!(r#"{{"kind":"Cluster","name":"{name}","spec":{{"a":[{first}]}}}}"#);
            let made = api.send_bytes("POST", "/clusters", body).await;
            assert_eq!(made.status, 201, "{first}: {}", made.body);
            let path = format!("/clusters/{}", made.id());
            let again = format!(r#"{{"spec":{{"a":[{second}]}}}}"#);
            let same = api.send_bytes("PATCH", &path, again).await;
            assert_eq!(
                (same.status, &same.body["generation"]),
                (200, &json!(1)),
                "{first} to {second}"
            );
        }
    }
}

/// The number as it stands in an answer.
fn spelled(answer: &str) -> &str {
    let (_, rest) = answer.split_once("\"spec\":{\"a\":").unwrap();
    rest.split(',').next().unwrap().trim()
}

#[tokio::test]
async fn numbers_beyond_all_floats_are_refused() {
    let api = TestApi::spawn().await;
    for text in ["1e309", "-1e400", "1e99999999999999999999"] {
        let body = format!(r#"{{"kind":"Cluster","name":"abc","spec":{{"a":{text}}}}}"#);
        let answer = api.send_bytes("POST", "/clusters", body).await;
        assert_eq!(answer.status, 400, "{text}");
        assert_eq!(answer.code(), "VAL-000");
        assert_eq!(answer.fields(), ["spec"]);
    }
    for text in [
        "01", "+1", ".5", "1.", "0x10", "NaN", "Infinity", "-", "1e", "1_000",
    ] {
        let body = format!(r#"{{"kind":"Cluster","name":"abc","spec":{{"a":{text}}}}}"#);
        let answer = api.send_bytes("POST", "/clusters", body).await;
        assert_malformed(&answer, "Invalid JSON in request body", text);
    }
}

#[tokio::test]
async fn generations_of_reports_are_32_bits() {
    let api = TestApi::spawn().await;
    let path = format!("{}/statuses", api.cluster("abc").await);
    for (number, status) in [
        (json!(2_147_483_647), 204), // of the future: dropped
        (json!(2_147_483_648_i64), 400),
        (json!(-2_147_483_648_i64), 400),
        (json!(i64::MAX), 400),
        (json!(u64::MAX), 400),
        (json!(1.0), 400),
        (json!(1), 201),
    ] {
        let mut body = report(&api);
        body["observed_generation"] = number.clone();
        let answer = api.put(&path, body).await;
        assert_eq!(answer.status, status, "{number}: {}", answer.body);
    }
    let stored = api.get(&path).await;
    assert_eq!(stored.body["total"], 1);
    assert_eq!(
        stored.body["items"][0]["observed_generation"],
        Value::from(1)
    );
}
