//! What operators of the older chart tripped over, each held by a test, and what the chart adds for pods.

use serde_json::{Value, json};

use crate::helm::{Helm, named};

const EXTERNAL: &str =
    "database: {external: {enabled: true, secretName: hyperfleet-db, caSecretName: ca}}\n";

#[test]
fn an_external_database_leaves_out_the_chart_s_own() {
    let Some(helm) = Helm::found() else { return };
    let objects = helm.rendered(EXTERNAL);
    assert!(
        objects
            .find("Deployment", "test-hyperfleet-api-postgresql")
            .is_none()
    );
    assert!(!objects.has("Secret"));
    let host = named(&objects.container()["env"], "HYPERFLEET_DATABASE_HOST");
    assert_eq!(
        host["valueFrom"]["secretKeyRef"],
        json!({"name": "hyperfleet-db", "key": "db.host"})
    );
}

#[test]
fn migrations_see_the_variables_and_mounts_of_the_service() {
    let Some(helm) = Helm::found() else { return };
    let extra = "extraEnv: [{name: HTTPS_PROXY, value: http://proxy}]\nextraVolumes: [{name: ca, emptyDir: {}}]\nextraVolumeMounts: [{name: ca, mountPath: /ca}]\n";
    let init = helm.rendered(extra);
    let job = helm.rendered(&format!("{EXTERNAL}{extra}migration: {{mode: job}}"));
    let in_job = &job.get("Job", "test-hyperfleet-api-migrate")["spec"]["template"]["spec"];
    for pod in [init.pod(), in_job] {
        let place = ["initContainers", "containers"].map(|list| pod[list].as_array());
        let mut all = place.into_iter().flatten().flatten();
        let migrate = all
            .find(|container| container["name"] == "db-migrate")
            .unwrap();
        assert_eq!(migrate["args"], json!(["migrate"]));
        assert_eq!(
            named(&migrate["env"], "HTTPS_PROXY")["value"],
            "http://proxy"
        );
        named(&migrate["env"], "HYPERFLEET_DATABASE_PASSWORD");
        assert_eq!(named(&migrate["volumeMounts"], "ca")["mountPath"], "/ca");
        assert!(!migrate["resources"]["limits"].is_null());
    }
    // Migrations verify the database's certificate, too.
    named(&in_job["containers"][0]["volumeMounts"], "database-ca");
}

#[test]
fn a_job_migrates_before_the_release_with_objects_of_its_own() {
    let Some(helm) = Helm::found() else { return };
    let objects = helm.rendered(&format!("{EXTERNAL}migration: {{mode: job}}"));
    assert!(objects.pod()["initContainers"].is_null());
    for kind in ["Job", "ServiceAccount", "ConfigMap"] {
        let annotations =
            &objects.get(kind, "test-hyperfleet-api-migrate")["metadata"]["annotations"];
        assert_eq!(
            annotations["helm.sh/hook"], "pre-install,pre-upgrade",
            "{kind}"
        );
    }
    let none = helm.rendered(&format!("{EXTERNAL}migration: {{mode: none}}"));
    assert!(none.pod()["initContainers"].is_null() && !none.has("Job"));
}

#[test]
fn sidecars_start_before_migrations() {
    let Some(helm) = Helm::found() else { return };
    let objects = helm.rendered("nativeSidecars: [{name: proxy, image: p, restartPolicy: Always}]");
    let containers = objects.pod()["initContainers"].as_array().unwrap();
    let names: Vec<&Value> = containers
        .iter()
        .map(|container| &container["name"])
        .collect();
    assert_eq!(names, ["proxy", "db-migrate"]);
    // Nothing to migrate: the sidecar is there all the same.
    let without = helm.rendered(
        "database: {postgresql: {enabled: false}}\nnativeSidecars: [{name: proxy, image: p}]",
    );
    assert_eq!(without.pod()["initContainers"].as_array().unwrap().len(), 1);
}

#[test]
fn probes_speak_tls_where_the_health_listener_does() {
    let Some(helm) = Helm::found() else { return };
    let plain = helm.rendered("");
    let secure =
        helm.rendered("config: {health: {tls: {enabled: true}}}\ntls: {health: {secretName: h}}");
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(plain.container()[probe]["httpGet"]["scheme"], "HTTP");
        assert_eq!(secure.container()[probe]["httpGet"]["scheme"], "HTTPS");
    }
    assert!(
        secure
            .config()
            .unwrap()
            .contains("cert_file: /etc/hyperfleet-tls/health/tls.crt")
    );
}

#[test]
fn a_budget_for_disruptions_lets_a_single_pod_go() {
    let Some(helm) = Helm::found() else { return };
    let budget = |values: &str| {
        let objects = helm.rendered(values);
        objects.get("PodDisruptionBudget", "test-hyperfleet-api")["spec"].clone()
    };
    let usual = budget("podDisruptionBudget: {enabled: true}");
    assert_eq!(
        (&usual["maxUnavailable"], &usual["minAvailable"]),
        (&json!(1), &Value::Null)
    );
    let asked = budget("podDisruptionBudget: {enabled: true, minAvailable: 2}");
    assert_eq!(
        (&asked["maxUnavailable"], &asked["minAvailable"]),
        (&Value::Null, &json!(2))
    );
    for (asked, expected) in [("0", json!(0)), ("50%", json!("50%"))] {
        let values = format!("podDisruptionBudget: {{enabled: true, maxUnavailable: {asked}}}");
        assert_eq!(budget(&values)["maxUnavailable"], expected);
    }
}

