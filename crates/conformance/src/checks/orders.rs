//! The order of lists.

use serde_json::json;

use crate::check::{Check, check};
use crate::subject::Subject;
use crate::verdict::Verdict;

const SOURCE: &str = "docs/reference/api.md#lists";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!("order.default", "Lists are newest first", SOURCE, |api| {
            let (search, names) = three(api).await?;
            let [a, b, c] = &names;
            api.list("/clusters", &[("search", &search)])
                .await?
                .names_are(&[c, b, a])?;
        }),
        check!(
            "order.field",
            "order=name and order=name desc order by name",
            SOURCE,
            |api| {
                let (search, names) = three(api).await?;
                let [a, b, c] = &names;
                api.list("/clusters", &[("search", &search), ("order", "name")])
                    .await?
                    .names_are(&[a, b, c])?;
                api.list("/clusters", &[("search", &search), ("order", "name desc")])
                    .await?
                    .names_are(&[c, b, a])?;
            }
        ),
        check!(
            "order.several",
            "order takes several fields, left to right",
            SOURCE,
            |api| {
                let (search, names) = three(api).await?;
                let [a, b, c] = &names;
                let found = api
                    .list("/clusters", &[("search", &format!("name = '{b}'"))])
                    .await?;
                let id = found.text("/items/0/id")?;
                api.patch(&format!("/clusters/{id}"), json!({"spec": {"a": 1}}))
                    .await?
                    .status(200)?;
                let order = [
                    ("search", search.as_str()),
                    ("order", "generation desc,name asc"),
                ];
                api.list("/clusters", &order).await?.names_are(&[b, a, c])?;
            }
        ),
        check!(
            "order.fields",
            "Every field of the table can be ordered by",
            SOURCE,
            |api| {
                for field in [
                    "id",
                    "name",
                    "kind",
                    "generation",
                    "created_time",
                    "created_by",
                    "updated_time",
                    "updated_by",
                    "deleted_time",
                    "deleted_by",
                    "owner_id",
                    "href",
                ] {
                    api.list("/clusters", &[("order", field), ("size", "1")])
                        .await?
                        .status(200)?;
                }
            }
        ),
        check!(
            "order.unknown-field",
            "An unknown field answers 400 VAL-005",
            SOURCE,
            |api| {
                let list = api.list("/clusters", &[("order", "nonsense")]).await?;
                list.problem(400, "VAL-005")?
                    .detail("invalid field in search or order query")?
                    .has("/errors/0/field", "order")?
                    .has("/errors/0/value", "nonsense")?;
            }
        ),
        check!(
            "order.syntax",
            "An order that can't be read answers 400 VAL-005 and names the entry",
            SOURCE,
            |api| {
                for entry in ["name sideways", "name asc desc", "Name", "na-me", "1"] {
                    let list = api.list("/clusters", &[("order", entry)]).await?;
                    let detail = format!(
                        "invalid order format '{entry}': expected 'field' or 'field asc|desc'"
                    );
                    list.problem(400, "VAL-005")?.detail(&detail)?;
                }
            }
        ),
        check!(
            "order.pair",
            "orderBy with order is the older pair",
            SOURCE,
            |api| {
                let (search, names) = three(api).await?;
                let [a, b, c] = &names;
                let pair = [
                    ("search", search.as_str()),
                    ("orderBy", "name"),
                    ("order", "desc"),
                ];
                api.list("/clusters", &pair).await?.names_are(&[c, b, a])?;
                let alone = [("search", search.as_str()), ("orderBy", "name")];
                api.list("/clusters", &alone).await?.names_are(&[a, b, c])?;
            }
        ),
        check!(
            "order.direction",
            "order=asc without orderBy is oldest first",
            SOURCE,
            |api| {
                let (search, names) = three(api).await?;
                let list = api
                    .list("/clusters", &[("search", &search), ("order", "asc")])
                    .await?;
                let [a, b, c] = &names;
                list.names_are(&[a, b, c])?;
            }
        ),
        check!(
            "order.pair-direction",
            "With orderBy, order is only asc or desc",
            SOURCE,
            |api| {
                let list = api
                    .list("/clusters", &[("orderBy", "name"), ("order", "sideways")])
                    .await?;
                list.problem(400, "VAL-005")?;
            }
        ),
        check!(
            "order.nested",
            "Nested lists are ordered alike",
            SOURCE,
            |api| {
                let cluster = api.cluster().await?;
                let (a, b) = (api.nodepool(&cluster).await?, api.nodepool(&cluster).await?);
                let path = format!("{}/nodepools", cluster.path);
                api.get(&path).await?.names_are(&[&b.name, &a.name])?;
                api.list(&path, &[("order", "name")])
                    .await?
                    .names_are(&[&a.name, &b.name])?;
            }
        ),
    ]
}

/// Three clusters whose names are in the order of their creation, and a search that finds only them.
async fn three(api: &Subject) -> Verdict<(String, [String; 3])> {
    let group = api.name();
    let mut names = [const { String::new() }; 3];
    for (name, letter) in names.iter_mut().zip(["a", "b", "c"]) {
        let mut body = api.body("Cluster");
        body["name"] = json!(format!("{group}-{letter}"));
        body["labels"]["group"] = json!(group);
        *name = api.make("/clusters", body).await?.name;
    }
    Ok((format!("labels.group = '{group}'"), names))
}
