//! Defines the command line of `import`.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

use std::convert::Infallible;

use super::Secret;

#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct ImportOptions {
    /// URL of the older service's database, postgres://USER@HOST:PORT/NAME, without a password, which
    /// comes from PGPASSWORD or ~/.pgpass. Put a URL with a password in HYPERFLEET_IMPORT_FROM, or in
    /// a file that HYPERFLEET_IMPORT_FROM_FILE names
    #[arg(long, value_name = "URL", value_parser = secret)]
    pub from: Option<Secret>,
    /// Write nothing; report what an import would do, and which rows it would refuse
    #[arg(long)]
    pub dry_run: bool,
    /// Number of resources in one transaction
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub batch: u16,
    /// What to compare at the end, by a digest of each resource in both databases
    #[arg(long, value_name = "SCOPE", default_value = "all")]
    pub verify: VerifyArg,
    /// Read everything again, not only what was written since the last import
    #[arg(long)]
    pub full: bool,
    /// Import into a database that has other resources, without changing them
    #[arg(long)]
    pub beside_others: bool,
    /// Import a source that may be older than the last import, such as a restored backup: reads
    /// everything, and removes imported resources that the source lacks
    #[arg(long)]
    pub allow_older_source: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum VerifyArg {
    /// Every imported resource
    All,
    /// The resources that this import has written
    Changed,
    /// Nothing
    None,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature of a parser of values"
)]
fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(text.to_owned().into())
}
