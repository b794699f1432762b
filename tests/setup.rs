//! What `scripts/setup` says of programs that are missing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// Programs that are as good as there: `id` says that setup is not root, so that it installs nothing.
const STAND_INS: [&str; 5] = ["cc", "setpriv", "curl", "jq", "id"];

#[test]
fn without_etcd_setup_says_so_and_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    for name in STAND_INS {
        let file = folder.path().join(name);
        fs::write(&file, "#!/bin/sh\necho 1000\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let setup = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/setup");
    let output = Command::new(setup)
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env("HYPERFLEET_ETCD", "/nowhere/etcd")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("setup: etcd is missing"), "{said}");
    assert!(output.status.success(), "{said}");
}
