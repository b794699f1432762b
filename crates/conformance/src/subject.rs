//! The server under test, with the common steps of checks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::client::{Client, ClientError, ROOT};
use crate::verdict::{Failure, Verdict};

/// The label of every resource of a run.
pub(crate) const LABEL: &str = "conformance";

/// How many runs this process has begun.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// A server with its configuration.
#[derive(Debug, Clone)]
pub struct Target {
    /// Scheme, host and port.
    pub base: String,
    pub token: Option<String>,
    /// Further headers of every request, as `NAME: VALUE`.
    pub headers: Vec<String>,
    pub cluster_adapters: Vec<String>,
    pub nodepool_adapters: Vec<String>,
    /// Whether lists include finalizing resources by default (`lists.include_deleted`).
    pub lists_include_deleted: bool,
}

/// A target during one run.
pub(crate) struct Subject {
    client: Client,
    pub(crate) target: Target,
    /// Value of the run's label, and prefix of its names.
    pub(crate) run: String,
    counter: AtomicU64,
    /// Paths below the API's root of all created resources, oldest first.
    made: Mutex<Vec<String>>,
}

/// A resource that a check created.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Path below the API's root.
    pub(crate) path: String,
    pub(crate) answer: Answer,
}

impl Subject {
    pub(crate) fn new(target: Target) -> Result<Self, ClientError> {
        let client = Client::new(&target.base, target.token.as_deref(), &target.headers)?;
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        // Another number for each run of this process, also in one second. Five digits of base 36 repeat after two
        // years; names of node pools are short.
        let number = since.as_secs() + RUNS.fetch_add(1, Ordering::Relaxed);
        let run = base36(number % 36_u64.pow(5));
        Ok(Self {
            client,
            target,
            run: format!("cf{run:0>5}"),
            counter: AtomicU64::new(0),
            made: Mutex::default(),
        })
    }

    /// A unique name.
    pub(crate) fn name(&self) -> String {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        format!("{}-{}", self.run, base36(number))
    }

