//! No search leads out of the list that it is of (`docs/decisions/0010-searches.md`).

use std::collections::HashSet;

use super::{search, world};
use crate::support::Random;

/// Searches that would find everything, were they pasted into a statement, or into another search.
pub(super) const HOSTILE: [&str; 14] = [
    "name='a') OR (name='b'",
    "name='a') or (kind != ''",
    "id='anything' OR '1'='1'",
    "id='; DROP TABLE resources; --'",
    "id='x' or id is not null",
    "kind = 'Cluster' or kind = 'NodePool'",
    "kind in ('Cluster', 'NodePool')",
    "not kind = 'NodePool'",
    "not (kind = 'x' and owner_id = 'y')",
    "owner_id is null or owner_id is not null",
    "labels.x' = 'y",
    "labels.a'b is null",
    "name like '%' or owner_id like '%'",
    "spec.a'; select 1 --",
];

#[tokio::test]
async fn no_search_finds_what_is_not_in_its_list() {
    let api = world::populated().await;
    let all = api.get("/resources?size=100&includeDeleted=true").await;
    let owner = all
        .items()
        .iter()
        .find_map(|resource| resource["owner_references"]["id"].as_str())
        .unwrap();
    let nested = format!("/clusters/{owner}/nodepools");
    let lists = [
        "/clusters",
        "/nodepools",
        &nested,
        "/resources?kind=NodePool",
    ];
    let random = &mut Random::seeded(99);
    let sensible = (0..150).map(|_| world::sensible(random, 3));
    let texts: Vec<String> = HOSTILE
        .map(ToOwned::to_owned)
        .into_iter()
        .chain(sensible)
        .collect();
    for list in lists {
        let sign = if list.contains('?') { '&' } else { '?' };
        let complete = api
            .get(&format!("{list}{sign}size=100&includeDeleted=true"))
            .await;
        let complete: HashSet<&str> = complete.column("id").into_iter().collect();
        for text in &texts {
            let answer = search(&api, &format!("{list}{sign}includeDeleted=true"), text).await;
            assert!(
                [200, 400].contains(&answer.status),
                "{text}: {}",
                answer.body
            );
            for word in ["pq:", "SQLSTATE", "syntax error at or near"] {
                assert!(!answer.body.to_string().contains(word), "{}", answer.body);
            }
            if answer.status == 200 {
                for id in answer.column("id") {
                    assert!(complete.contains(&id), "{list} {text} finds {id}");
                }
            }
        }
    }
    assert_eq!(
        api.get("/resources?includeDeleted=true").await.body["total"],
        all.body["total"]
    );
}
