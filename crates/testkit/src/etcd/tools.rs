//! etcd's own tools, applied to a [`TestEtcd`].

use std::path::{Path, PathBuf};
use std::process::Command;

use super::TestEtcd;

const NO_TOOL: &str = "etcdctl, beside etcd or from the package etcd-client";

impl TestEtcd {
    /// Saves a snapshot for [`restore`](Self::restore).
    pub fn save(&self) -> PathBuf {
        let snapshot = self.folder.path().join("snapshot");
        self.etcdctl(&["snapshot", "save", &snapshot.display().to_string()]);
        snapshot
    }

    /// Starts again on a snapshot, and waits until it answers. With a token it is another cluster, otherwise
    /// the same one.
    pub async fn restore(&mut self, snapshot: &Path, token: Option<&str>) {
        self.lose_data();
        let (member, peer) = (self.server.member(), self.server.peer_url());
        let name = member.split('=').next().unwrap_or_default();
        let (snapshot, data) = (snapshot.display().to_string(), self.server.data());
        // The tool for files came with etcd 3.5, and only it restores since 3.6.
        let tool = self.tool("etcdutl").or_else(|| self.tool("etcdctl"));
        let mut command = Command::new(tool.expect(NO_TOOL));
        command
            .args(["snapshot", "restore", &snapshot, "--name", name])
            .args(["--data-dir", &data.display().to_string()])
            .args(["--initial-cluster", &member])
            .args(["--initial-advertise-peer-urls", &peer]);
        if let Some(token) = token {
            command.args(["--initial-cluster-token", token]);
        }
        finish(command);
        self.resume().await;
    }

    /// The output of `etcdctl` for this server.
    pub fn etcdctl(&self, arguments: &[&str]) -> String {
        let program = self.tool("etcdctl").expect(NO_TOOL);
        let mut words = self.server.within.iter().chain([&program]);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .args(["--endpoints", &self.url()])
            .args(arguments);
        finish(command)
    }

    /// Another program of etcd: the one beside the server's, or the one in the path.
    fn tool(&self, name: &str) -> Option<String> {
        let beside = self.server.program().with_file_name(name);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).map(|folder| folder.join(name));
        let mut found = std::iter::once(beside).chain(folders);
        let found = found.find(|program| program.is_file())?;
        Some(found.display().to_string())
    }
}

/// Runs a command, which must succeed; returns its output.
fn finish(mut command: Command) -> String {
    let output = command.env("ETCDCTL_API", "3").output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
