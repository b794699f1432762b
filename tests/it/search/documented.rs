//! docs/guides/search.md says what is so: every search in its tables is run.

use super::{search, world};

/// The tables of the page: title of the section, and the cells of each row.
fn tables() -> Vec<(String, Vec<String>)> {
    let page = include_str!("../../../docs/guides/search.md");
    let mut section = String::new();
    let mut rows = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut section);
        }
        let cells = line.strip_prefix("| ").and_then(|l| l.strip_suffix(" |"));
        let Some(cells) = cells else { continue };
        let cells: Vec<_> = cells.split(" | ").map(ToOwned::to_owned).collect();
        if cells[0].starts_with('`') {
            rows.push((section.clone(), cells));
        }
    }
    rows
}

/// What stands between the first two backticks.
fn code(cell: &str) -> &str {
    cell.split('`').nth(1).unwrap()
}

#[tokio::test]
async fn every_search_in_the_manual_does_what_it_says() {
    let api = world::populated().await;
    let rows = tables();
    assert!(rows.len() > 60, "{}", rows.len());
    for (section, cells) in rows {
        let text = code(&cells[0]);
        let answer = search(&api, "/resources", text).await;
        if section == "Refused" {
            assert_eq!(answer.problem(), (400, "VAL-005"), "{text}");
            assert_eq!(answer.detail(), code(&cells[1]), "{text}");
        } else {
            assert_eq!(answer.status, 200, "{text}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn the_example_of_an_error_is_one() {
    let api = crate::support::TestApi::spawn().await;
    let answer = search(&api, "/clusters", "name = 'a' andd generation = 1").await;
    assert!(include_str!("../../../docs/guides/search.md").contains(answer.detail()));
}
