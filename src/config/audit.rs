//! Defines the command line of `audit`.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use hyperfleet_audit::Hash;

use super::SettingsArgs;
use hyperfleet_domain::moment;
use hyperfleet_server_kit::settings::OutputFormat;

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check that no entry of the audit trail was changed, removed or inserted
    ///
    /// Reads every entry and every pass of sealing in one read-only transaction, and computes the
    /// hashes again. What retention has removed must be older than audit.retention, which the
    /// settings file or HYPERFLEET_AUDIT_RETENTION gives; without it, older than an hour. Compare
    /// with an earlier export, or with a hash that an earlier report printed, stored elsewhere, to
    /// find a trail that was rewritten together with its hashes, or whose newest part was removed.
    /// Exit status: 0 no faults, 3 faults were found, 1 the trail could not be read. See
    /// docs/guides/audit.md.
    Verify(Box<AuditVerifyArgs>),
    /// Print the audit trail with its hash chain, one JSON document in a line
    ///
    /// Prints the entries of each pass, then the pass with its hash. Entries at the end may not be
    /// sealed yet. The result can be verified without a database: audit verify --file FILE.
    Export(Box<AuditExportArgs>),
}

#[derive(Debug, clap::Args)]
pub struct AuditVerifyArgs {
    #[command(flatten)]
    pub range: AuditRangeArgs,
    /// Check that every pass of an earlier export is still there, unless retention has removed it
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// Check that a pass still has this hash, which an earlier report printed
    #[arg(long, value_name = "HASH", value_parser = hash, conflicts_with_all = ["since", "until"])]
    pub hash: Option<Hash>,
    /// Verify an export, without a database
    #[arg(long, value_name = "FILE", conflicts_with_all = ["since", "until", "against"])]
    pub file: Option<PathBuf>,
    /// Output format; with json there is no progress on standard error
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Debug, clap::Args)]
pub struct AuditRangeArgs {
    /// Begin with the first pass that has an entry of this time (RFC 3339) or later
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Option<DateTime<Utc>>,
    /// End with the first pass that has an entry of this time (RFC 3339) or later
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until: Option<DateTime<Utc>>,
}

#[derive(Debug, clap::Args)]
pub struct AuditExportArgs {
    #[command(flatten)]
    pub range: AuditRangeArgs,
    /// Print only the entries of this tenant, with proofs. Give the flag once for each dimension
    #[arg(long, value_name = "KEY=VALUE", value_parser = dimension)]
    pub tenant: Vec<(String, String)>,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

fn hash(text: &str) -> Result<Hash, &'static str> {
    Hash::parse(text).ok_or("expected 64 hexadecimal digits")
}

fn time(text: &str) -> Result<DateTime<Utc>, String> {
    moment::parse(text).ok_or_else(|| "expected a time such as 2026-01-01T00:00:00Z".to_owned())
}

fn dimension(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or("expected key=value, such as org=acme")?;
    Ok((key.to_owned(), value.to_owned()))
}
