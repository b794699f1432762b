//! Responses with selected members.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::check::{Check, check};
use crate::verdict::Verdict;

const SOURCE: &str = "docs/reference/api.md#lists";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "fields.read",
            "fields shows the members that it names and the id",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let found = api.get(&format!("{}?fields=name,spec", made.path)).await?;
                found.status(200)?;
                members_are(&found, &found.body, &["id", "name", "spec"])?;
            }
        ),
        check!("fields.list", "fields works on lists", SOURCE, |api| {
            let made = api.cluster().await?;
            let search = format!("name = '{}'", made.name);
            let list = api
                .list("/clusters", &[("search", &search), ("fields", "name")])
                .await?;
            list.has("/total", 1)?;
            members_are(&list, list.at("/items/0"), &["id", "name"])?;
        }),
        check!(
            "fields.conditions",
            "fields reaches into conditions",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                let found = api
                    .get(&format!(
                        "{}?fields=status.conditions.type,status.conditions.status",
                        made.path
                    ))
                    .await?;
                found.status(200)?;
                members_are(
                    &found,
                    found.at("/status/conditions/0"),
                    &["status", "type"],
                )?;
            }
        ),
        check!(
            "fields.absent",
            "A member that the resource doesn't have is null",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let found = api
                    .get(&format!("{}?fields=deleted_time", made.path))
                    .await?;
                found.status(200)?.has("/deleted_time", Value::Null)?;
            }
        ),
        check!("fields.seconds", "Times are whole seconds", SOURCE, |api| {
            let made = api.cluster().await?;
            let found = api
                .get(&format!("{}?fields=created_time", made.path))
                .await?;
            let time = found.status(200)?.text("/created_time")?;
            found.expect(
                !time.contains('.') && time.ends_with('Z'),
                "created_time without a fraction",
            )?;
        }),
        check!(
            "fields.unknown",
            "A field that doesn't exist answers 400 VAL-000 and is named",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let found = api.get(&format!("{}?fields=nonsense", made.path)).await?;
                found
                    .problem(400, "VAL-000")?
                    .detail("The following field(s) doesn't exist in `Resource`: nonsense")?;
            }
        ),
        check!(
            "fields.status",
            "status as such is no field",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                api.get(&format!("{}?fields=status", made.path))
                    .await?
                    .problem(400, "VAL-000")?;
                api.get(&format!("{}?fields=status.*", made.path))
                    .await?
                    .status(200)?
                    .conditions()?;
            }
        ),
        check!(
            "fields.owner",
            "fields knows the members of owner_references",
            SOURCE,
            |api| {
                let cluster = api.cluster().await?;
                let made = api.nodepool(&cluster).await?;
                let found = api
                    .get(&format!("{}?fields=owner_references.id", made.path))
                    .await?;
                found
                    .status(200)?
                    .has("/owner_references", json!({"id": cluster.id}))?;
            }
        ),
    ]
}

/// Expects that an object of the response has only these members.
fn members_are(answer: &Answer, object: &Value, members: &[&str]) -> Verdict {
    let object = object
        .as_object()
        .map(|object| object.keys().collect::<Vec<_>>());
    let mut found = object.unwrap_or_default();
    found.sort();
    let fits = found == members;
    answer
        .expect(fits, format!("the members {members:?} alone"))
        .map(drop)
}