#[test]
fn pods_are_replaced_when_their_settings_change() {
    let Some(helm) = Helm::found() else { return };
    let checksum = |values: &str| {
        let objects = helm.rendered(values);
        objects.deployment()["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
            .clone()
    };
    assert_eq!(checksum(""), checksum(""));
    assert_ne!(checksum(""), checksum("config: {logging: {level: debug}}"));
    let existing = "config: {existingConfigMap: mine, existingConfigMapRevision: ";
    assert_ne!(
        checksum(&format!("{existing}'1'}}")),
        checksum(&format!("{existing}'2'}}"))
    );
}

#[test]
fn the_password_of_postgresql_can_be_in_a_secret_of_others() {
    let Some(helm) = Helm::found() else { return };
    let existing = helm.rendered("database: {postgresql: {existingSecret: mine}}");
    assert!(!existing.has("Secret"));
    let variable = named(&existing.container()["env"], "HYPERFLEET_DATABASE_PASSWORD");
    assert_eq!(variable["valueFrom"]["secretKeyRef"]["name"], "mine");
}

#[test]
fn a_second_release_in_a_namespace_can_have_a_service_of_its_own() {
    let Some(helm) = Helm::found() else { return };
    helm.rendered("").get("Service", "hyperfleet-api");
    helm.rendered("service: {name: other}")
        .get("Service", "other");
}

#[test]
fn pods_spread_by_default() {
    let Some(helm) = Helm::found() else { return };
    let usual = helm.rendered("");
    let rules = usual.pod()["topologySpreadConstraints"].as_array().unwrap();
    assert_eq!(rules.len(), 2);
    let selector = &usual.deployment()["spec"]["selector"];
    assert!(
        rules.iter().all(|rule| &rule["labelSelector"] == selector),
        "{rules:?}"
    );
    let own = "topologySpreadConstraints: [{maxSkew: 2, topologyKey: zone, labelSelector: {matchLabels: {a: b}}}]";
    let own = helm.rendered(own);
    let rule = &own.pod()["topologySpreadConstraints"][0];
    assert_eq!(rule["labelSelector"], json!({"matchLabels": {"a": "b"}}));
    let none = helm.rendered("topologySpreadConstraints: []");
    assert!(none.pod()["topologySpreadConstraints"].is_null());
}

#[test]
fn only_the_service_reaches_postgresql_where_the_network_is_restricted() {
    let Some(helm) = Helm::found() else { return };
    assert!(!helm.rendered("").has("NetworkPolicy"));
    let objects = helm.rendered("networkPolicy: {enabled: true, egress: {enabled: true}}");
    let policy = objects.get("NetworkPolicy", "test-hyperfleet-api-postgresql");
    let from = &policy["spec"]["ingress"][0]["from"][0]["podSelector"];
    assert_eq!(from, &objects.deployment()["spec"]["selector"]);
    let api = objects.get("NetworkPolicy", "test-hyperfleet-api");
    assert_eq!(api["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
}

#[test]
fn a_network_policy_lets_pods_reach_dns_on_openshift() {
    let Some(helm) = Helm::found() else { return };
    let objects = helm.rendered("networkPolicy: {enabled: true, egress: {enabled: true}}");
    let policy = objects.get("NetworkPolicy", "test-hyperfleet-api");
    let dns = &policy["spec"]["egress"][0];
    assert!(dns["to"].is_null(), "{dns}");
    // The pods of OpenShift's DNS listen on 5353.
    for port in [53, 5353] {
        for protocol in ["UDP", "TCP"] {
            let expected = json!({"port": port, "protocol": protocol});
            let ports = dns["ports"].as_array().unwrap();
            assert!(ports.contains(&expected), "{expected} in {dns}");
        }
    }
}

#[test]
fn a_network_policy_opens_the_port_of_the_database() {
    let Some(helm) = Helm::found() else { return };
    let policy = "networkPolicy: {enabled: true, egress: {enabled: true, ports: [443]}}";
    let ports = |values: &str| {
        let objects = helm.rendered(&format!("{EXTERNAL}{values}\n{policy}"));
        objects.get("NetworkPolicy", "test-hyperfleet-api")["spec"]["egress"][1]["ports"].clone()
    };
    let tcp = |port: u16| json!({"port": port, "protocol": "TCP"});
    assert_eq!(ports(""), json!([tcp(5432), tcp(443)]));
    let other = ports("config: {database: {port: 6432}}");
    assert_eq!(other, json!([tcp(6432), tcp(443)]));
    // The API server's pods are behind the Service that the issuer names.
    let issuer = "{issuer_url: https://kubernetes.default.svc, jwk_cert_url: https://kubernetes.default.svc/openid/v1/jwks}";
    let cluster = ports(&format!(
        "config: {{server: {{jwt: {{enabled: true, configs: [{issuer}]}}}}}}"
    ));
    assert_eq!(cluster, json!([tcp(5432), tcp(6443), tcp(443)]));
}

#[test]
fn a_network_policy_without_further_ports_opens_none() {
    let Some(helm) = Helm::found() else { return };
    let values = "networkPolicy: {enabled: true, egress: {enabled: true, ports: []}}";
    let objects = helm.rendered(values);
    let policy = objects.get("NetworkPolicy", "test-hyperfleet-api");
    let rules = policy["spec"]["egress"].as_array().unwrap();
    assert!(
        rules.iter().all(|rule| rule["ports"].is_array()),
        "{rules:?}"
    );
}
