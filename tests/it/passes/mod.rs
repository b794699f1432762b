//! Passes of the audit trail: a hash chain that is computed behind the writes, and its verification.
//!
//! What is settled depends on every transaction of the server, those of other tests included: so these tests wait.

mod commands;
mod retention;
mod sealing;
mod tampering;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use hyperfleet_audit::{AuditReport, ChainVerifier, FaultKind, RetentionRule};
use hyperfleet_domain::entity_config;
use hyperfleet_service::app::Service;
use hyperfleet_service::app::trail::{TrailRange, TrailReader};
use hyperfleet_storage::TrailEnd;
use hyperfleet_testkit::RunningProgram;
use serde_json::Value;
use sqlx::AssertSqlSafe;

use crate::support::{ACME, BETA, TestApi, TestDatabase, Walls, until};

/// With the first one, which covers nothing.
const PASSES: &str = "SELECT count(*) FROM audit_passes";
/// Entries before which another one can still appear.
const UNSETTLED: &str = "SELECT count(*) FROM audit_entries
    WHERE (era, commit_order) >= (audit_era(), pg_snapshot_xmin(pg_current_snapshot())::text::bigint)";

/// A service whose trail is sealed by the test.
struct Sealed {
    api: TestApi,
    service: Service,
}

/// The service of an instance.
fn instance(database: &TestDatabase) -> Service {
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    Service::new(database.store(), Arc::new(registry), false)
}

impl Sealed {
    /// For tenants.
    async fn spawn() -> Self {
        let api = TestApi::spawn_for(&entity_config::built_in(), Walls::Up).await;
        let service = instance(&api.database);
        Self { api, service }
    }

    /// The same with three passes, of two tenants.
    async fn filled() -> Self {
        let sealed = Self::spawn().await;
        let [acme, beta] = [ACME, BETA].map(|tenant| sealed.api.speaking(tenant));
        for round in 0..3 {
            for number in 0..3 {
                acme.cluster(&format!("acme-{round}-{number}")).await;
            }
            beta.cluster(&format!("beta-{round}")).await;
            sealed.seal().await;
            sealed.api.clock.advance(3_600);
        }
        sealed
    }

    fn now(&self) -> DateTime<Utc> {
        self.api.clock.now()
    }

    /// Seals everything that there is, in one pass: waits for other transactions of the server first.
    async fn seal(&self) {
        until("every entry is settled", async || {
            self.api.count(UNSETTLED).await == 0
        })
        .await;
        assert!(self.pass().await > 0);
        let tail = self.service.unsealed_tail(self.now()).await.unwrap();
        assert_eq!(tail.age, None);
    }

    /// One pass; the number of entries that it has sealed.
    async fn pass(&self) -> usize {
        let count = self.service.seal_audit(self.now()).await.unwrap();
        count.expect("no other instance seals")
    }

    async fn verify(&self) -> AuditReport {
        self.verify_range(TrailRange::default()).await
    }

    async fn verify_range(&self, range: TrailRange) -> AuditReport {
        self.verify_with(range, RetentionRule::new(self.now(), None))
            .await
    }

    async fn verify_with(&self, range: TrailRange, rule: RetentionRule) -> AuditReport {
        let store = self.api.database.store();
        let reader = TrailReader::open(&store, range, TrailEnd::Newest).await;
        let mut reader = reader.unwrap();
        let mut verifier = ChainVerifier::default();
        while let Some(line) = reader.next().await.unwrap() {
            verifier.take(Some(line));
        }
        let mut report = verifier.finish();
        if let Some(first) = reader.first.clone() {
            let left = reader.removed_entries().await.unwrap();
            report.check_removed(&first, left, rule);
        }
        reader.close().await.unwrap();
        report
    }

    /// Kinds of the faults, with the numbers of their passes.
    async fn faults(&self) -> Vec<(FaultKind, Option<i64>)> {
        let faults = self.verify().await.faults.into_iter();
        faults.map(|fault| (fault.kind, fault.number)).collect()
    }

    /// Executes SQL as an operator whom no trigger stops.
    async fn tamper(&self, sql: &str) {
        let mut connection = self.api.database.connect().await;
        let sql = format!("SET session_replication_role = replica; {sql}");
        let result = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection);
        result.await.unwrap();
    }

    /// Runs `hyperfleet-api audit …` on the database: its exit code, standard output, and all that it printed.
    async fn audit(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let url = self.api.database.url();
        audit(&[args, &["--database-url", &url]].concat()).await
    }

    /// Exports the whole trail to a file.
    async fn export_to(&self, file: &Path) {
        let (code, export, said) = self.audit(&["export"]).await;
        assert_eq!(code, Some(0), "{said}");
        std::fs::write(file, export).unwrap();
    }

    /// The report of `audit verify`, which must end with this code.
    async fn report(&self, args: &[&str], expected: i32) -> Value {
        let (code, output, said) = self
            .audit(&[&["verify", "-o", "json"], args].concat())
            .await;
        assert_eq!(code, Some(expected), "{said}");
        serde_json::from_str(&output).unwrap()
    }
}

async fn audit(args: &[&str]) -> (Option<i32>, String, String) {
    audit_with(&[], args).await
}

/// The same with settings of the environment.
async fn audit_with(settings: &[(&str, &str)], args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
    command
        .arg("audit")
        .args(args)
        .args(["--config", "/dev/null"]);
    command.env_remove("DATABASE_URL");
    command.envs(settings.iter().copied());
    let mut program = RunningProgram::start(command);
    let code = program.ended().await.code();
    (code, program.stdout(), program.output())
}
