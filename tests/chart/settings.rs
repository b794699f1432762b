//! The program accepts every file of settings that the chart writes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::helm::{Helm, Objects};
use crate::{CHART, cases};

/// Where files are mounted; the test has them below a folder of its own.
const MOUNTED: &str = "/etc/";

#[test]
fn the_program_accepts_the_settings_of_every_case() {
    let Some(helm) = Helm::found() else { return };
    let mut count = 0;
    for case in cases() {
        let objects = helm.case("test", &case);
        let Some(config) = objects.config() else {
            continue;
        };
        count += 1;
        let output = checked(&objects, config);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{}:\n{config}\n{said}",
            case.display()
        );
    }
    assert!(count > 10, "{count}");
}

#[test]
fn settings_mean_what_the_values_say() {
    let Some(helm) = Helm::found() else { return };
    let values = |case: &str| {
        let objects = helm.case("test", format!("{CHART}/ci/{case}-values.yaml").as_ref());
        let output = checked(&objects, objects.config().unwrap());
        let entries: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let pairs = entries.into_iter().map(|entry| {
            let key = entry["key"].as_str().unwrap().to_owned();
            (key, entry["value"].to_string().replace('"', ""))
        });
        pairs.collect::<BTreeMap<_, _>>()
    };
    for (case, key, expected) in [
        // Pollers of the older service can't ask for what is being deleted.
        ("default", "lists.include_deleted", "true"),
        ("default", "database.host", "test-hyperfleet-api-postgresql"),
        ("default", "server.host", "0.0.0.0"),
        ("default", "server.jwt.enabled", "false"),
        ("jwt", "server.jwt.enabled", "true"),
        ("external-database", "database.host", "db.example.com"),
        ("external-database", "database.ssl.mode", "verify-full"),
        ("tenancy", "server.tenant.enforce", "true"),
        ("fleet", "fleet.enabled", "true"),
        ("fleet", "fleet.etcd.key_prefix", "/fleet/test/"),
        ("fleet", "fleet.adapter.removal_limit.percent", "20"),
        (
            "monitoring",
            "metrics.reconciliation_stuck_threshold",
            "20m",
        ),
        ("no-database", "database.name", "fleet"),
        ("scaling", "server.limits.rate.per_second", "50"),
        ("older", "database.pool.max_connections", "50"),
        ("older", "server.timeouts.write", "1m"),
    ] {
        assert_eq!(values(case)[key], expected, "{case}: {key}");
    }
}

/// `config check` in the surroundings that the chart makes: the variables of the container, files where it mounts them.
fn checked(objects: &Objects, config: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let root = format!("{}/etc/", folder.path().display());
    let config = config.replace(MOUNTED, &root);
    for path in config
        .split_whitespace()
        .filter(|word| word.starts_with(&root))
    {
        write(Path::new(path), objects);
    }
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, config).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
    program.args(["config", "check", "-o", "json"]).env_clear();
    for variable in objects.container()["env"].as_array().unwrap() {
        let name = variable["name"].as_str().unwrap();
        let key = variable["valueFrom"]["secretKeyRef"]["key"].as_str();
        let value = variable["value"].as_str().or(key.map(of_secret));
        program.env(name, value.unwrap_or_default());
    }
    program
        .env("HYPERFLEET_CONFIG", file)
        .current_dir(folder.path());
    program.output().unwrap()
}

fn of_secret(key: &str) -> &'static str {
    match key {
        "db.host" => "db.example.com",
        "db.port" => "5432",
        _ => "hyperfleet",
    }
}

/// A file as it would be mounted under that name.
fn write(path: &Path, objects: &Objects) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let folder = path.parent().unwrap();
    let signed = rcgen::generate_simple_self_signed(["hyperfleet-api".to_owned()]).unwrap();
    match path.file_name().unwrap().to_str().unwrap() {
        "tls.crt" | "tls.key" => {
            // Both at once: they have to fit.
            if !path.exists() {
                std::fs::write(folder.join("tls.crt"), signed.cert.pem()).unwrap();
                std::fs::write(folder.join("tls.key"), signed.signing_key.serialize_pem()).unwrap();
            }
        }
        "ca.crt" => std::fs::write(path, signed.cert.pem()).unwrap(),
        "password" => std::fs::write(path, "secret").unwrap(),
        "jwks.json" => std::fs::write(path, key_set()).unwrap(),
        "openapi.yaml" => {
            let map = objects.get("ConfigMap", "test-hyperfleet-api-validation-schema");
            std::fs::write(path, map["data"]["openapi.yaml"].as_str().unwrap()).unwrap();
        }
        other => panic!("what is {other}?"),
    }
}

/// A key set with one key, the example of RFC 8037, appendix A.2.
fn key_set() -> String {
    let key = serde_json::json!({"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    serde_json::json!({"keys": [key]}).to_string()
}
