//! The demo adapter: stands in for the required adapters, so that resources reconcile without any real adapter.
//!
//! It creates nothing. It reports work in progress for each new generation, a result after a moment, and finalizes
//! resources that are being deleted. What it has begun is in its own stored report, so a restart repeats nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hyperfleet_adapter::{Adapter, Api, Finding, Kind, ReconcileOutcome, Report, Resource, Work};
use serde_json::Value;

/// The `User-Agent` of the demo adapter in `dev`, whose requests are logged at level `debug`.
pub const USER_AGENT: &str = concat!("hyperfleet-demo-adapter/", env!("CARGO_PKG_VERSION"));
/// Default time between the report that work is in progress and the result.
pub const WORK_TIME: Duration = Duration::from_secs(2);
/// Resources that the demo adapter leaves to others, such as scripts that report themselves, have this member.
const NOT_MANUAL: &str = "spec.demo.manual is null";
/// The reason of a failure that `spec.demo.fail` asks for.
const FAILURE: &str = "DemoFailure";

/// Plays one required adapter.
pub struct DemoAdapter {
    /// The name in its reports.
    pub name: String,
    /// Every adapter that is played beside it.
    pub played: Arc<BTreeSet<String>>,
    pub api: Api,
    /// Time between the report that work is in progress and the result.
    pub work_time: Duration,
}

/// How far the adapter is with a generation of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Begun,
    Failed,
    Done,
}

impl Adapter for DemoAdapter {
    async fn reconcile(&self, work: Work) -> anyhow::Result<ReconcileOutcome> {
        let resource = &work.resource;
        let stored = self.api.stored_report(&self.name, resource).await?;
        let progress = match stored {
            Some(stored) if stored.generation == resource.generation => {
                if fails(resource.spec(), &self.name) {
                    Progress::Failed
                } else {
                    Progress::Done
                }
            }
            _ => Progress::Begun,
        };
        let mut report = report(progress, resource.is_deleted());
        if progress == Progress::Done {
            self.warn_of_unknown(&work.resource, &mut report);
        }
        Ok(match progress {
            Progress::Begun => ReconcileOutcome::again_after(report, self.work_time),
            Progress::Failed | Progress::Done => ReconcileOutcome::reported(report),
        })
    }
}

impl DemoAdapter {
    /// Says that `spec.demo.fail` names adapters that do not exist. Nothing fails then, and the user would not know why.
    fn warn_of_unknown(&self, resource: &Resource, report: &mut Report) {
        let unknown = unknown_names(resource.spec(), &self.played);
        if unknown.is_empty() {
            return;
        }
        let (unknown, resource) = (unknown.join(", "), &resource.href);
        tracing::warn!(
            adapter = self.name,
            resource,
            unknown,
            "spec.demo.fail names adapters that the demo adapter does not play"
        );
        let message = &mut report.available.message;
        message.push_str("; spec.demo.fail names adapters that it does not play: ");
        message.push_str(&unknown);
    }
}

/// The resources of a kind that the demo adapter works on.
pub fn kind(plural: &str) -> Kind {
    Kind {
        plural: plural.to_owned(),
        search: Some(NOT_MANUAL.to_owned()),
    }
}

/// Whether `spec.demo.fail` lets this adapter fail: `true` for all adapters, or the name of one, or a list of names.
fn fails(spec: &Value, adapter: &str) -> bool {
    match &spec["demo"]["fail"] {
        Value::Bool(fails) => *fails,
        Value::String(name) => name == adapter,
        Value::Array(names) => names.iter().any(|name| name == adapter),
        _ => false,
    }
}

/// The names in `spec.demo.fail` that no played adapter has.
fn unknown_names<'a>(spec: &'a Value, played: &BTreeSet<String>) -> Vec<&'a str> {
    let named = match &spec["demo"]["fail"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let named = named.into_iter();
    named.filter(|name| !played.contains(*name)).collect()
}

fn report(progress: Progress, is_deleted: bool) -> Report {
    let failure = "spec.demo.fail asks for this failure";
    match (progress, is_deleted) {
        (Progress::Begun, false) => {
            Report::new(Finding::no("Working", "the demo adapter is at work"))
        }
        (Progress::Failed, false) => Report {
            health: Finding::no(FAILURE, failure),
            ..Report::new(Finding::no(FAILURE, failure))
        },
        (Progress::Done, false) => Report::new(Finding::yes(
            "Done",
            "the demo adapter has finished; it creates nothing",
        )),
        (Progress::Begun, true) => Report::finalizing("Removing", "the demo adapter is at work"),
        (Progress::Failed, true) => Report::finalizing(FAILURE, failure),
        (Progress::Done, true) => Report::finalized("Removed", "there was nothing to remove"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spec_demo_fail_names_the_adapters_that_fail() {
        for (spec, expected) in [
            (json!({}), false),
            (json!({"demo": {}}), false),
            (json!({"demo": "fail"}), false),
            (json!({"demo": {"fail": true}}), true),
            (json!({"demo": {"fail": false}}), false),
            (json!({"demo": {"fail": "dns"}}), true),
            (json!({"demo": {"fail": "validation"}}), false),
            (json!({"demo": {"fail": ["validation", "dns"]}}), true),
            (json!({"demo": {"fail": []}}), false),
            (json!({"demo": {"fail": 1}}), false),
        ] {
            assert_eq!(fails(&spec, "dns"), expected, "{spec}");
        }
    }

    #[test]
    fn spec_demo_fail_may_name_adapters_that_do_not_exist() {
        let played = ["dns", "validation"].map(str::to_owned).into();
        for (fail, expected) in [
            (json!(true), vec![]),
            (json!("dns"), vec![]),
            (json!("dsn"), vec!["dsn"]),
            (json!(["validation", "dsn", 1, ""]), vec!["dsn", ""]),
        ] {
            let spec = json!({"demo": {"fail": fail}});
            assert_eq!(unknown_names(&spec, &played), expected, "{spec}");
        }
    }

    #[test]
    fn only_a_result_completes_a_resource() {
        for is_deleted in [false, true] {
            for (progress, expected) in [
                (Progress::Begun, false),
                (Progress::Failed, false),
                (Progress::Done, true),
            ] {
                let report = report(progress, is_deleted);
                assert_eq!(report.is_settled(), expected, "{progress:?} {is_deleted}");
                assert_eq!(report.finalized.is_some(), is_deleted, "{progress:?}");
            }
        }
    }
}