    /// Sends a request to a path below the host, and remembers what it creates.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Verdict<Answer> {
        let answer = self.client.send(method, path, headers, body.into()).await?;
        if method == "POST" && answer.status == 201 {
            let href = answer.body["href"]
                .as_str()
                .and_then(|href| href.strip_prefix(ROOT));
            if let (Some(href), Ok(mut made)) = (href, self.made.lock()) {
                made.push(href.to_owned());
            }
        }
        Ok(answer)
    }

    /// Returns and forgets the created resources, newest first.
    pub(crate) fn take_created(&self) -> Vec<String> {
        let made = self.made.lock().map(|mut made| std::mem::take(&mut *made));
        made.unwrap_or_default().into_iter().rev().collect()
    }

    pub(crate) async fn get(&self, path: &str) -> Verdict<Answer> {
        self.send("GET", &format!("{ROOT}{path}"), &[], "").await
    }

    pub(crate) async fn delete(&self, path: &str) -> Verdict<Answer> {
        self.send("DELETE", &format!("{ROOT}{path}"), &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: impl ToString) -> Verdict<Answer> {
        self.call("POST", path, body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: impl ToString) -> Verdict<Answer> {
        self.call("PATCH", path, body).await
    }

    /// Sends a patch of another media type than plain JSON.
    pub(crate) async fn patch_as(
        &self,
        media_type: &str,
        path: &str,
        body: impl ToString,
    ) -> Verdict<Answer> {
        let headers = [("content-type", media_type)];
        let path = format!("{ROOT}{path}");
        self.send("PATCH", &path, &headers, body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: impl ToString) -> Verdict<Answer> {
        self.call("PUT", path, body).await
    }

    async fn call(&self, method: &str, path: &str, body: impl ToString) -> Verdict<Answer> {
        let json = [("content-type", "application/json")];
        let path = format!("{ROOT}{path}");
        self.send(method, &path, &json, body.to_string()).await
    }

    /// A list with its parameters, which are encoded here.
    pub(crate) async fn list(&self, path: &str, parameters: &[(&str, &str)]) -> Verdict<Answer> {
        let pairs = parameters
            .iter()
            .map(|(name, value)| format!("{name}={}", encoded(value)));
        let query: Vec<_> = pairs.collect();
        self.get(&format!("{path}?{}", query.join("&"))).await
    }

    /// Finds clusters of this run with this value of the label `group` that match the search.
    pub(crate) async fn search(&self, group: &str, search: &str) -> Verdict<Answer> {
        let scoped = format!("labels.group = '{group}' and ({search})");
        let parameters = [
            ("search", scoped.as_str()),
            ("order", "name"),
            ("size", "100"),
        ];
        self.list("/clusters", &parameters).await
    }

    /// A body that creates a resource of this kind, with the run's label.
    pub(crate) fn body(&self, kind: &str) -> Value {
        json!({"kind": kind, "name": self.name(), "spec": {}, "labels": {LABEL: self.run}})
    }

    /// Creates a resource; any status but 201 is a difference.
    pub(crate) async fn make(&self, list: &str, body: Value) -> Verdict<Made> {
        let answer = self.post(list, &body).await?;
        let id = answer.status(201)?.text("/id")?.to_owned();
        Ok(Made {
            name: answer.text("/name")?.to_owned(),
            path: format!("{list}/{id}"),
            id,
            answer,
        })
    }

    pub(crate) async fn cluster(&self) -> Verdict<Made> {
        self.make("/clusters", self.body("Cluster")).await
    }

    /// A cluster with further labels and this spec.
    pub(crate) async fn cluster_with(&self, labels: &Value, spec: Value) -> Verdict<Made> {
        let mut body = self.body("Cluster");
        for (key, value) in labels.as_object().into_iter().flatten() {
            body["labels"][key] = value.clone();
        }
        body["spec"] = spec;
        self.make("/clusters", body).await
    }

    pub(crate) async fn nodepool(&self, cluster: &Made) -> Verdict<Made> {
        self.make(
            &format!("{}/nodepools", cluster.path),
            self.body("NodePool"),
        )
        .await
    }

    /// A time some seconds ago, for reports.
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock of the adapter that is played"
    )]
    pub(crate) fn ago(seconds: i64) -> String {
        let time = Utc::now() - TimeDelta::seconds(seconds);
        time.to_rfc3339_opts(SecondsFormat::Micros, true)
    }

    /// A report whose conditions are true except for these.
    pub(crate) fn report_body(adapter: &str, generation: i64, statuses: &[(&str, &str)]) -> Value {
        let mut all = vec![
            ("Available", "True"),
            ("Applied", "True"),
            ("Health", "True"),
        ];
        for given in statuses {
            all.retain(|(kind, _)| *kind != given.0);
            all.push(*given);
        }
        let conditions = all
            .iter()
            .map(|(kind, status)| json!({"type": kind, "status": status}));
        json!({
            "adapter": adapter,
            "observed_generation": generation,
            "observed_time": Self::ago(0),
            "conditions": conditions.collect::<Vec<_>>(),
        })
    }

    pub(crate) async fn report(
        &self,
        path: &str,
        adapter: &str,
        generation: i64,
        statuses: &[(&str, &str)],
    ) -> Verdict<Answer> {
        let body = Self::report_body(adapter, generation, statuses);
        self.put(&format!("{path}/statuses"), body).await
    }

    /// Reports of several adapters that are all stored.
    pub(crate) async fn report_all(
        &self,
        path: &str,
        adapters: &[String],
        generation: i64,
        statuses: &[(&str, &str)],
    ) -> Verdict {
        for adapter in adapters {
            self.report(path, adapter, generation, statuses)
                .await?
                .status(201)?;
        }
        Ok(())
    }

    /// Required adapters of clusters; skips the check if there are none.
    pub(crate) fn adapters(&self) -> Verdict<&[String]> {
        let adapters = &self.target.cluster_adapters;
        if adapters.is_empty() {
            return Err(Failure::Skipped(
                "clusters have no required adapters".to_owned(),
            ));
        }
        Ok(adapters)
    }

    /// Skips a check of a kind that the server doesn't have.
    pub(crate) async fn needs_kind(&self, plural: &str) -> Verdict {
        let answer = self.list(&format!("/{plural}"), &[("size", "1")]).await?;
        if answer.status == 404 {
            return Err(Failure::Skipped(format!("the server has no /{plural}")));
        }
        answer.status(200).map(drop)
    }
}

/// A number in digits and lower-case letters, for names.
fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            break digits.into_iter().rev().collect();
        }
    }
}

/// A query value, with all but letters, digits and `-_.~` encoded.
pub(crate) fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_encoded() {
        assert_eq!(encoded("name = 'é'"), "name%20%3D%20%27%C3%A9%27");
    }

    #[test]
    fn numbers_become_names() {
        assert_eq!(
            (base36(0), base36(35), base36(36)),
            ("0".into(), "z".into(), "10".into())
        );
    }
}
