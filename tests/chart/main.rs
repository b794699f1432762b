//! The Helm chart: what it renders, from every file of values in `charts/hyperfleet/ci`, and what it refuses.
//!
//! helm and kubeconform are those of `scripts/helm-programs`. A machine without them may skip these tests; CI may not.
#![allow(clippy::unwrap_used, reason = "a test that fails, panics")]

mod cluster;
mod defects;
mod helm;
mod monitoring;
mod notes;
mod nulls;
mod pods;
mod refusals;
mod schemas;
mod settings;
mod subchart;
mod upgrade;
mod values;

use std::path::PathBuf;

use crate::helm::Helm;

const CHART: &str = "charts/hyperfleet";

/// The files of values that the chart is tested with.
fn cases() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(format!("{CHART}/ci")).unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    files
}

#[test]
fn lint_finds_nothing_in_any_case() {
    let Some(helm) = Helm::found() else { return };
    let mut args = vec!["lint".to_owned(), "--strict".to_owned(), CHART.to_owned()];
    for case in cases() {
        args.push(format!("--values={}", case.display()));
        let output = helm.command(&args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {said}", case.display());
        args.pop();
    }
}
