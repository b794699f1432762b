//! Resources that an operator assigns to another tenant by hand.

use super::kinds;
use crate::support::{ACME, BETA, TestApi, TestDatabase, Walls};

#[tokio::test]
async fn a_resource_that_changes_hands_is_counted_where_it_is() {
    let before = TestApi::spawn_with(&kinds()).await;
    for name in ["one", "two", "three"] {
        before.cluster(name).await;
    }
    let registry = hyperfleet_domain::entity_config::registry(&kinds()).unwrap();
    let database = TestDatabase::at(before.database.options());
    let api = TestApi::again_for(registry, database, Walls::Up);
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    let mut connection = api.database.connect().await;
    let mut give = async |sql: &'static str| {
        let updated = sqlx::query(sql).execute(&mut connection).await.unwrap();
        let mut totals = Vec::new();
        for api in [&acme, &beta, &before] {
            let list = api.get("/clusters").await;
            assert_eq!(list.body["total"], list.items().len());
            totals.push(list.items().len());
        }
        (updated.rows_affected(), totals)
    };
    let to_acme = "UPDATE resources SET tenancy = '{\"org\": \"acme\"}' WHERE name <> 'three'";
    assert_eq!(give(to_acme).await, (2, vec![2, 0, 3]));
    assert_eq!(give(to_acme).await, (2, vec![2, 0, 3]));
    let to_beta = "UPDATE resources SET tenancy = '{\"org\": \"beta\"}' WHERE name <> 'one'";
    assert_eq!(give(to_beta).await, (2, vec![1, 2, 3]));
    let to_nobody = "UPDATE resources SET tenancy = '{}'";
    assert_eq!(give(to_nobody).await, (3, vec![0, 0, 3]));
}
