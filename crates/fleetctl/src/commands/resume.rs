//! `resume`: lets halted agents continue.

use std::process::ExitCode;

use anyhow::Context as _;

use crate::output;
use crate::session::Session;

pub(super) async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let client = session.client().await?;
    client.resume().await.context("Error resuming agents")?;
    output::line("Agents that have halted continue")?;
    Ok(ExitCode::SUCCESS)
}
