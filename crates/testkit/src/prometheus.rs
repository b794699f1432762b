//! A private, temporary Prometheus with the recording rules and alerts of the chart.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use reqwest::Url;
use serde_json::Value;
use tempfile::TempDir;

use super::promql::selectors;
use super::{PATIENCE, RunningProgram, http_client};

/// Rules and dashboards that are installed with the programs.
pub fn monitoring_files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/hyperfleet/files")
}

/// A program of Debian's package `prometheus`, if it is installed. Tests are skipped without it, except in CI.
pub fn prometheus_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut programs = std::env::split_paths(&path).map(|folder| folder.join(name));
    let found = programs.find(|program| program.is_file());
    if found.is_none() {
        let required = ["CI", "PROMETHEUS_REQUIRED"].map(std::env::var_os);
        assert!(
            required.iter().all(Option::is_none),
            "{name} is required here"
        );
        println!("SKIPPED: {name} is missing: apt-get install prometheus");
    }
    found
}

/// A scrape job of Prometheus.
pub struct ScrapeJob<'a> {
    pub name: &'a str,
    /// `host:port` of each instance.
    pub instances: Vec<String>,
    /// Labels that discovery would add, as YAML.
    pub labels: &'a str,
}

/// A rule as Prometheus has loaded it.
#[derive(Debug)]
struct LoadedRule {
    group: String,
    name: String,
    is_alert: bool,
    expression: String,
    health: String,
    /// Error of the last evaluation.
    error: String,
}

/// A query with its purpose.
#[derive(Debug, Clone)]
pub struct NamedQuery {
    pub name: String,
    pub expression: String,
}

/// A private server on a free port, which scrapes and evaluates every second.
pub struct TestPrometheus {
    base: String,
    _program: RunningProgram,
    _folder: TempDir,
}

impl TestPrometheus {
    pub async fn start(program: &Path, jobs: &[ScrapeJob<'_>]) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("hyperfleet-prometheus-")
            .tempdir()
            .unwrap();
        for name in ["recording.yaml", "alerts.yaml"] {
            let rules = monitoring_files().join("rules").join(name);
            let rules = std::fs::read_to_string(rules).unwrap();
            // Error budgets are evaluated every five minutes otherwise.
            let rules = rules.replace("    interval: 5m\n", "");
            std::fs::write(folder.path().join(name), rules).unwrap();
        }
        let config = folder.path().join("prometheus.yaml");
        std::fs::write(&config, configuration(jobs)).unwrap();
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg("--web.listen-address=127.0.0.1:0")
            .current_dir(folder.path());
        let mut program = RunningProgram::start(command);
        let find = |said: &str| {
            let (_, rest) = said.split_once("msg=\"Listening on\" address=")?;
            let is_ready = rest.contains("Server is ready to receive web requests");
            let address = rest.split_whitespace().next()?;
            is_ready.then(|| format!("http://{address}/api/v1"))
        };
        let base = program.until_found("Prometheus is ready", find).await;
        Self {
            base,
            _program: program,
            _folder: folder,
        }
    }

    /// The series of a query.
    ///
    /// # Errors
    /// Why Prometheus cannot answer it.
    pub async fn ask(&self, expression: &str) -> Result<Vec<Value>, String> {
        let url = format!("{}/query", self.base);
        let url = Url::parse_with_params(&url, [("query", expression)]).unwrap();
        let answer = http_client().get(url).send().await.unwrap();
        let mut answer: Value = answer.json().await.unwrap();
        if answer["status"] != "success" {
            return Err(answer["error"].to_string());
        }
        match answer["data"]["result"].take() {
            Value::Array(series) => Ok(series),
            other => Err(format!("no series: {other}")),
        }
    }

    /// Queries that show that the rules of these groups work: the series of a recording rule, and those that an
    /// alert reads, because an alert that does not fire has none. Fails if any rule cannot be evaluated.
    pub async fn rule_queries(&self, is_asked: impl Fn(&str) -> bool) -> Vec<NamedQuery> {
        let rules = self.rules().await;
        for rule in &rules {
            assert_eq!(rule.health, "ok", "{}: {}", rule.name, rule.error);
        }
        let rules = rules.iter().filter(|rule| is_asked(&rule.group));
        let queries = rules.flat_map(|rule| {
            let asked = if rule.is_alert {
                selectors(&rule.expression)
            } else {
                [rule.name.clone()].into()
            };
            asked.into_iter().map(|expression| NamedQuery {
                name: rule.name.clone(),
                expression,
            })
        });
        queries.collect()
    }

    /// Every rule, once each was evaluated.
    async fn rules(&self) -> Vec<LoadedRule> {
        let since = Instant::now();
        loop {
            let rules = self.loaded_rules().await;
            if rules.iter().all(|rule| rule.health != "unknown") {
                return rules;
            }
            assert!(since.elapsed() < PATIENCE, "not evaluated: {rules:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn loaded_rules(&self) -> Vec<LoadedRule> {
        let answer = http_client().get(format!("{}/rules", self.base));
        let answer: Value = answer.send().await.unwrap().json().await.unwrap();
        let groups = answer["data"]["groups"].as_array().unwrap();
        let rules = groups.iter().flat_map(|group| {
            let rules = group["rules"].as_array().unwrap();
            rules.iter().map(|rule| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                LoadedRule {
                    group: text(&group["name"]),
                    name: text(&rule["name"]),
                    is_alert: rule["type"] == "alerting",
                    expression: text(&rule["query"]),
                    health: text(&rule["health"]),
                    error: text(&rule["lastError"]),
                }
            })
        });
        rules.collect()
    }

    /// Repeats every query until it returns series; fails with those that do not.
    pub async fn assert_answered(&self, queries: &[NamedQuery]) {
        let since = Instant::now();
        let mut missing = queries.to_vec();
        loop {
            let mut without = Vec::new();
            for query in missing {
                match self.ask(&query.expression).await {
                    Ok(series) if series.is_empty() => without.push(query),
                    Ok(_) => {}
                    Err(error) => panic!("{}: {error}: {}", query.name, query.expression),
                }
            }
            missing = without;
            if missing.is_empty() {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "without data: {missing:#?}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

fn configuration(jobs: &[ScrapeJob<'_>]) -> String {
    let mut text = "global: { scrape_interval: 1s, evaluation_interval: 1s }\n\
                    rule_files: [recording.yaml, alerts.yaml]\nscrape_configs:\n"
        .to_owned();
    for ScrapeJob {
        name,
        instances,
        labels,
    } in jobs
    {
        let instances = instances.join("', '");
        let _ = write!(
            text,
            "  - job_name: {name}\n    static_configs: [{{ targets: ['{instances}'], labels: {labels} }}]\n"
        );
    }
    text
}
