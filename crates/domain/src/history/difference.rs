//! Where the declared parts of two states differ, as JSON pointers (RFC 6901).

use serde_json::{Map, Value};

use crate::{JsonText, References, StoredResource};

/// Most pointers of one step. Beyond it, each pointer names `/labels`, `/references` or `/spec`.
const POINTERS_MAX: usize = 200;

/// The members below `spec`, `labels` and `references` that differ, in the order of their names. Arrays of different
/// lengths are one difference.
pub(super) fn differences(before: &StoredResource, after: &StoredResource) -> Vec<String> {
    let parts = [
        ("/labels", text_pair(&before.labels, &after.labels)),
        (
            "/references",
            (links(&before.references), links(&after.references)),
        ),
        ("/spec", text_pair(&before.spec, &after.spec)),
    ];
    let mut pointers = Vec::new();
    for (name, (before, after)) in &parts {
        compare(name, before, after, &mut pointers);
    }
    if pointers.len() > POINTERS_MAX {
        let changed = parts.iter().filter(|(_, (before, after))| before != after);
        return changed.map(|(name, _)| (*name).to_owned()).collect();
    }
    pointers
}

fn text_pair(before: &JsonText, after: &JsonText) -> (Value, Value) {
    let value = |text: &JsonText| serde_json::from_str(text.as_str()).unwrap_or_default();
    (value(before), value(after))
}

fn links(references: &References) -> Value {
    let entries = references.iter().map(|(ref_type, targets)| {
        let targets = targets
            .iter()
            .map(|t| Value::from(format!("{}/{}", t.kind, t.id)));
        (ref_type.clone(), targets.collect())
    });
    Value::Object(entries.collect::<Map<_, Value>>())
}

fn compare(at: &str, before: &Value, after: &Value, pointers: &mut Vec<String>) {
    // Enough to know that there are too many.
    if before == after || pointers.len() > POINTERS_MAX {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let below = format!("{at}/{}", escaped(name));
                match (before.get(name), after.get(name)) {
                    (Some(before), Some(after)) => compare(&below, before, after, pointers),
                    _ => pointers.push(below),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                compare(&format!("{at}/{index}"), before, after, pointers);
            }
        }
        _ => pointers.push(at.to_owned()),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pointers(before: &Value, after: &Value) -> Vec<String> {
        let mut found = Vec::new();
        compare("", before, after, &mut found);
        found
    }

    #[test]
    fn the_deepest_member_that_differs_is_named() {
        for (before, after, expected) in [
            (json!({"a": 1}), json!({"a": 1}), vec![]),
            (
                json!({"a": 1, "b": {"c": 1, "d": 2}}),
                json!({"b": {"c": 1, "d": 3}, "e": null}),
                vec!["/a", "/b/d", "/e"],
            ),
            (
                json!({"a": [1, {"b": 2}]}),
                json!({"a": [1, {"b": 3}]}),
                vec!["/a/1/b"],
            ),
            (json!({"a": [1]}), json!({"a": [1, 2]}), vec!["/a"]),
            (json!({"a": {}}), json!({"a": []}), vec!["/a"]),
            (
                json!({"a/b": 1, "c~d": 1}),
                json!({"a/b": 2, "c~d": 2}),
                vec!["/a~1b", "/c~0d"],
            ),
        ] {
            assert_eq!(pointers(&before, &after), expected, "{before} {after}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            (0..3).prop_map(Value::from),
            "[a~/]{0,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 20, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a~/]{1,2}", inner, 0..3)
                    .prop_map(|members| { Value::Object(members.into_iter().collect()) }),
            ]
        })
    }

    proptest! {
        /// Every pointer names a place that differs, and there is none exactly if nothing differs.
        #[test]
        fn pointers_lead_to_differences(before in value(), after in value()) {
            let found = pointers(&before, &after);
            prop_assert_eq!(found.is_empty(), before == after);
            for pointer in &found {
                prop_assert_ne!(before.pointer(pointer), after.pointer(pointer), "{}", pointer);
            }
        }
    }
}
