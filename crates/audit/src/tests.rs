//! ```text
//! lines       exact texts, and that only they are read
//! trees       known roots, and laws of audit paths
//! chains      known hashes, and that every change is found
//! tenants     exports of one tenant
//! removals    what retention may remove, and comparisons with earlier exports
//! reports     the same report as text and as JSON
//! ```

mod chains;
mod lines;
mod removals;
mod reports;
mod tenants;
mod trees;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{
    AuditEntry, AuditReport, ChainVerifier, FaultKind, Line, Link, Tenancy, TrailPosition, seal,
};

/// Seconds after the begin of 2026.
fn at(second: i64) -> DateTime<Utc> {
    let begin: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
    begin + TimeDelta::seconds(second)
}

fn tenancy(org: &str) -> Tenancy {
    let org = Some(org).filter(|org| !org.is_empty());
    org.map(|org| ("org".to_owned(), org.to_owned()))
        .into_iter()
        .collect()
}

fn position(commit_order: i64, sequence: i64) -> TrailPosition {
    TrailPosition {
        era: 0,
        commit_order,
        sequence,
    }
}

fn entry(org: &str, commit_order: i64, sequence: i64, second: i64) -> AuditEntry {
    AuditEntry {
        action: "create".to_owned(),
        actor: "ann".to_owned(),
        generation_after: Some(1),
        generation_before: None,
        kind: "Cluster".to_owned(),
        name: "a".to_owned(),
        position: position(commit_order, sequence),
        reason: None,
        request_id: "request".to_owned(),
        resource_id: "00000000-0000-0000-0000-000000000001".to_owned(),
        sequence,
        tenancy: tenancy(org),
        at: at(second),
    }
}

/// An export: each batch is sealed together.
fn sealed(batches: &[Vec<AuditEntry>]) -> Vec<Line> {
    let mut last: Option<Link> = None;
    let mut lines = Vec::new();
    for batch in batches {
        let mut entries = batch.iter().peekable();
        for link in seal(batch, last.as_ref(), at(1_000)) {
            let is_in_pass = |entry: &&AuditEntry| entry.position <= link.pass.end;
            while let Some(entry) = entries.next_if(is_in_pass) {
                lines.push(Line::Entry(entry.clone()));
            }
            lines.push(Line::Link(link.clone()));
            last = Some(link);
        }
    }
    lines
}

fn verified(lines: &[Line]) -> AuditReport {
    let mut verifier = ChainVerifier::default();
    for line in lines {
        verifier.take(Some(line.clone()));
    }
    verifier.finish()
}

/// Kinds of the faults, with the numbers of their passes.
fn faults(report: &AuditReport) -> Vec<(FaultKind, Option<i64>)> {
    let faults = report.faults.iter();
    faults.map(|fault| (fault.kind, fault.number)).collect()
}

/// Entries of few tenants, in batches.
fn batches() -> impl Strategy<Value = Vec<Vec<AuditEntry>>> {
    let one = ("[a-c]?", 0..3_i64, -200_000..200_000_i64);
    vec(vec(one, 1..9), 1..6).prop_map(|batches| {
        let (mut order, mut sequence) = (1, 0);
        let mut next = |(org, step, second): (String, i64, i64)| {
            order += step;
            sequence += 1;
            entry(&org, order, sequence, second)
        };
        let batches = batches.into_iter();
        batches
            .map(|batch| batch.into_iter().map(&mut next).collect())
            .collect()
    })
}
