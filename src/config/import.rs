//! Defines the command line of `import`.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

use std::convert::Infallible;

use super::Secret;

#[derive(Debug, clap::Args)]
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
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature of a parser of values"
)]
fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(text.to_owned().into())
}
