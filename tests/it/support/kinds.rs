use hyperfleet_domain::condition_rules::{ExpressionConfig, OutputConfig, RuleConfig};
use hyperfleet_domain::entity_config::{EntityConfig, ReferenceConfig};

/// A root kind.
pub(crate) fn root(kind: &str, plural: &str, adapters: &[&str]) -> EntityConfig {
    EntityConfig {
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        required_adapters: adapters.iter().map(ToString::to_string).collect(),
        ..EntityConfig::default()
    }
}

/// A child kind.
pub(crate) fn child(parent: &str, policy: &str, kind: EntityConfig) -> EntityConfig {
    EntityConfig {
        parent_kind: parent.to_owned(),
        on_parent_delete: serde_json::from_value(policy.into()).unwrap(),
        ..kind
    }
}

/// A kind with references, each `(ref_type, target_kind, min, max)`.
pub(crate) fn linked(rules: &[(&str, &str, usize, usize)], kind: EntityConfig) -> EntityConfig {
    let rule = |&(ref_type, target, min, max): &(&str, &str, usize, usize)| ReferenceConfig {
        ref_type: ref_type.to_owned(),
        target_kind: target.to_owned(),
        min,
        max,
    };
    EntityConfig {
        references: rules.iter().map(rule).collect(),
        ..kind
    }
}

/// A kind with rules, each `(type, when, status, message)`; the reason is `Derived`.
pub(crate) fn ruled(rules: &[(&str, &str, &str, &str)], kind: EntityConfig) -> EntityConfig {
    let expression = |text: &str| ExpressionConfig {
        expression: text.to_owned(),
    };
    let rule = |&(kind, when, status, message): &(&str, &str, &str, &str)| RuleConfig {
        kind: kind.to_owned(),
        when: expression(when),
        output: OutputConfig {
            status: expression(status),
            reason: expression("\"Derived\""),
            message: expression(message),
        },
    };
    EntityConfig {
        conditions: rules.iter().map(rule).collect(),
        ..kind
    }
}
