//! `fd-forward`: connects standard input and output to a unix socket, for tunnels of the older fleetctl.

use std::process::ExitCode;

use anyhow::Context as _;
use tokio::io::{self, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::cli::FdForwardArgs;

pub(super) async fn run(args: &FdForwardArgs) -> anyhow::Result<ExitCode> {
    let path = args.socket.display();
    let stream = UnixStream::connect(&args.socket).await;
    let stream = stream.with_context(|| format!("unable to connect to {path}"))?;
    let (mut from, mut to) = stream.into_split();
    let sent = async {
        io::copy(&mut io::stdin(), &mut to).await?;
        to.shutdown().await
    };
    let received = async {
        let mut output = io::stdout();
        io::copy(&mut from, &mut output).await?;
        output.flush().await
    };
    // The socket's end counts: standard input may stay open for ever.
    tokio::pin!(sent);
    let ended = tokio::select! {
        ended = received => ended,
        Err(error) = &mut sent => Err(error),
    };
    ended.with_context(|| format!("the connection to {path} broke"))?;
    Ok(ExitCode::SUCCESS)
}
