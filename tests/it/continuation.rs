//! `continue`: lists taken up where an answer ended.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::search::{encoded, populated};
use crate::support::{Answer, Random, TestApi, root};

const FIELDS: [&str; 11] = [
    "id",
    "name",
    "kind",
    "generation",
    "created_time",
    "created_by",
    "updated_time",
    "updated_by",
    "deleted_time",
    "deleted_by",
    "owner_id",
];

fn token(answer: &Answer) -> Option<&str> {
    answer
        .body
        .get("continue")
        .map(|token| token.as_str().unwrap())
}

fn ids(answer: &Answer) -> Vec<String> {
    answer
        .column("id")
        .into_iter()
        .map(ToOwned::to_owned)
        .collect()
}

async fn page(api: &TestApi, list: &str, size: usize, token: Option<&str>) -> Answer {
    let sign = if list.contains('?') { '&' } else { '?' };
    let token = token.map_or_else(String::new, |token| format!("&continue={token}"));
    let answer = api.get(&format!("{list}{sign}size={size}{token}")).await;
    assert_eq!(answer.status, 200, "{list} {token}: {}", answer.body);
    answer
}

/// Every id of a list, by pages of changing size.
async fn walked(api: &TestApi, random: &mut Random, list: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let mut next = None;
    for number in 1.. {
        let size = 1 + random.below(7);
        let answer = page(api, list, size, next.as_deref()).await;
        assert_eq!(answer.body["page"], number, "{list}");
        assert_eq!(answer.body["size"], answer.items().len(), "{list}");
        seen.extend(ids(&answer));
        next = token(&answer).map(ToOwned::to_owned);
        if next.is_none() {
            assert_eq!(answer.body["total"], seen.len(), "{list}");
            break;
        }
        assert_eq!(answer.items().len(), size, "{list}");
    }
    seen
}

#[tokio::test]
async fn every_order_can_be_continued() {
    let api = populated().await;
    let random = &mut Random::seeded(1);
    for round in 0..80 {
        let keys: Vec<_> = (0..=random.below(3))
            .map(|_| format!("{}{}", random.pick(&FIELDS), random.pick(&["", " desc"])))
            .collect();
        let search = match round % 3 {
            0 => encoded("generation >= 1 and name like '%e%'"),
            _ => String::new(),
        };
        let deleted = random.pick(&["true", "false"]);
        let list = random.pick(&["/resources", "/clusters", "/nodepools"]);
        let order = encoded(&keys.join(","));
        let list = format!("{list}?includeDeleted={deleted}&order={order}&search={search}");
        let complete = page(&api, &list, 100, None).await;
        assert_eq!(token(&complete), None, "{list}");
        assert_eq!(walked(&api, random, &list).await, ids(&complete), "{list}");
    }
}

#[tokio::test]
async fn numbered_nested_and_sparse_pages_can_be_continued() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("with-pools").await;
    for number in 0..9 {
        api.nodepool(&cluster, &format!("pool-{number}")).await;
        api.clock.advance(1);
    }
    let second = api.get(&format!("{cluster}/nodepools?page=2&size=3")).await;
    let list = format!("{cluster}/nodepools");
    let third = page(&api, &list, 5, token(&second)).await;
    assert_eq!(third.column("name"), ["pool-2", "pool-1", "pool-0"]);
    assert_eq!(third.body["page"], 3);
    assert_eq!(third.body["total"], 9);
    assert_eq!(token(&third), None);
    let sparse = page(&api, &format!("{list}?fields=name"), 8, None).await;
    // The fields and the size of pages may change between pages.
    let rest = page(&api, &list, 8, token(&sparse)).await;
    assert_eq!(rest.column("name"), ["pool-0"]);
    // A list that ends with its page has nothing after it.
    assert_eq!(token(&page(&api, &list, 9, None).await), None);
    assert!(token(&page(&api, &list, 8, None).await).is_some());
    let empty = api.get("/clusters?search=name%3D%27x%27").await;
    assert_eq!(token(&empty), None);
}

/// Rows come and go, and change, between any two pages.
#[tokio::test]
async fn what_is_there_throughout_is_seen_once() {
    for order in [
        "created_time desc",
        "created_time",
        "name",
        "id desc",
        "kind,name desc",
    ] {
        let api = TestApi::spawn_with(&[root("Thing", "things", &[])]).await;
        let random = &mut Random::seeded(3);
        let mut there = Vec::new();
        for number in 0..60 {
            there.push(made(&api, random, number).await);
        }
        let mut staying: BTreeSet<String> = there.iter().cloned().collect();
        let list = format!("/things?order={}", encoded(order));
        let mut seen = Vec::new();
        let mut next = None;
        for number in 1000.. {
            let answer = page(&api, &list, 4, next.as_deref()).await;
            seen.extend(ids(&answer));
            next = token(&answer).map(ToOwned::to_owned);
            if next.is_none() {
                break;
            }
            made(&api, random, number).await;
            let leaving = there.swap_remove(random.below(there.len()));
            api.deleted(&format!("/things/{leaving}")).await;
            staying.remove(&leaving);
            let changing = there[random.below(there.len())].clone();
            let change = json!({"labels": {"changed": number.to_string()}});
            let changed = api.patch(&format!("/things/{changing}"), change).await;
            assert_eq!(changed.status, 200, "{}", changed.body);
        }
        let once: BTreeSet<String> = seen.iter().cloned().collect();
        assert_eq!(once.len(), seen.len(), "{order}: seen twice");
        assert!(staying.len() > 30, "{order}: nearly all left");
        assert!(staying.is_subset(&once), "{order}: skipped");
    }
}

