//! Many clients at once: nothing is lost, nothing happens twice, nobody waits for ever.

mod dependents;
mod families;
mod followed;
mod gathered;
mod mixed;
mod patches;
mod single;

use std::sync::Arc;

use futures_util::future::join_all;
use hyperfleet_domain::entity_config::{self, EntityConfig};
use hyperfleet_storage::{ConnectionLifetime, Settings, Store};
use sqlx::postgres::PgConnectOptions;

use crate::support::{TestApi, TestDatabase, assert_sound};

/// A server with enough connections for its requests to meet in the database.
struct Busy {
    api: Arc<TestApi>,
    entities: Vec<EntityConfig>,
    store: Store,
}

impl Busy {
    async fn spawn() -> Self {
        Self::spawn_with(entity_config::built_in()).await
    }

    async fn spawn_with(entities: Vec<EntityConfig>) -> Self {
        Self::spawn_connected(entities, |options| options).await
    }

    /// With the built-in kinds, over other connections than directly to the database.
    async fn spawn_through(connect: impl FnOnce(PgConnectOptions) -> PgConnectOptions) -> Self {
        Self::spawn_connected(entity_config::built_in(), connect).await
    }

    async fn spawn_connected(
        entities: Vec<EntityConfig>,
        connect: impl FnOnce(PgConnectOptions) -> PgConnectOptions,
    ) -> Self {
        let database = TestDatabase::create().await;
        let store = Store::new(Settings {
            connect: connect(database.options()),
            connections_max: 12,
            acquire_seconds_max: 60,
            statement_milliseconds_max: 60_000,
            lifetime: ConnectionLifetime::default(),
        });
        let registry = entity_config::registry(&entities).unwrap();
        let api = TestApi::spawn_on(registry, database, store.clone(), false);
        Self {
            api: Arc::new(api),
            entities,
            store,
        }
    }

    /// Sends all of them at once; gives the answers in the order of the requests.
    async fn at_once<T, F>(&self, requests: impl Iterator<Item = F>) -> Vec<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let tasks: Vec<_> = requests.map(tokio::spawn).collect();
        let answers = join_all(tasks).await;
        answers.into_iter().map(Result::unwrap).collect()
    }

    /// Checks what must hold when all is quiet, and that the database had no deadlock to break.
    async fn assert_sound(&self) {
        // Counters of a connection are complete once it is closed.
        self.store.close();
        let mut connection = self.api.database.connect().await;
        let others = "SELECT count(*) FROM pg_stat_activity
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";
        while sqlx::query_scalar::<_, i64>(others)
            .fetch_one(&mut connection)
            .await
            .unwrap()
            > 0
        {
            tokio::task::yield_now().await;
        }
        let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
        let query = sqlx::query_scalar::<_, i64>(deadlocks);
        assert_eq!(
            query.fetch_one(&mut connection).await.unwrap(),
            0,
            "deadlocks"
        );
        assert_sound(&mut connection, &self.entities).await;
    }

    async fn count(&self, sql: &'static str, path: &str) -> i64 {
        let id: uuid::Uuid = path.rsplit('/').next().unwrap().parse().unwrap();
        let mut connection = self.api.database.connect().await;
        let query = sqlx::query_scalar(sql).bind(id);
        query.fetch_one(&mut connection).await.unwrap()
    }
}
