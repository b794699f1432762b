//! The table of `docs/guides/derived-conditions.md`, line by line, and the limits that it names.

use hyperfleet_expressions as language;

use super::{Scene, json};
use crate::condition_rules as limits;

const DOCUMENT: &str = include_str!("../../../../../docs/guides/derived-conditions.md");

#[test]
fn every_line_of_the_table_gives_what_it_says() {
    let mut scene = Scene::default();
    scene.data.insert(
        "dns".to_owned(),
        json!({"zone": "z1", "quota": {"remaining": 3}}),
    );
    let lines = DOCUMENT
        .lines()
        .skip_while(|line| *line != "| expression | gives |");
    let table = lines.skip(2).take_while(|line| line.starts_with('|'));
    let mut count = 0;
    for line in table {
        let cells = line.trim_matches(['|', ' ']).rsplit_once(" | ");
        let (expression, gives) = cells.unwrap_or_else(|| panic!("{line}"));
        let expression = expression.trim_matches('`');
        assert_eq!(scene.message(expression), gives.trim_matches('`'), "{line}");
        count += 1;
    }
    assert!(count > 20, "only {count} lines were found");
}

#[test]
fn the_limits_are_those_of_the_code() {
    for text in [
        format!("| an expression | {} bytes |", language::SOURCE_BYTES_MAX),
        format!("| {} levels |", language::DEPTH_MAX),
        format!("| {},000 units |", language::UNITS_MAX / 1000),
        format!(
            "| {},{} bytes of JSON |",
            limits::Data::BYTES_MAX / 1000,
            limits::Data::BYTES_MAX % 1000
        ),
        format!(
            "| {},000 values, {} MiB of text |",
            language::VALUES_MAX / 1000,
            language::TEXTS_BYTES_MAX >> 20
        ),
        format!("at most {} bytes; with", limits::REASON_BYTES_MAX),
        format!("cut to {} bytes", limits::MESSAGE_BYTES_MAX),
        format!("1 to {} letters", limits::TYPE_BYTES_MAX),
    ] {
        assert!(DOCUMENT.contains(&text), "not in the document: {text}");
    }
}