/// A thing with a name anywhere in the order of names; its id.
async fn made(api: &TestApi, random: &mut Random, number: usize) -> String {
    let name = format!("t{}-{number}", random.below(100));
    // Several were made at the same instant.
    api.clock.advance(i64::try_from(random.below(2)).unwrap());
    api.made("/things", "Thing", &name).await.id().to_owned()
}

#[tokio::test]
async fn a_token_of_another_list_or_of_none_is_refused() {
    let api = populated().await;
    let list = "/clusters?order=name&search=generation%3E0";
    let good = page(&api, list, 2, None).await;
    let good = token(&good).unwrap();
    let refused = async |path: &str, why: &str| {
        let answer = api.get(path).await;
        assert_eq!(
            answer.problem(),
            (400, "VAL-000"),
            "{path}: {}",
            answer.body
        );
        assert_eq!(answer.detail(), "Invalid query parameters");
        let violation = &answer.body["errors"][0];
        assert_eq!(violation["field"], "continue", "{path}");
        assert_eq!(violation["constraint"], "format", "{path}");
        let message = violation["message"].as_str().unwrap();
        assert!(message.contains(why), "{path}: {message}");
    };
    for other in [
        "/clusters?order=name",
        "/clusters?order=name&search=generation%3E1",
        "/clusters?order=name%20desc&search=generation%3E0",
        "/clusters?orderBy=name&search=generation%3E0",
        "/clusters?order=name&search=generation%3E0&includeDeleted=true",
        "/resources?order=name&search=generation%3E0",
        "/resources?kind=Cluster&order=name&search=generation%3E0",
        "/nodepools?order=name&search=generation%3E0",
    ] {
        refused(
            &format!("{other}&continue={good}"),
            "belongs to another list",
        )
        .await;
    }
    refused(
        &format!("{list}&page=2&continue={good}"),
        "cannot be combined with page",
    )
    .await;
    for garbage in [
        "x",
        "%00",
        "%F0%9F%98%80",
        &"a".repeat(9000),
        &good[1..],
        &good[..good.len() - 2],
    ] {
        refused(&format!("{list}&continue={garbage}"), "is not a token").await;
    }
    // An empty one is none.
    assert_eq!(api.get(&format!("{list}&continue=")).await.status, 200);
    // Another spelling of the same list is the same list, blank parameters are none.
    let spelled =
        format!("/clusters/?search=%20generation%3E0&order=name&kind=&orderBy=%20&continue={good}");
    assert_eq!(api.get(&spelled).await.status, 200);
}

/// A client that changes a token gets a 400, or a part of the same list.
#[tokio::test]
async fn forged_tokens_do_no_harm() {
    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;

    let api = populated().await;
    let id = "00000000-0000-0000-0000-000000000001";
    let list = "/clusters?order=name,generation,deleted_time";
    let first = page(&api, list, 2, None).await;
    let honest = BASE64.decode(token(&first).unwrap()).unwrap();
    let honest: Value = serde_json::from_slice(&honest).unwrap();
    let key = &honest[1];
    let forged = |value: Value| format!("{list}&continue={}", BASE64.encode(value.to_string()));
    for (value, status) in [
        (json!([1, key, 1, ["a", "1", null, id]]), 200),
        (json!([1, key, u32::MAX, ["a", "1", "0", id]]), 200),
        (json!([1, key, 1, ["' OR true --", "1", null, id]]), 200),
        (
            json!([1, key, 1, ["a", "1", "253402300799999999", id]]),
            200,
        ),
        (
            json!([1, key, 1, ["a", "1", "-62167219200000000", id]]),
            200,
        ),
        (
            json!([1, key, 1, ["a", "1", "8210266876799999999", id]]),
            400,
        ),
        (
            json!([1, key, 1, ["a", "1", "-8334601228800000000", id]]),
            400,
        ),
        (json!([1, key, 1, ["a\u{0}", "1", null, id]]), 400),
        (json!([1, key, 1, ["a", "x", null, id]]), 400),
        (json!([1, key, 1, ["a", null, null, id]]), 400),
        (json!([1, key, 1, ["a", "1", null]]), 400),
        (json!([1, key, 1, ["a", "1", null, id, id]]), 400),
        (json!([1, key, 1, []]), 400),
        (json!([1, key, -1, ["a", "1", null, id]]), 400),
        (json!([1, key, 1, ["a", 1, null, id]]), 400),
        (json!([2, key, 1, ["a", "1", null, id]]), 400),
        (json!([1, "", 1, ["a", "1", null, id]]), 400),
        (json!({}), 400),
        (json!(null), 400),
    ] {
        let answer = api.get(&forged(value.clone())).await;
        assert_eq!(answer.status, status, "{value}: {}", answer.body);
    }
    let random = &mut Random::seeded(5);
    for _ in 0..300 {
        let mut bytes = BASE64.decode(token(&first).unwrap()).unwrap();
        let at = random.below(bytes.len());
        bytes[at] = u8::try_from(random.below(256)).unwrap();
        let answer = api
            .get(&format!("{list}&continue={}", BASE64.encode(bytes)))
            .await;
        assert!([200, 400].contains(&answer.status), "{}", answer.body);
    }
}
