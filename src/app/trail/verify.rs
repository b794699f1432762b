//! Verifies the seals of a range.

use std::collections::BTreeMap;

use super::pages::{EntryPages, PassPages};
use super::{Observe, TrailProgress, TrailRange, TrailReader};
use crate::app::Error;
use crate::domain::audit::{
    EntryRecord, RetentionRule, Seal, TrailFaultKind, TrailVerifier, UnsealedEntries,
    VerifiedRange, VerifiedTrail,
};
use crate::storage::postgres::TrailBounds;

/// Entries between two calls of the observer.
const OBSERVED_EVERY: u64 = 1_000;

/// The result of a verification.
#[derive(Debug, Clone)]
pub struct TrailVerification {
    pub trail: VerifiedTrail,
    pub bounds: TrailBounds,
    /// Seals of an earlier export that were compared, and those of them that retention has removed since.
    pub compared: u64,
    pub expired: u64,
}

impl TrailReader {
    /// Compares all entries and seals of a range, and what retention has removed with the rule of it.
    pub async fn verify(
        &mut self,
        range: TrailRange,
        rule: RetentionRule,
        observe: Observe<'_>,
    ) -> Result<TrailVerification, Error> {
        let passes = self.passes(range).await?;
        let mut range = VerifiedRange {
            begin: Some(passes.begin),
            is_within: !passes.is_from_first,
            ..VerifiedRange::default()
        };
        if passes.is_from_first {
            range.pass_hash = Some(self.removed.last_pass().hash);
            range.heads = self.removed.heads();
        }
        let mut verifier = TrailVerifier::new(range);
        let mut pages = PassPages::new(passes.begin, passes.end);
        let mut entries = EntryPages::new(passes.begin, Some(passes.end));
        let mut read = 0;
        let mut db = self.tx.db();
        loop {
            let seals = pages.next(&mut db).await?;
            let Some(end) = seals.first().map(|seal| seal.end) else {
                break;
            };
            for seal in &seals {
                verifier.expect(seal);
            }
            while let Some(entry) = entries.next_up_to(&mut db, Some(end)).await? {
                let at = entry.entry.origin.at;
                let record = EntryRecord {
                    position: entry.position,
                    at,
                    tenancy: entry.entry.tenancy.clone(),
                };
                verifier.entry(&record, &entry.line());
                read += 1;
                if read % OBSERVED_EVERY == 0 {
                    observe(TrailProgress { entries: read, at });
                }
            }
            for seal in &seals {
                verifier.seal(seal);
            }
        }
        let mut trail = verifier.finish();
        trail.faults.extend(self.removed.faults(rule));
        let bounds = self.bounds.clone();
        if let Some(removed) = bounds.removed {
            let unmarked = db.unmarked_seals_up_to(removed).await?;
            let faults = unmarked
                .iter()
                .map(|seal| TrailFaultKind::Unmarked.of(seal));
            trail.faults.extend(faults);
        }
        trail.unsealed = UnsealedEntries {
            count: u64::try_from(bounds.unsealed).unwrap_or_default(),
            oldest_at: bounds.unsealed_at,
        };
        Ok(TrailVerification {
            trail,
            bounds,
            compared: 0,
            expired: 0,
        })
    }

    /// Compares seals of an earlier export with those that are there. Adds the result to `verification`.
    pub async fn compare(
        &mut self,
        exported: &[Seal],
        rule: RetentionRule,
        verification: &mut TrailVerification,
    ) -> Result<(), Error> {
        let found = self.tx.db().seals_like(exported).await?;
        let found: BTreeMap<_, _> = found
            .iter()
            .map(|seal| ((&seal.tenancy, seal.number), seal))
            .collect();
        let faults = &mut verification.trail.faults;
        for seal in exported {
            verification.compared += 1;
            match found.get(&(&seal.tenancy, seal.number)) {
                Some(other) if *other == seal => {}
                Some(_) => faults.push(TrailFaultKind::Rewritten.of(seal)),
                None => match self.removed.fault_of_missing(seal, rule) {
                    Some(fault) => faults.push(fault),
                    None => verification.expired += 1,
                },
            }
        }
        Ok(())
    }
}
