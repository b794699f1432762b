use serde_json::json;

use super::*;
use crate::schema::SchemaDocument;

fn kind(kind: &str, plural: &str) -> EntityConfig {
    EntityConfig {
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        ..EntityConfig::default()
    }
}

fn reference(ref_type: &str, target_kind: &str, min: usize, max: usize) -> ReferenceConfig {
    ReferenceConfig {
        ref_type: ref_type.to_owned(),
        target_kind: target_kind.to_owned(),
        min,
        max,
    }
}

#[test]
fn the_built_in_kinds_pass() {
    let registry = registry(&built_in()).unwrap();
    let nodepool = registry.get("NodePool").unwrap();
    assert_eq!(nodepool.parent.as_deref(), Some("Cluster"));
    assert_eq!(nodepool.on_parent_delete, DeletePolicy::Cascade);
    assert_eq!((nodepool.name_bytes_min, nodepool.name_bytes_max), (3, 15));
    assert_eq!(registry.levels_below("Cluster"), 1);
    assert_eq!(registry.levels_below("NodePool"), 0);
    assert_eq!(
        (registry.depth("Cluster"), registry.depth("NodePool")),
        (0, 1)
    );
}

#[test]
fn no_kinds_at_all_are_legal() {
    assert!(registry(&[]).unwrap().entities().is_empty());
}

#[test]
fn an_empty_delete_policy_means_restrict() {
    let child = EntityConfig {
        parent_kind: "A".to_owned(),
        ..kind("B", "bs")
    };
    let registry = registry(&[kind("A", "as"), child]).unwrap();
    assert_eq!(
        registry.get("B").unwrap().on_parent_delete,
        DeletePolicy::Restrict
    );
}

#[test]
fn unset_name_limits_are_those_of_all_names() {
    let registry = registry(&[kind("A", "as")]).unwrap();
    let entity = registry.get("A").unwrap();
    assert_eq!((entity.name_bytes_min, entity.name_bytes_max), (0, 100));
}

#[test]
fn optional_references_may_go_in_circles() {
    let mut a = kind("A", "as");
    a.references = vec![reference("b", "B", 1, 1), reference("self", "A", 0, 0)];
    let mut b = kind("B", "bs");
    b.references = vec![reference("a", "A", 0, 1)];
    assert!(registry(&[a, b]).is_ok());
}

/// A valid kind A, and a kind B that `change` makes invalid.
fn with(change: &dyn Fn(&mut EntityConfig)) -> Vec<EntityConfig> {
    let mut config = kind("B", "bs");
    change(&mut config);
    vec![kind("A", "as"), config]
}

/// Every start-up check, and that its message says what to do.
fn assert_errors(cases: Vec<(Vec<EntityConfig>, &str)>) {
    for (configs, expected) in cases {
        let InvalidEntities(errors) = registry(&configs).unwrap_err();
        assert!(
            errors.iter().any(|f| f.contains(expected)),
            "{expected:?} not in {errors:?}"
        );
    }
}

#[test]
fn invalid_kinds_and_plurals_are_reported_with_advice() {
    assert_errors(vec![
        (
            with(&|b| b.kind = String::new()),
            "entities[1].kind: the entity has no kind: set `kind`",
        ),
        (
            with(&|b| b.plural = String::new()),
            "entities[1].plural: entity kind \"B\" has no plural: set `plural`",
        ),
        (with(&|b| b.kind = "A".to_owned()), "is there twice: rename"),
        (
            with(&|b| b.kind = "a b".to_owned()),
            "is not a usable name: give a letter",
        ),
        (with(&|b| b.kind = "K".repeat(101)), "is not a usable name"),
        (
            with(&|b| b.plural = "as".to_owned()),
            "which \"A\" has already: choose another",
        ),
        (
            with(&|b| b.plural = "a/b".to_owned()),
            "which is not a path segment: use lower-case",
        ),
        (
            with(&|b| b.plural = "1s".to_owned()),
            "which is not a path segment",
        ),
        (
            with(&|b| b.plural = "s".repeat(101)),
            "which is not a path segment",
        ),
        (
            with(&|b| b.plural = "resources".to_owned()),
            "entity kind \"B\" uses reserved plural \"resources\" which would shadow /resources root endpoint",
        ),
        (
            with(&|b| b.plural = "audit".to_owned()),
            "uses reserved plural \"audit\"",
        ),
        (
            with(&|b| b.plural = "fleet".to_owned()),
            "uses reserved plural \"fleet\"",
        ),
        (
            with(&|b| b.plural = "leases".to_owned()),
            "uses reserved plural \"leases\"",
        ),
        (
            with(&|b| b.plural = "openapi".to_owned()),
            "uses reserved plural \"openapi\"",
        ),
        (
            with(&|b| b.plural = "statuses".to_owned()),
            "uses reserved plural \"statuses\" which would shadow /statuses below every resource",
        ),
        (
            with(&|b| b.plural = "explain".to_owned()),
            "uses reserved plural \"explain\"",
        ),
        (
            with(&|b| b.plural = "force-delete".to_owned()),
            "uses reserved plural \"force-delete\"",
        ),
    ]);
}

