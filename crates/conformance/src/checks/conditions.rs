//! Conditions of resources.

use serde_json::json;

use crate::check::{Check, check};
use crate::subject::Subject;

const SOURCE: &str = "docs/reference/api.md#conditions";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "conditions.new",
            "A new resource has Reconciled and LastKnownReconciled, both False, at generation 1",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                for (number, kind, reason) in [
                    (0, "Reconciled", "ReconciledMissingAdapters"),
                    (1, "LastKnownReconciled", "AdaptersMissingReports"),
                ] {
                    let at = format!("/status/conditions/{number}");
                    made.answer
                        .has(&format!("{at}/type"), kind)?
                        .has(&format!("{at}/status"), "False")?;
                    made.answer
                        .has(&format!("{at}/reason"), reason)?
                        .has(&format!("{at}/observed_generation"), 1)?;
                }
            }
        ),
        check!(
            "conditions.new-message",
            "Reconciled of a new resource says that no adapter has reported",
            SOURCE,
            |api| {
                api.adapters()?;
                let expected = "Required adapters have not yet reported status";
                let made = api.cluster().await?;
                for condition in ["Reconciled", "LastKnownReconciled"] {
                    made.answer.condition_has(condition, "message", expected)?;
                }
            }
        ),
        check!(
            "conditions.members",
            "A condition has a type, status, observed_generation and three times",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                let condition = made.answer.condition("Reconciled")?;
                for member in ["created_time", "last_transition_time", "last_updated_time"] {
                    let is_time = condition[member]
                        .as_str()
                        .is_some_and(|text| chrono::DateTime::parse_from_rfc3339(text).is_ok());
                    made.answer
                        .expect(is_time, format!("{member} of Reconciled is a time"))?;
                }
            }
        ),
        check!(
            "conditions.reconciled",
            "Reconciled is True once every required adapter is Available at the generation",
            SOURCE,
            |api| {
                let (last, others) = split(api.adapters()?);
                let made = api.cluster().await?;
                api.report_all(&made.path, others, 1, &[]).await?;
                api.get(&made.path)
                    .await?
                    .condition_has("Reconciled", "status", "False")?;
                api.report(&made.path, last, 1, &[]).await?.status(201)?;
                let found = api.get(&made.path).await?;
                found
                    .condition_has("Reconciled", "status", "True")?
                    .condition_has("Reconciled", "reason", "ReconciledAll")?;
                found.condition_has("LastKnownReconciled", "status", "True")?;
                found.condition_has("LastKnownReconciled", "reason", "AllAdaptersReconciled")?;
            }
        ),
        check!(
            "conditions.who-is-missing",
            "Reconciled names the adapters that are missing and those that report",
            SOURCE,
            |api| {
                let (last, others) = split(api.adapters()?);
                let made = api.cluster().await?;
                api.report(&made.path, last, 1, &[]).await?.status(201)?;
                let mut missing = others.to_vec();
                missing.sort();
                let found = api.get(&made.path).await?;
                if missing.is_empty() {
                    found.condition_has("Reconciled", "status", "True")?;
                } else {
                    let names = missing.join(", ");
                    let message = format!(
                        "Required adapters not reporting Available=True: [{names}]. Currently reporting: [{last}]"
                    );
                    found.condition_has("Reconciled", "message", message)?;
                }
            }
        ),
        check!(
            "conditions.not-available",
            "An adapter that is not Available makes Reconciled and LastKnownReconciled False",
            SOURCE,
            |api| {
                let adapters = api.adapters()?;
                let made = api.cluster().await?;
                api.report_all(&made.path, adapters, 1, &[]).await?;
                api.report(&made.path, &adapters[0], 1, &[("Available", "False")])
                    .await?
                    .status(201)?;
                let found = api.get(&made.path).await?;
                found.condition_has("Reconciled", "status", "False")?;
                found.condition_has("LastKnownReconciled", "status", "False")?;
                found.condition_has(
                    "LastKnownReconciled",
                    "reason",
                    "AdapterReportedNotAvailable",
                )?;
            }
        ),
        check!(
            "conditions.old-generation",
            "Reports of an older generation don't make Reconciled True",
            SOURCE,
            |api| {
                let adapters = api.adapters()?;
                let made = api.cluster().await?;
                api.patch(&made.path, json!({"spec": {"a": 1}}))
                    .await?
                    .status(200)?;
                api.report_all(&made.path, adapters, 1, &[]).await?;
                api.get(&made.path)
                    .await?
                    .condition_has("Reconciled", "status", "False")?;
                api.report_all(&made.path, adapters, 2, &[]).await?;
                api.get(&made.path)
                    .await?
                    .condition_has("Reconciled", "status", "True")?;
            }
        ),
        check!(
            "conditions.successful",
            "Each required adapter that has reported has a condition <Adapter>Successful",
            SOURCE,
            |api| {
                let adapter = &api.adapters()?[0];
                let made = api.cluster().await?;
                let mut body = Subject::report_body(adapter, 1, &[]);
                body["conditions"][0]["reason"] = json!("Done");
                body["conditions"][0]["message"] = json!("all there");
                api.put(&format!("{}/statuses", made.path), &body)
                    .await?
                    .status(201)?;
                let kind = successful(adapter);
                let found = api.get(&made.path).await?;
                found
                    .condition_has(&kind, "status", "True")?
                    .condition_has(&kind, "reason", "Done")?;
                found
                    .condition_has(&kind, "message", "all there")?
                    .condition_has(&kind, "observed_generation", 1)?;
            }
        ),
        check!(
            "conditions.foreign",
            "An adapter that is not required is kept and decides nothing",
            SOURCE,
            |api| {
                let adapters = api.adapters()?;
                let made = api.cluster().await?;
                api.report(&made.path, "stranger", 1, &[("Available", "False")])
                    .await?
                    .status(201)?;
                api.report_all(&made.path, adapters, 1, &[]).await?;
                api.get(&made.path)
                    .await?
                    .condition_has("Reconciled", "status", "True")?;
            }
        ),
        check!(
            "conditions.unknown",
            "A first report with Available=Unknown changes no condition",
            SOURCE,
            |api| {
                let adapter = &api.adapters()?[0];
                let made = api.cluster().await?;
                let before = api.get(&made.path).await?;
                api.report(&made.path, adapter, 1, &[("Available", "Unknown")])
                    .await?
                    .status(201)?;
                let conditions = before.at("/status/conditions").clone();
                api.get(&made.path)
                    .await?
                    .has("/status/conditions", conditions)?;
            }
        ),
        check!(
            "conditions.evidence",
            "last_updated_time of Reconciled is the time of the oldest report",
            SOURCE,
            |api| {
                let adapters = api.adapters()?;
                let made = api.cluster().await?;
                let times: Vec<_> = (0..)
                    .take(adapters.len())
                    .map(|number| Subject::ago(100 - number))
                    .collect();
                for (adapter, time) in adapters.iter().zip(&times) {
                    let mut body = Subject::report_body(adapter, 1, &[]);
                    body["observed_time"] = json!(time);
                    api.put(&format!("{}/statuses", made.path), &body)
                        .await?
                        .status(201)?;
                }
                let found = api.get(&made.path).await?;
                let parse = |text: &str| chrono::DateTime::parse_from_rfc3339(text).ok();
                let shown = found.condition("Reconciled")?["last_updated_time"]
                    .as_str()
                    .and_then(parse);
                found.expect(
                    shown == parse(&times[0]),
                    format!("last_updated_time of Reconciled is {}", times[0]),
                )?;
            }
        ),
        check!(
            "conditions.refresh",
            "A report that repeats itself moves last_updated_time and keeps last_transition_time",
            SOURCE,
            |api| {
                let adapters = api.adapters()?;
                let made = api.cluster().await?;
                api.report_all(&made.path, adapters, 1, &[]).await?;
                let before = api.get(&made.path).await?;
                api.report_all(&made.path, adapters, 1, &[]).await?;
                let after = api.get(&made.path).await?;
                let (old, new) = (
                    before.condition("Reconciled")?,
                    after.condition("Reconciled")?,
                );
                after.condition_has(
                    "Reconciled",
                    "last_transition_time",
                    old["last_transition_time"].clone(),
                )?;
                after.expect(
                    old["last_updated_time"] != new["last_updated_time"],
                    "last_updated_time of Reconciled moves",
                )?;
            }
        ),
    ]
}

/// The last adapter, and those before it.
fn split(adapters: &[String]) -> (&str, &[String]) {
    adapters
        .split_last()
        .map_or(("", &[]), |(last, others)| (last, others))
}

/// The condition type of an adapter.
pub(crate) fn successful(adapter: &str) -> String {
    let parts = adapter.split('-').map(|part| {
        let mut letters = part.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    parts.collect::<String>() + "Successful"
}
