//! The report for people.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::finding::{ImportFinding, ImportReason};
use super::report::{Difference, ImportReport};

/// Findings that are named below one reason at most.
const NAMED_MAX: usize = 20;

impl Display for ImportReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.fmt_kinds(f)?;
        if self.dry_run {
            f.write_str("A dry run, nothing is written: ")?;
        }
        writeln!(
            f,
            "{} added, {} changed, {} removed, {} unchanged; {} reports, {} references.",
            self.added, self.changed, self.removed, self.unchanged, self.reports, self.references
        )?;
        self.fmt_findings(f)?;
        self.fmt_verification(f)?;
        if self.interrupted {
            f.write_str("Stopped before the end: run the same command to continue.\n")?;
        }
        Ok(())
    }
}

impl ImportReport {
    fn fmt_kinds(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let here = ["HERE", "WOULD BE HERE"][usize::from(self.dry_run)];
        let mut rows = vec![["KIND", "SOURCE", here, "REFUSED"].map(str::to_owned)];
        for (kind, tally) in &self.kinds {
            let counts = [tally.source, tally.imported, tally.refused].map(|n| n.to_string());
            let [source, imported, refused] = counts;
            rows.push([kind.clone(), source, imported, refused]);
        }
        let width = rows.iter().map(|[kind, ..]| kind.len()).max().unwrap_or(0);
        for [kind, source, here, refused] in rows {
            writeln!(f, "{kind:width$}  {source:>10}  {here:>13}  {refused:>10}")?;
        }
        Ok(())
    }

    fn fmt_findings(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut by_reason: BTreeMap<_, Vec<&ImportFinding>> = BTreeMap::new();
        for finding in &self.listed {
            by_reason.entry(finding.reason).or_default().push(finding);
        }
        if by_reason.is_empty() {
            f.write_str("Nothing is refused.\n")?;
        }
        for (reason, found) in by_reason {
            let what = match reason {
                ImportReason::Href => "Imported with a difference",
                ImportReason::OrphanReport => "Left behind",
                _ => "Refused",
            };
            let code = reason.code();
            let advice = found.first().map_or("", |finding| finding.advice);
            let count = self.findings.get(code).copied().unwrap_or_default();
            writeln!(f, "\n{what}: {count} ({code})\n  What to do: {advice}")?;
            for finding in found.iter().take(NAMED_MAX) {
                // Texts of the source must not move a terminal's cursor.
                let text = finding.to_string().replace(char::is_control, "\u{fffd}");
                writeln!(f, "  {text}")?;
            }
            if count > NAMED_MAX {
                let (rest, listed) = (count - NAMED_MAX, found.len());
                writeln!(f, "  and {rest} more; -o json lists the first {listed}")?;
            }
        }
        Ok(())
    }

    fn fmt_verification(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let found = &self.verification;
        let what = match self {
            _ if self.interrupted => "Compared so far",
            _ if self.dry_run => "Compared what is imported",
            _ => "Compared everything",
        };
        writeln!(
            f,
            "{what}: {} resources are equal, {} differ.",
            found.equal, found.differing
        )?;
        if found.incomplete > 0 {
            writeln!(
                f,
                "{} resources have refused parts, and are not compared.",
                found.incomplete
            )?;
        }
        for Difference { kind, id, .. } in found.differences.iter().take(NAMED_MAX) {
            writeln!(f, "  {kind} {id}")?;
        }
        if found.differing > 0 {
            f.write_str("  What to do: import again. If they still differ, something else changes what is written here.\n")?;
        }
        let (source, here) = (found.source_digest, found.target_digest);
        writeln!(f, "Digests: {source} in the source, {here} here.")
    }
}

impl Display for ImportFinding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)?;
        if !self.name.is_empty() {
            write!(f, " ({})", self.name)?;
        }
        if let Some(adapter) = &self.adapter {
            write!(f, ", report of {adapter}")?;
        }
        if let (Some(ref_type), Some(target)) = (&self.ref_type, &self.target) {
            write!(f, ", reference {ref_type} to {target}")?;
        }
        write!(f, ": {}", self.message)
    }
}
