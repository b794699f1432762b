//! A filter decides in memory what PostgreSQL decides by the statement of a list: the same resources match, whatever
//! they hold and whatever is asked.

mod resources;
mod searches;

use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::tsl::{self, SearchError};
use hyperfleet_domain::{EntityRegistry, Resource, entity_config};
use hyperfleet_storage::{ResourceScope, Store};
use sqlx::{AssertSqlSafe, Connection as _};

use super::search;
use crate::support::{Random, TestApi, TestDatabase};

/// Fits on one page.
const RESOURCES: u32 = 90;
const SEARCHES: usize = 700;

#[tokio::test]
async fn a_filter_in_memory_finds_what_the_database_finds() {
    compare(TestDatabase::create().await, 20_261_201).await;
}

#[tokio::test]
async fn the_locale_of_the_database_makes_no_difference() {
    compare(of_another_locale().await, 20_261_202).await;
}

/// The test server's own locale orders by bytes, and knows only the cases of `a` to `z`; this one has the rules of a
/// language where the server can have them.
async fn of_another_locale() -> TestDatabase {
    let empty = TestDatabase::create_empty().await;
    let mut connection = empty.connect().await;
    let version: String = sqlx::query_scalar("SHOW server_version_num")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    let provider = if version.parse::<u32>().unwrap() >= 150_000 {
        "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
    } else {
        ""
    };
    let name = format!("hyperfleet_locale_{}", std::process::id());
    let sql = format!(
        "CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8' {provider}"
    );
    let sql = sqlx::raw_sql(AssertSqlSafe(sql));
    sql.execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let database = TestDatabase::at(empty.options().database(&name));
    let store = database.store();
    store.migrate(std::time::Duration::ZERO).await.unwrap();
    store.close();
    database
}

async fn compare(database: TestDatabase, seed: u64) {
    let random = &mut Random::seeded(seed);
    let kinds = entity_config::registry(&entity_config::built_in()).unwrap();
    let mut connection = database.connect().await;
    let made = resources::inserted(&mut connection, random, RESOURCES).await;
    let read = read_again(&database.store(), &made).await;
    let store = database.store();
    let api = TestApi::spawn_on(kinds.clone(), database, store, true);
    let (mut some, mut refused) = (0, 0);
    let mut differences = Vec::new();
    for _ in 0..SEARCHES {
        let text = searches::any(random, &made, &kinds);
        let filter = match tsl::parse(&text) {
            Ok(filter) => filter,
            // Long ones exceed a limit now and then.
            Err(error) => {
                let is_limit =
                    error == SearchError::TooLong || error.to_string().contains("more than");
                assert!(is_limit, "{text}: {error}");
                refused += 1;
                continue;
            }
        };
        let answer = search(&api, "/resources?includeDeleted=true&fields=id", &text).await;
        assert_eq!(answer.status, 200, "{text}: {}", answer.body);
        let mut found = answer.column("id");
        found.sort_unstable();
        for (origin, resources) in [("as made", &made), ("as read", &read)] {
            let matching = matching(&filter, resources, &kinds);
            if matching != found {
                differences.push(format!(
                    "{text}\n  the database: {found:?}\n  in memory, {origin}: {matching:?}"
                ));
            }
        }
        some += usize::from(!found.is_empty() && found.len() < made.len());
    }
    assert!(
        differences.is_empty(),
        "{} differ, such as\n{}",
        differences.len(),
        differences[..differences.len().min(12)].join("\n")
    );
    // Most of them tell resources apart.
    assert!(some > SEARCHES / 2, "{some}");
    assert!(refused < SEARCHES / 10, "{refused}");
}

/// The ids of those that match, sorted.
fn matching(filter: &tsl::Filter, resources: &[Resource], kinds: &EntityRegistry) -> Vec<String> {
    let matching = resources.iter().filter(|r| filter.matches(r, kinds));
    let mut ids: Vec<_> = matching.map(|r| r.state.id.to_string()).collect();
    ids.sort_unstable();
    ids
}

/// The same resources from the database.
async fn read_again(store: &Store, made: &[Resource]) -> Vec<Resource> {
    let mut rows = store.row_access();
    let mut read = Vec::new();
    for resource in made {
        let scope = ResourceScope {
            tenants: &TenantScope::ALL,
            kind: None,
            owner: None,
            id: resource.state.id,
        };
        let found = rows.find_with_reports(scope, &[]).await.unwrap();
        read.push(found.unwrap().resource);
    }
    read
}
