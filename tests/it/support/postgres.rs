use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hyperfleet_devkit::{Durability, PrivatePostgres};
use hyperfleet_storage::{ConnectionLifetime, Settings, Store};
use hyperfleet_testkit::{scratch_root, until};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::sync::OnceCell;

/// A fresh database with the schema, copied from a template.
///
/// The server is the one that `DATABASE_URL` names, or a throw-away one that this process starts; it ends with the
/// process, and the databases with it.
pub(crate) struct TestDatabase {
    options: PgConnectOptions,
}

/// Counts statements that wait for a lock, for longer than a change does in its first turn.
pub(crate) const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
      AND clock_timestamp() - query_start > interval '50 ms'";

/// Settings of a role or a database that suit other programs, but not the service.
const UNSUITABLE: [(&str, &str); 24] = [
    ("default_transaction_deferrable", "on"),
    ("lock_timeout", "1ms"),
    ("statement_timeout", "1ms"),
    ("idle_in_transaction_session_timeout", "1ms"),
    ("idle_session_timeout", "1ms"),
    ("row_security", "off"),
    ("bytea_output", "escape"),
    ("datestyle", "SQL, DMY"),
    ("intervalstyle", "sql_standard"),
    ("timezone", "Asia/Kathmandu"),
    ("extra_float_digits", "-15"),
    ("standard_conforming_strings", "off"),
    ("transform_null_equals", "on"),
    ("array_nulls", "off"),
    ("plan_cache_mode", "force_custom_plan"),
    ("enable_indexscan", "off"),
    ("enable_nestloop", "off"),
    ("enable_hashjoin", "off"),
    ("gin_fuzzy_search_limit", "1"),
    ("synchronous_commit", "off"),
    ("default_tablespace", "pg_default"),
    ("client_min_messages", "debug5"),
    ("jit", "on"),
    ("jit_above_cost", "0"),
];

static SERVER: OnceLock<String> = OnceLock::new();
static TEMPLATE: OnceCell<String> = OnceCell::const_new();
static COUNT: AtomicU32 = AtomicU32::new(0);

impl TestDatabase {
    pub(crate) async fn create() -> Self {
        let template = TEMPLATE.get_or_init(make_template).await;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{template}_{number}");
        let mut admin = PgConnection::connect(&server_url()).await.unwrap();
        // Copying files is fastest without syncing; older servers know no other way.
        let strategy = if is_at_least_15(&mut admin).await {
            " STRATEGY file_copy"
        } else {
            ""
        };
        let sql = format!("CREATE DATABASE {name} TEMPLATE {template}{strategy}");
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut admin)
            .await
            .unwrap();
        admin.close().await.unwrap();
        Self::on_server(&name)
    }

    /// A database without a schema.
    pub(crate) async fn create_empty() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hyperfleet_empty_{}_{number}", std::process::id());
        let mut admin = PgConnection::connect(&server_url()).await.unwrap();
        let sql = format!("CREATE DATABASE {name}");
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut admin)
            .await
            .unwrap();
        Self::on_server(&name)
    }

    fn on_server(name: &str) -> Self {
        let options = server_url().parse::<PgConnectOptions>().unwrap();
        Self::at(options.database(name))
    }

    /// A database on another server.
    pub(crate) fn at(options: PgConnectOptions) -> Self {
        Self { options }
    }

    pub(crate) fn options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// The URL for a program that connects to it.
    pub(crate) fn url(&self) -> String {
        self.options.to_url_lossy().to_string()
    }

    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&self.options()).await.unwrap()
    }

    pub(crate) fn store(&self) -> Store {
        store(self.options())
    }

    /// Gives every later session this isolation by default, and further settings that suit other programs.
    pub(crate) async fn make_unsuitable(&self, isolation: &str) {
        let mut connection = self.connect().await;
        let name = self.options.get_database().unwrap();
        let isolation = [("default_transaction_isolation", isolation)];
        for (setting, value) in UNSUITABLE.iter().chain(&isolation) {
            // `datestyle` is a list, whose items must not be in one pair of quotes.
            let value = value.split(", ").collect::<Vec<_>>().join("', '");
            let sql = format!("ALTER DATABASE {name} SET {setting} = '{value}'");
            let set = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection);
            set.await.unwrap();
        }
    }
}

/// Counters of the database, read once they stand still: sessions publish theirs once a second at most.
pub(crate) async fn still<T: PartialEq>(mut read: impl AsyncFnMut() -> T) -> T {
    let mut counters = read().await;
    until("the counters stand still", async || {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let earlier = std::mem::replace(&mut counters, read().await);
        counters == earlier
    })
    .await;
    counters
}

/// A store with few connections: many tests run at a time.
pub(crate) fn store(connect: PgConnectOptions) -> Store {
    store_of(connect, 4)
}

/// A store with this many connections.
pub(crate) fn store_of(connect: PgConnectOptions, connections_max: usize) -> Store {
    Store::new(Settings {
        connect,
        connections_max,
        acquire_seconds_max: 20,
        statement_milliseconds_max: 30_000,
        lifetime: ConnectionLifetime::default(),
    })
}

async fn is_at_least_15(admin: &mut PgConnection) -> bool {
    let version: String = sqlx::query_scalar("SHOW server_version_num")
        .fetch_one(admin)
        .await
        .unwrap();
    version.parse::<u32>().unwrap() >= 150_000
}

async fn make_template() -> String {
    let name = format!("hyperfleet_test_{}", std::process::id());
    let mut admin = PgConnection::connect(&server_url()).await.unwrap();
    for sql in [
        format!("DROP DATABASE IF EXISTS {name}"),
        format!("CREATE DATABASE {name}"),
    ] {
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut admin)
            .await
            .unwrap();
    }
    let options = server_url()
        .parse::<PgConnectOptions>()
        .unwrap()
        .database(&name);
    let store = store(options);
    store.migrate(Duration::ZERO).await.unwrap();
    store.close();
    // A template must have no connections while it is copied.
    let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1";
    while sqlx::query_scalar::<_, i64>(count)
        .bind(&name)
        .fetch_one(&mut admin)
        .await
        .unwrap()
        > 0
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    name
}

/// URL of the server's own database.
fn server_url() -> String {
    SERVER
        .get_or_init(|| {
            if let Ok(url) = std::env::var("DATABASE_URL") {
                return url;
            }
            // The server ends with the thread that started it: one that never ends.
            let (sender, receiver) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let name = format!("hyperfleet-test-{}", std::process::id());
                let folder = scratch_root().join(name);
                let server = PrivatePostgres::start(&folder, Durability::ThrownAway).unwrap();
                sender.send(server.url("postgres")).unwrap();
                loop {
                    std::thread::park();
                }
            });
            receiver
                .recv()
                .expect("a private PostgreSQL; its error stands above")
        })
        .clone()
}
