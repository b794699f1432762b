//! Contents of lists.

use serde_json::json;

use crate::check::{Check, check};

const SOURCE: &str = "docs/reference/api.md#lists";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "lists.shape",
            "A list has items, page, size (items on this page) and total",
            SOURCE,
            |api| {
                let group = api.name();
                for _ in 0..3 {
                    api.cluster_with(&json!({"group": group}), json!({}))
                        .await?;
                }
                let search = format!("labels.group = '{group}'");
                let list = api
                    .list("/clusters", &[("search", &search), ("size", "2")])
                    .await?;
                list.status(200)?
                    .has("/page", 1)?
                    .has("/size", 2)?
                    .has("/total", 3)?;
                list.expect(list.items()?.len() == 2, "two items")?;
            }
        ),
        check!(
            "lists.kind",
            "A list has a kind: ClusterList",
            SOURCE,
            |api| {
                for (path, kind) in [
                    ("/clusters", "ClusterList"),
                    ("/nodepools", "NodePoolList"),
                    ("/resources", "ResourceList"),
                ] {
                    api.list(path, &[("size", "1")]).await?.has("/kind", kind)?;
                }
            }
        ),
        check!(
            "lists.empty",
            "A list of nothing has items [], size 0 and total 0",
            SOURCE,
            |api| {
                let list = api
                    .list(
                        "/clusters",
                        &[("search", "name = 'there-is-no-such-cluster'")],
                    )
                    .await?;
                list.has("/items", json!([]))?
                    .has("/size", 0)?
                    .has("/total", 0)?;
            }
        ),
        check!(
            "lists.same-as-read",
            "A listed resource is the same as one that is read",
            SOURCE,
            |api| {
                let cluster = api.cluster().await?;
                let made = api.nodepool(&cluster).await?;
                api.report(&made.path, "any", 1, &[]).await?.status(201)?;
                let read = api.get(&made.path).await?.body;
                let search = format!("id = '{}'", made.id);
                let nested = format!("{}/nodepools", cluster.path);
                for path in ["/nodepools", "/resources", &nested] {
                    let list = api.list(path, &[("search", &search)]).await?;
                    list.has("/items/0", read.clone())?;
                }
            }
        ),
        check!(
            "lists.unknown-parameter",
            "Parameters that a list doesn't know are ignored",
            SOURCE,
            |api| {
                api.list("/clusters", &[("nonsense", "1"), ("size", "1")])
                    .await?
                    .status(200)?;
            }
        ),
        check!(
            "lists.deleted-left-out",
            "Lists leave out finalizing resources",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                api.delete(&made.path).await?.status(202)?;
                let search = format!("name = '{}'", made.name);
                let list = api.list("/clusters", &[("search", &search)]).await?;
                let are_held = api.target.lists_include_deleted;
                list.has("/total", i32::from(are_held))?;
            }
        ),
        check!(
            "lists.include-deleted",
            "includeDeleted=true lists finalizing resources",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                api.delete(&made.path).await?.status(202)?;
                let search = format!("name = '{}'", made.name);
                let list = api
                    .list(
                        "/clusters",
                        &[("search", &search), ("includeDeleted", "true")],
                    )
                    .await?;
                list.has("/total", 1)?.has("/items/0/generation", 2)?;
            }
        ),
        check!(
            "lists.deleted-time",
            "A search that names deleted_time finds finalizing resources",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                api.delete(&made.path).await?.status(202)?;
                for (test, total) in [("is not null", 1), ("is null", 0)] {
                    let search = format!("name = '{}' and deleted_time {test}", made.name);
                    api.list("/clusters", &[("search", &search)])
                        .await?
                        .has("/total", total)?;
                }
            }
        ),
        check!(
            "lists.generic",
            "GET /resources lists every kind; kind narrows it to one",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let pool = api.nodepool(&made).await?;
                let search = format!("name in ['{}', '{}']", made.name, pool.name);
                let all = [("search", search.as_str()), ("order", "name")];
                api.list("/resources", &all)
                    .await?
                    .names_are(&[made.name.as_str(), pool.name.as_str()])?;
                let one = [("search", search.as_str()), ("kind", "NodePool")];
                api.list("/resources", &one)
                    .await?
                    .names_are(&[pool.name.as_str()])?;
            }
        ),
        check!(
            "lists.unknown-kind",
            "GET /resources of an unknown kind answers 400 VAL-000",
            SOURCE,
            |api| {
                let list = api.list("/resources", &[("kind", "Nonsense")]).await?;
                list.problem(400, "VAL-000")?
                    .detail("Unknown entity kind: Nonsense")?;
            }
        ),
        check!(
            "lists.references",
            "ref_type and ref_target_id go together",
            SOURCE,
            |api| {
                for parameter in ["ref_type", "ref_target_id"] {
                    let list = api.list("/clusters", &[(parameter, "x")]).await?;
                    list.problem(400, "VAL-000")?
                        .detail("Invalid query parameters")?;
                }
            }
        ),
        check!(
            "lists.unknown-reference",
            "A ref_type that the kind doesn't have answers 400 VAL-000",
            SOURCE,
            |api| {
                let list = api
                    .list(
                        "/clusters",
                        &[("ref_type", "nonsense"), ("ref_target_id", "x")],
                    )
                    .await?;
                list.problem(400, "VAL-000")?
                    .detail(r#"Unknown ref_type "nonsense" for entity Cluster"#)?;
            }
        ),
    ]
}
