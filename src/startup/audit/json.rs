//! The report of a verification as JSON.

use serde::Serialize;

use super::AuditReport;
use crate::domain::Tenancy;
use crate::domain::audit::{TrailFault, VerifiedChain};
use crate::domain::moment::rfc3339;

#[derive(Serialize)]
struct ReportView<'a> {
    chains: Vec<ChainView<'a>>,
    unsealed: TailView,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<RemovedView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<ComparedView>,
    fault_count: u64,
    faults: Vec<FaultView<'a>>,
}

#[derive(Serialize)]
struct ChainView<'a> {
    tenancy: &'a Tenancy,
    first_number: i64,
    first_time: String,
    last_number: i64,
    last_time: String,
    entries: u64,
}

#[derive(Serialize)]
struct TailView {
    entries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_time: Option<String>,
}

/// What retention has removed.
#[derive(Serialize)]
struct RemovedView {
    newest_time: String,
    entries_left: i64,
}

#[derive(Serialize)]
struct ComparedView {
    seals: u64,
    expired: u64,
}

#[derive(Serialize)]
struct FaultView<'a> {
    kind: &'static str,
    message: String,
    tenancy: &'a Tenancy,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<i64>,
    begin: String,
    end: String,
}

pub(super) fn json(report: &AuditReport) -> anyhow::Result<String> {
    let trail = &report.trail;
    let bounds = report.bounds.as_ref();
    let removed = bounds.and_then(|bounds| {
        Some(RemovedView {
            newest_time: rfc3339(bounds.removed_newest_at?),
            entries_left: bounds.removed_entries,
        })
    });
    let view = ReportView {
        chains: trail.chains.iter().map(chain).collect(),
        unsealed: TailView {
            entries: trail.unsealed.count,
            oldest_time: trail.unsealed.oldest_at.map(rfc3339),
        },
        sealed: bounds.map(|bounds| bounds.sealed.to_string()),
        removed,
        compared: report
            .compared
            .map(|(seals, expired)| ComparedView { seals, expired }),
        fault_count: trail.faults.total,
        faults: trail.faults.first.iter().map(fault).collect(),
    };
    Ok(serde_json::to_string_pretty(&view)? + "\n")
}

fn chain<'a>((tenancy, chain): (&'a Tenancy, &'a VerifiedChain)) -> ChainView<'a> {
    ChainView {
        tenancy,
        first_number: chain.first.number,
        first_time: rfc3339(chain.first.sealed_at),
        last_number: chain.last.number,
        last_time: rfc3339(chain.last.sealed_at),
        entries: chain.entries,
    }
}

fn fault(fault: &TrailFault) -> FaultView<'_> {
    FaultView {
        kind: fault.kind.name(),
        message: fault.kind.to_string(),
        tenancy: &fault.tenancy,
        number: fault.number,
        begin: fault.begin.to_string(),
        end: fault.end.to_string(),
    }
}
