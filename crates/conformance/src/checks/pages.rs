//! Pages of lists.

use serde_json::json;

use crate::check::{Check, check};
use crate::subject::Subject;
use crate::verdict::Verdict;

const SOURCE: &str = "docs/reference/api.md#lists";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "pages.each-once",
            "Pages neither repeat nor skip",
            SOURCE,
            |api| {
                let (search, all) = five(api).await?;
                let mut seen = Vec::new();
                for page in ["1", "2", "3"] {
                    let list = api
                        .list(
                            "/clusters",
                            &[("search", &search), ("size", "2"), ("page", page)],
                        )
                        .await?;
                    list.has("/total", 5)?;
                    seen.extend(list.column("name")?.into_iter().map(str::to_owned));
                }
                seen.reverse();
                let list = api.list("/clusters", &[("search", &search)]).await?;
                list.expect(
                    seen == all,
                    format!("newest first, each once: {all:?} from behind"),
                )?;
            }
        ),
        check!(
            "pages.beyond",
            "A page beyond the end is empty and knows the total",
            SOURCE,
            |api| {
                let (search, _) = five(api).await?;
                let list = api
                    .list("/clusters", &[("search", &search), ("page", "7")])
                    .await?;
                list.has("/items", json!([]))?
                    .has("/page", 7)?
                    .has("/size", 0)?
                    .has("/total", 5)?;
            }
        ),
        check!(
            "pages.default",
            "A page has 20 items unless size says otherwise",
            SOURCE,
            |api| {
                let group = api.name();
                for _ in 0..21 {
                    api.cluster_with(&json!({"group": group}), json!({}))
                        .await?;
                }
                let search = format!("labels.group = '{group}'");
                let list = api.list("/clusters", &[("search", &search)]).await?;
                list.has("/size", 20)?.has("/total", 21)?;
            }
        ),
        check!("pages.size-range", "size is 1 to 100", SOURCE, |api| {
            api.list("/clusters", &[("size", "100")])
                .await?
                .status(200)?;
            for (value, number, constraint, message) in [
                ("0", 0, "min", "size must be at least 1"),
                ("-1", -1, "min", "size must be at least 1"),
                ("101", 101, "max", "size must be at most 100"),
            ] {
                let list = api.list("/clusters", &[("size", value)]).await?;
                list.problem(400, "VAL-000")?
                    .detail("Invalid query parameters")?;
                let fault = json!({"field": "size", "constraint": constraint, "message": message, "value": number});
                list.has("/errors/0", fault)?;
            }
        }),
        check!("pages.page-range", "page is 1 to 100000", SOURCE, |api| {
            for (value, message) in [
                ("0", "page must be at least 1"),
                ("100001", "page must be at most 100000"),
            ] {
                let list = api.list("/clusters", &[("page", value)]).await?;
                list.problem(400, "VAL-000")?
                    .has("/errors/0/field", "page")?
                    .has("/errors/0/message", message)?;
            }
        }),
        check!(
            "pages.integers",
            "page and size are integers",
            SOURCE,
            |api| {
                for name in ["page", "size"] {
                    for value in ["abc", "1.5", "99999999999999999999"] {
                        let list = api.list("/clusters", &[(name, value)]).await?;
                        list.problem(400, "VAL-000")?.has("/errors/0/field", name)?;
                        list.has("/errors/0/constraint", "format")?
                            .has("/errors/0/message", "must be a valid integer")?;
                    }
                }
            }
        ),
        check!(
            "pages.both-faults",
            "Faults of page and size are named together",
            SOURCE,
            |api| {
                let statuses = format!("{}/statuses", api.cluster().await?.path);
                for path in ["/clusters", "/resources", "/audit", &statuses] {
                    let list = api.list(path, &[("page", "0"), ("size", "0")]).await?;
                    let faults = list
                        .problem(400, "VAL-000")?
                        .at("/errors")
                        .as_array()
                        .map_or(0, Vec::len);
                    list.expect(faults == 2, "two errors")?;
                }
            }
        ),
        check!(
            "pages.page-size",
            "pageSize is the older spelling of size and wins over it",
            SOURCE,
            |api| {
                let (search, _) = five(api).await?;
                let list = api
                    .list("/clusters", &[("search", &search), ("pageSize", "2")])
                    .await?;
                list.has("/size", 2)?;
                let both = [
                    ("search", search.as_str()),
                    ("pageSize", "2"),
                    ("size", "3"),
                ];
                api.list("/clusters", &both).await?.has("/size", 2)?;
            }
        ),
        check!(
            "pages.page-size-large",
            "A pageSize above 100 counts as 100, 0 is refused",
            SOURCE,
            |api| {
                api.list("/clusters", &[("pageSize", "1000")])
                    .await?
                    .status(200)?;
                api.list("/clusters", &[("pageSize", "0")])
                    .await?
                    .status(400)?;
            }
        ),
        check!(
            "pages.continue",
            "continue goes on where the last page ended",
            SOURCE,
            |api| {
                let (search, all) = five(api).await?;
                let mut seen = Vec::new();
                let mut list = api
                    .list("/clusters", &[("search", &search), ("size", "2")])
                    .await?;
                loop {
                    seen.extend(list.column("name")?.into_iter().map(str::to_owned));
                    let Some(token) = list.at("/continue").as_str().map(str::to_owned) else {
                        break;
                    };
                    list.expect(seen.len() < all.len(), "no continue after the last item")?;
                    let next = [
                        ("search", search.as_str()),
                        ("size", "2"),
                        ("continue", token.as_str()),
                    ];
                    list = api.list("/clusters", &next).await?;
                }
                seen.reverse();
                list.expect(seen == all, "each item once, newest first")?;
            }
        ),
        check!(
            "pages.continue-wrong",
            "A token of another list or of none answers 400",
            SOURCE,
            |api| {
                api.list("/clusters", &[("continue", "nonsense")])
                    .await?
                    .status(400)?;
                let (search, _) = five(api).await?;
                let list = api
                    .list("/clusters", &[("search", &search), ("size", "2")])
                    .await?;
                let token = list.text("/continue")?;
                api.list("/nodepools", &[("continue", token)])
                    .await?
                    .status(400)?;
                api.list(
                    "/clusters",
                    &[("search", &search), ("continue", token), ("page", "2")],
                )
                .await?
                .status(400)?;
            }
        ),
    ]
}

/// Five clusters, oldest first, and a search that finds only them.
async fn five(api: &Subject) -> Verdict<(String, Vec<String>)> {
    let group = api.name();
    let mut names = Vec::new();
    for _ in 0..5 {
        names.push(
            api.cluster_with(&json!({"group": group}), json!({}))
                .await?
                .name,
        );
    }
    Ok((format!("labels.group = '{group}'"), names))
}
