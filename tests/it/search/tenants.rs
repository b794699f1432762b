//! No search, whatever its text, finds or counts what is of another tenant, kind or owner.
//!
//! What a tenant's search may find is what the same search finds for a system identity, who sees
//! everything, less what is not the tenant's. So nothing is held against a model of ours.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::scope::HOSTILE;
use super::{encoded, search, world};
use crate::support::{ACME, Answer, BETA, Random, SYSTEM, TestApi, Walls};

/// Pieces of searches, of SQL, and of what our statements say.
const PIECES: [&str; 30] = [
    "'",
    "\"",
    "`",
    "(",
    ")",
    ") or (",
    "or",
    "and",
    "not",
    "--",
    ";",
    "/*",
    "\\",
    "$1",
    "is null",
    "tenancy",
    "tenancy = '{}'",
    "r.tenancy",
    "'{}'",
    "1=1",
    "or true",
    "name like '%'",
    "in",
    "[]",
    "=",
    "!=",
    "\0",
    "\u{e9}",
    "owner_id",
    "spec.a",
];

/// A text that may make sense: one that does, in which something was cut, doubled or pasted.
fn any_text(random: &mut Random) -> String {
    let mut text = match random.below(4) {
        0 => random.pick(&HOSTILE).to_owned(),
        1 => String::new(),
        _ => world::sensible(random, 3),
    };
    for _ in 0..random.below(5) {
        let at = boundary(&text, random.below(text.len() + 1));
        match random.below(4) {
            0 => text.truncate(at),
            1 => {
                let end = boundary(&text, at + random.below(text.len() - at + 1));
                text.replace_range(at..end, "");
            }
            2 => {
                let word = random.pick(&["or", "and"]);
                text = format!("{text} {word} {}", world::sensible(random, 1));
            }
            _ => text.insert_str(at, random.pick(&PIECES)),
        }
    }
    text
}

/// The last place up to `at` where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

fn ids(answer: &Answer, is_meant: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let items = answer.items().iter().filter(|item| is_meant(item));
    items
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

/// A cluster that has node pools.
async fn an_owner(api: &TestApi) -> String {
    let pools = api.get("/nodepools?includeDeleted=true").await;
    let owner = pools.items()[0]["owner_references"]["id"].as_str();
    owner.unwrap().to_owned()
}

/// Whether a list is meant to have a resource.
type Meant = Box<dyn Fn(&Value) -> bool>;

/// Lists of several kinds, owners and neither, with what is meant to be in each.
fn lists(owner: &str) -> [(String, Meant); 5] {
    let is_pool = |item: &Value| item["kind"] == "NodePool";
    let id = json!(owner);
    let is_owned = move |item: &Value| is_pool(item) && item["owner_references"]["id"] == id;
    [
        (
            "/clusters".to_owned(),
            Box::new(|item| item["kind"] == "Cluster"),
        ),
        ("/nodepools".to_owned(), Box::new(is_pool)),
        ("/resources?kind=NodePool".to_owned(), Box::new(is_pool)),
        (format!("/clusters/{owner}/nodepools"), Box::new(is_owned)),
        ("/resources".to_owned(), Box::new(|_| true)),
    ]
}

#[tokio::test]
async fn no_search_leads_out_of_its_tenant_kind_and_owner() {
    let entities = hyperfleet_domain::entity_config::built_in();
    let api = TestApi::spawn_for(&entities, Walls::Up).await;
    let (acme, beta, system) = (api.speaking(ACME), api.speaking(BETA), api.speaking(SYSTEM));
    world::populate(&acme, &mut Random::seeded(7)).await;
    world::populate(&beta, &mut Random::seeded(8)).await;
    let owner = an_owner(&acme).await;
    let lists = lists(&owner);
    let theirs = an_owner(&beta).await;
    let mut found = 0;
    let mut refused = 0;
    let random = &mut Random::seeded(2026);
    for round in 0..400 {
        let text = if round < HOSTILE.len() {
            HOSTILE[round].to_owned()
        } else {
            any_text(random)
        };
        let (list, is_meant) = &lists[round % lists.len()];
        let sign = if list.contains('?') { '&' } else { '?' };
        let list = format!("{list}{sign}includeDeleted=true");
        let answer = search(&acme, &list, &text).await;
        // To see all of it takes no more than a page.
        let all = search(&system, "/resources?includeDeleted=true", &text).await;
        assert_eq!(answer.status, all.status, "{text:?}: {}", answer.body);
        assert!(
            [200, 400].contains(&answer.status),
            "{text:?}: {}",
            answer.body
        );
        let foreign = search(&acme, &format!("/clusters/{theirs}/nodepools"), &text).await;
        assert_eq!(foreign.status, 404, "{text:?}: {}", foreign.body);
        if answer.status == 400 {
            assert_eq!(answer.detail(), all.detail(), "{text:?}");
            refused += 1;
            continue;
        }
        assert!(all.body["total"].as_u64().unwrap() <= 100, "{text:?}");
        let is_ours = |item: &Value| item["tenancy"] == json!({"org": "acme"}) && is_meant(item);
        let expected = ids(&all, is_ours);
        assert_eq!(ids(&answer, |_| true), expected, "{list} {text:?}");
        assert_eq!(answer.body["total"], expected.len(), "{list} {text:?}");
        found += expected.len();
    }
    // It is no proof if nothing is ever found, or everything refused.
    assert!(found > 400, "{found} found");
    assert!((50..350).contains(&refused), "{refused} refused");
}

#[tokio::test]
async fn no_continued_search_leads_out_of_its_tenant() {
    let entities = hyperfleet_domain::entity_config::built_in();
    let api = TestApi::spawn_for(&entities, Walls::Up).await;
    let tenants = [api.speaking(ACME), api.speaking(BETA)];
    for (tenant, seed) in tenants.iter().zip([7, 8]) {
        world::populate(tenant, &mut Random::seeded(seed)).await;
    }
    let orgs = ["acme", "beta"];
    let random = &mut Random::seeded(11);
    let mut continued = 0;
    for round in 0..120 {
        let text = world::sensible(random, 2);
        let list = random.pick(&["/clusters", "/nodepools", "/resources"]);
        let order = random.pick(&["name", "created_time", "owner_id,name%20desc", "generation"]);
        let size = 1 + random.below(4);
        let list = format!("{list}?order={order}&size={size}&search={}", encoded(&text));
        let (from, to) = (round % 2, 1 - round % 2);
        let page = tenants[from].get(&list).await;
        let Some(token) = page.body["continue"].as_str() else {
            continue;
        };
        let next = format!("{list}&continue={token}");
        let ours = tenants[from].get(&next).await;
        assert_eq!(ours.status, 200, "{next}: {}", ours.body);
        let is_ours = |item: &Value| item["tenancy"]["org"] == orgs[from];
        assert!(ours.items().iter().all(is_ours), "{next}: {}", ours.body);
        let theirs = tenants[to].get(&next).await;
        assert_eq!(
            theirs.problem(),
            (400, "VAL-000"),
            "{next}: {}",
            theirs.body
        );
        continued += 1;
    }
    assert!(continued >= 20, "{continued} continued");
}