#[test]
fn adapters_with_one_condition_type_are_refused() {
    assert_errors(vec![
        (
            with(&|b| b.required_adapters = vec!["x".to_owned(), "x".to_owned()]),
            "\"x\" and \"x\", which would share the condition type XSuccessful",
        ),
        (
            with(&|b| b.required_adapters = vec!["a-b".to_owned(), "aB".to_owned()]),
            "\"a-b\" and \"aB\", which would share the condition type ABSuccessful: rename",
        ),
    ]);
}

#[test]
fn invalid_parents_and_references_are_reported_with_advice() {
    assert_errors(vec![
        (
            with(&|b| b.parent_kind = "X".to_owned()),
            "parent_kind \"X\", which is not configured: add",
        ),
        (
            with(&|b| b.parent_kind = "B".to_owned()),
            "owns itself through parent_kind: break",
        ),
        (
            with(&|b| b.references = vec![reference("", "A", 0, 0)]),
            "ref_type \"\" that is empty",
        ),
        (
            with(&|b| {
                b.references = vec![reference("r", "A", 0, 0), reference("r", "A", 0, 0)];
            }),
            "ref_type \"r\" that is empty or not the only one",
        ),
        (
            with(&|b| b.references = vec![reference("r", "X", 0, 0)]),
            "references the kind \"X\", which is not configured",
        ),
    ]);
}

#[test]
fn cycles_through_others_are_found() {
    let child = |name: &str, plural: &str, parent: &str| EntityConfig {
        parent_kind: parent.to_owned(),
        ..kind(name, plural)
    };
    let owners = [
        child("A", "as", "C"),
        child("B", "bs", "A"),
        child("C", "cs", "B"),
    ];
    let errors = registry(&owners).unwrap_err().0;
    assert_eq!(errors.len(), 3);
    assert!(
        errors.iter().all(|f| f.contains("owns itself")),
        "{errors:?}"
    );
    // B leads to a cycle without being part of it.
    let owners = [child("A", "as", "A"), child("B", "bs", "A")];
    assert_eq!(registry(&owners).unwrap_err().0.len(), 1);
}

#[test]
fn names_of_the_longest_length_are_accepted() {
    for change in [
        (|b, n| b.kind = "a".repeat(n)) as fn(&mut EntityConfig, usize),
        |b, n| b.plural = "a".repeat(n),
    ] {
        assert!(registry(&with(&|b| change(b, KIND_BYTES_MAX))).is_ok());
        assert!(registry(&with(&|b| change(b, KIND_BYTES_MAX + 1))).is_err());
    }
    assert!(registry(&with(&|b| b.kind = "B-1_x".to_owned())).is_ok());
}

#[test]
fn all_errors_are_named_at_once() {
    let configs = [kind("", ""), kind("A", "as"), kind("A", "as")];
    assert_eq!(registry(&configs).unwrap_err().0.len(), 4);
}

#[test]
fn missing_schemas_of_kinds_are_errors_or_warnings() {
    let kind = |name: &str, required: bool| EntityConfig {
        kind: "A".to_owned(),
        plural: "as".to_owned(),
        spec_schema_name: name.to_owned(),
        require_spec_schema: required,
        ..EntityConfig::default()
    };
    let schemas = json!({"S": {}, "Bad": {"type": "strin"}});
    let document = json!({"openapi": "3.0.3", "components": {"schemas": schemas}});
    let document = SchemaDocument::parse(document).unwrap();
    // Whether the kind then has a schema, and its note.
    for (name, required, has_document, has_schema, note) in [
        ("", false, true, false, None),
        ("", true, true, false, Some("without saying which")),
        ("S", false, true, true, None),
        ("S", true, true, true, None),
        ("S", false, false, false, None),
        (
            "S",
            true,
            false,
            false,
            Some("no schema document is configured"),
        ),
        (
            "T",
            false,
            true,
            false,
            Some("which the schema document does not have"),
        ),
    ] {
        let configs = [kind(name, required)];
        let document = Some(&document).filter(|_| has_document);
        let attached = attach(registry(&configs).unwrap(), &configs, document).unwrap();
        let entity = attached.registry.get("A").unwrap();
        let case = format!("{name} {required} {has_document}: {:?}", attached.notes);
        assert_eq!(entity.spec_schema.is_some(), has_schema, "{case}");
        assert_eq!(attached.notes.len(), usize::from(note.is_some()), "{case}");
        assert!(
            attached.notes.iter().all(|n| n.contains(note.unwrap())),
            "{case}"
        );
    }
    for (name, said) in [
        ("T", "requires the schema \"T\""),
        ("Bad", "cannot be used"),
    ] {
        let configs = [kind(name, true)];
        let errors = attach(registry(&configs).unwrap(), &configs, Some(&document)).unwrap_err();
        let begin = "entities[0].spec_schema_name: entity kind \"A\" ";
        assert!(
            errors.0.len() == 1 && errors.0[0].starts_with(begin) && errors.0[0].contains(said),
            "{errors:?}"
        );
    }
}
