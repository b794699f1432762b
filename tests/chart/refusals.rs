//! What starts no pod is refused when the chart is rendered, with what to change.

use crate::helm::Helm;

const IMAGE: &str = "image: {registry: r, repository: p, tag: v1}\n";

#[test]
fn authentication_has_to_be_decided() {
    let Some(helm) = Helm::found() else { return };
    let said = helm.refused(IMAGE);
    assert!(said.contains("authentication is not decided"), "{said}");
    assert!(
        said.contains("--set config.server.jwt.enabled=false"),
        "{said}"
    );
    // Only issuers decide it.
    let issuers = "config: {server: {jwt: {enabled: null, configs: [{issuer_url: https://a.example.com, jwk_cert_url: https://a.example.com/k}]}}}";
    assert!(
        helm.rendered(issuers)
            .config()
            .unwrap()
            .contains("enabled: true")
    );
    let without = helm.refused(&format!(
        "{IMAGE}config: {{server: {{jwt: {{enabled: true}}}}}}"
    ));
    assert!(without.contains("names no issuer"), "{without}");
}

#[test]
fn an_image_of_an_earlier_series_is_refused() {
    let Some(helm) = Helm::found() else { return };
    let image = |rest: &str| format!("image: {{registry: r, repository: p, {rest}}}");
    for tag in ["0.1.0", "v0.1.9", "0.1.12-rc.1"] {
        let said = helm.refused(&image(&format!("tag: {tag}")));
        let expected = format!("image.tag is {tag}, but this chart needs an image of version");
        assert!(said.contains(&expected), "{said}");
    }
    let own = env!("CARGO_PKG_VERSION");
    let release = own.trim_end_matches("-dev");
    // The last two are no versions.
    for tag in [own, release, "99.0.0", "latest", "0.0.007"] {
        helm.rendered(&image(&format!("tag: {tag:?}")));
    }
    let digest = format!("digest: \"sha256:{}\"", "0".repeat(64));
    helm.rendered(&image(&format!("tag: 0.1.0, {digest}")));
}

#[test]
fn values_that_fit_nothing_are_refused_with_what_to_change() {
    let Some(helm) = Helm::found() else { return };
    for (values, expected) in [
        ("image: {tag: v1}", "image.registry must be set"),
        (
            "image: {registry: r, repository: p}",
            "image.tag or image.digest must be set",
        ),
        (
            "ports: {api: 8001}",
            "ports.api is 8001, but config.server.port is 8000",
        ),
        (
            "config: {server: {tls: {enabled: true}}}",
            "set tls.api.secretName",
        ),
        (
            "config: {health: {tls: {enabled: true}}}",
            "set tls.health.secretName",
        ),
        (
            "config: {server: {tenant: {enabled: true}}}",
            "config.server.tenant.dimensions is empty",
        ),
        (
            "config: {fleet: {enabled: true}}",
            "config.fleet.etcd.endpoints is empty",
        ),
        (
            "database: {external: {enabled: true}}",
            "database.external.secretName",
        ),
        (
            "migration: {mode: job}",
            "migration.mode=job runs before the chart's PostgreSQL",
        ),
        (
            "database: {external: {enabled: true, secretName: s, externalSecret: {enabled: true}}}",
            "needs secretStoreRef",
        ),
        (
            "validationSchema: {enabled: true}",
            "validationSchema.content",
        ),
        (
            "validationSchema: {enabled: true, content: \"  \\n \"}",
            "validationSchema.content",
        ),
        ("certificate: {enabled: true}", "certificate.issuerRef"),
        (
            "autoscaling: {enabled: true, minReplicas: 20}",
            "greater than autoscaling.maxReplicas",
        ),
        (
            "podDisruptionBudget: {enabled: true, minAvailable: 1, maxUnavailable: 1}",
            "podDisruptionBudget has both minAvailable and maxUnavailable",
        ),
        // These are of the schema.
        (
            "podDisruptionBudget: {maxUnavailable: '1'}",
            "/podDisruptionBudget/maxUnavailable",
        ),
        (
            "podDisruptionBudget: {minAvailable: -1}",
            "/podDisruptionBudget/minAvailable",
        ),
        ("replicaCount: 0", "replicaCount"),
        ("config: {logging: {level: loud}}", "/config/logging/level"),
        (
            "config: {entities: [{kind: A}]}",
            "missing property 'plural'",
        ),
        (
            "config: {server: {timeouts: {read: soon}}}",
            "/config/server/timeouts/read",
        ),
        (
            "config: {database: {pool: {max_connections: 500}}}",
            "/config/database/pool/max_connections",
        ),
    ] {
        // Without the image's values where these are what is wrong.
        let said = if values.starts_with("image") {
            helm.refused(values)
        } else {
            helm.render(values)
                .err()
                .unwrap_or_else(|| panic!("taken: {values}"))
        };
        assert!(said.contains(expected), "{values}:\n{said}");
    }
}

#[test]
fn all_errors_are_reported_together() {
    let Some(helm) = Helm::found() else { return };
    let said = helm.refused("certificate: {enabled: true}");
    for expected in [
        "image.registry",
        "image.tag",
        "authentication",
        "certificate.issuerRef",
    ] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    let Some(helm) = Helm::found() else { return };
    for (values, expected) in [
        (
            "replica_count: 3",
            "replica_count: did you mean replicaCount?",
        ),
        (
            "podDisruptionBudgets: {}",
            "podDisruptionBudgets: did you mean podDisruptionBudget?",
        ),
        (
            "config: {server: {jwt: {enbled: false}}}",
            "config.server.jwt.enbled: did you mean config.server.jwt.enabled?",
        ),
        (
            "config: {database: {pool: {maxConnections: 5}}}",
            "did you mean config.database.pool.max_connections?",
        ),
        (
            "config: {entities: [{kind: A, plural: as, requiredAdapters: []}]}",
            "config.entities[0].requiredAdapters: did you mean config.entities[0].required_adapters?",
        ),
        (
            "monitoring: {serviceMonitor: {intervall: 5s}}",
            "did you mean monitoring.serviceMonitor.interval?",
        ),
        (
            "autoscaling: {zzzzzzzzz: 1}",
            "autoscaling.zzzzzzzzz: known here are behavior, enabled, maxReplicas",
        ),
    ] {
        let said = helm.refused(&format!("{IMAGE}{values}"));
        assert!(said.contains(expected), "{values}:\n{said}");
        assert!(said.contains("allowUnknownValues=true"), "{said}");
    }
    let allowed = helm.rendered("allowUnknownValues: true\nreplica_count: 3");
    assert_eq!(allowed.deployment()["spec"]["replicas"], 1);
}

#[test]
fn free_form_values_take_any_key() {
    let Some(helm) = Helm::found() else { return };
    let objects = helm.rendered(
        "nodeSelector: {any: thing}\nprobes: {startup: {failureThreshold: 90}}\nglobal: {parent: {of: charts}}",
    );
    assert_eq!(objects.pod()["nodeSelector"]["any"], "thing");
    assert_eq!(objects.container()["startupProbe"]["failureThreshold"], 90);
}
