//! Ports and programs of this machine.

use std::net::TcpListener;
use std::path::Path;

/// A port that was free a moment ago.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Whether a program is installed on this machine.
pub(super) fn is_there(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| Path::new(&folder).join(program).is_file())
}
