//! Every rule for references between resources, with the exact text of its refusal.

use super::given::{id, kind, link, registry};
use crate::entity_config::EntityConfig;
use crate::reference::{
    ReferenceTarget, RequestedReference, RequestedReferences, check, check_targets,
};
use crate::{Constraint, Entity, Reference, References, Violation};

/// A kind that needs a channel, may have two peers, and any number of mirrors.
fn version() -> Entity {
    let version = EntityConfig {
        references: vec![
            link("channel", "Channel", 1, 1),
            link("peers", "Version", 0, 2),
            link("mirrors", "Version", 0, 0),
        ],
        ..kind("Version", &[])
    };
    let registry = registry(&[kind("Channel", &[]), version]);
    registry.get("Version").expect("it is there").clone()
}

fn uuid(number: u128) -> String {
    id(number).to_string()
}

/// References of one type as a client sends them: type, then (kind, id) of each target.
type Link<'a> = (&'a str, &'a [(&'a str, &'a str)]);

fn requested(links: &[Link<'_>]) -> RequestedReferences {
    let link = |&(kind, id): &(&str, &str)| RequestedReference {
        id: id.to_owned(),
        kind: kind.to_owned(),
    };
    let links = links.iter().map(|(ref_type, targets)| {
        let targets = targets.iter().map(link).collect();
        ((*ref_type).to_owned(), targets)
    });
    links.collect()
}

fn reference(kind: &str, number: u128) -> Reference {
    Reference {
        kind: kind.to_owned(),
        id: id(number),
    }
}

fn violation(constraint: Constraint, message: impl Into<String>) -> Violation {
    Violation::new("references", constraint, message)
}

#[test]
fn every_broken_rule_is_refused_in_its_own_words() {
    let (one, two, three) = (uuid(1), uuid(2), uuid(3));
    let upper = "0190A6F0-1C2B-7DEF-8123-456789ABCDEF";
    let channel: Link<'_> = ("channel", &[("Channel", &one)]);
    let cases: [(&[Link<'_>], Constraint, String); 11] = [
        (
            &[],
            Constraint::Required,
            r#"required reference type "channel" missing for Version (min 1)"#.to_owned(),
        ),
        // An empty list counts as absent, and a missing type is reported first.
        (
            &[("channel", &[]), ("unheard-of", &[])],
            Constraint::Required,
            r#"required reference type "channel" missing for Version (min 1)"#.to_owned(),
        ),
        (
            &[channel, ("unheard-of", &[])],
            Constraint::Enum,
            r#"unknown reference type "unheard-of" for Version"#.to_owned(),
        ),
        (
            &[("channel", &[("Channel", &one), ("Channel", &two)])],
            Constraint::Max,
            r#"reference type "channel" for Version exceeds max count 1 (got 2)"#.to_owned(),
        ),
        // Counted before they are checked: the three are all one target.
        (
            &[
                channel,
                ("peers", &[("Version", &two), ("Version", &two), ("", "")]),
            ],
            Constraint::Max,
            r#"reference type "peers" for Version exceeds max count 2 (got 3)"#.to_owned(),
        ),
        (
            &[("channel", &[("Version", "")])],
            Constraint::Required,
            r#"reference type "channel": id is required"#.to_owned(),
        ),
        (
            &[channel, ("mirrors", &[("Version", &two), ("Channel", &two)])],
            Constraint::Unique,
            format!(r#"reference type "mirrors": duplicate target id "{two}""#),
        ),
        (
            &[("channel", &[("Version", &one)])],
            Constraint::Enum,
            r#"reference type "channel": kind "Version" does not match expected target kind "Channel""#
                .to_owned(),
        ),
        (
            &[("channel", &[("", "no id")])],
            Constraint::Enum,
            r#"reference type "channel": kind "" does not match expected target kind "Channel""#
                .to_owned(),
        ),
        // What cannot be an id names nothing that exists; so does another spelling of one.
        (
            &[("channel", &[("Channel", "no id")])],
            Constraint::Enum,
            r#"reference type "channel": target Channel "no id" not found"#.to_owned(),
        ),
        (
            &[channel, ("peers", &[("Version", &three), ("Version", upper)])],
            Constraint::Enum,
            format!(r#"reference type "peers": target Version "{upper}" not found"#),
        ),
    ];
    for (links, constraint, message) in cases {
        let refused = check(&version(), &requested(links));
        assert_eq!(refused, Err(violation(constraint, message)), "{links:?}");
    }
}

#[test]
fn types_are_looked_at_in_the_order_of_their_names() {
    let links = requested(&[("z", &[]), ("peers", &[("Version", "")])]);
    let optional = Entity {
        references: version().references.split_off(1),
        ..version()
    };
    let message = r#"reference type "peers": id is required"#;
    let refused = check(&optional, &links);
    assert_eq!(refused, Err(violation(Constraint::Required, message)));
}

#[test]
fn a_refusal_repeats_no_more_of_a_clients_text_than_fits() {
    let long = "ä".repeat(500);
    let links = requested(&[("channel", &[("Channel", &long)])]);
    let refused = check(&version(), &links).unwrap_err();
    let excerpt = "ä".repeat(100);
    let message = format!(r#"reference type "channel": target Channel "{excerpt}" not found"#);
    assert_eq!(refused.message, message);
}

#[test]
fn valid_references_stay_in_order_and_empty_ones_are_dropped() {
    let (one, two, three) = (uuid(1), uuid(2), uuid(3));
    let links = requested(&[
        ("channel", &[("Channel", &three)]),
        ("mirrors", &[]),
        ("peers", &[("Version", &two), ("Version", &one)]),
    ]);
    let expected = References::from([
        ("channel".to_owned(), vec![reference("Channel", 3)]),
        (
            "peers".to_owned(),
            vec![reference("Version", 1), reference("Version", 2)],
        ),
    ]);
    assert_eq!(check(&version(), &links), Ok(expected));
}

#[test]
fn one_target_may_be_linked_under_two_types_and_counts_once() {
    let two = uuid(2);
    let links = requested(&[
        ("channel", &[("Channel", &uuid(1))]),
        ("mirrors", &[("Version", &two)]),
        ("peers", &[("Version", &two)]),
    ]);
    let references = check(&version(), &links).unwrap();
    assert_eq!(references.len(), 3);
}

#[test]
fn no_limit_means_no_limit() {
    let ids: Vec<_> = (1..=500).map(uuid).collect();
    let mirrors: Vec<_> = ids.iter().map(|id| ("Version", &**id)).collect();
    let links = requested(&[("channel", &[("Channel", &uuid(1))]), ("mirrors", &mirrors)]);
    assert_eq!(check(&version(), &links).unwrap()["mirrors"].len(), 500);
}

#[test]
fn targets_must_be_there_of_that_kind_and_active() {
    let links = References::from([("channel".to_owned(), vec![reference("Channel", 1)])]);
    let target = |number, kind: &str, is_deleting| ReferenceTarget {
        id: id(number),
        kind: kind.to_owned(),
        is_deleting,
    };
    let one = uuid(1);
    let absent = format!(r#"reference type "channel": target Channel "{one}" not found"#);
    let leaving =
        format!(r#"reference type "channel": target Channel "{one}" is marked for deletion"#);
    for (found, expected) in [
        (vec![], Err(absent.clone())),
        (vec![target(2, "Channel", false)], Err(absent.clone())),
        (vec![target(1, "Version", false)], Err(absent)),
        (vec![target(1, "Channel", true)], Err(leaving)),
        (
            vec![target(2, "Channel", true), target(1, "Channel", false)],
            Ok(()),
        ),
    ] {
        let expected = expected.map_err(|message| violation(Constraint::Enum, message));
        assert_eq!(check_targets(&links, &found), expected, "{found:?}");
    }
}

#[test]
fn every_link_is_looked_at() {
    let links = References::from([
        ("channel".to_owned(), vec![reference("Channel", 1)]),
        (
            "peers".to_owned(),
            vec![reference("Version", 2), reference("Version", 3)],
        ),
    ]);
    let found = [(1, "Channel"), (2, "Version")].map(|(number, kind)| ReferenceTarget {
        id: id(number),
        kind: kind.to_owned(),
        is_deleting: false,
    });
    let message = format!(
        r#"reference type "peers": target Version "{}" not found"#,
        uuid(3)
    );
    assert_eq!(
        check_targets(&links, &found),
        Err(violation(Constraint::Enum, message))
    );
}
