//! A real pooler (`PgBouncer`) between the service and its database.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::program::{FREE_PORTS, Folder, Program};
use super::until;
use crate::support::TestDatabase;

/// A running pooler on a socket of its own. Ends with it.
struct Pooler {
    child: Child,
    folder: Folder,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the pooler is installed. A machine without it may skip the test; CI may not.
fn is_installed() -> bool {
    let found = Path::new("/usr/sbin/pgbouncer").is_file();
    if !found {
        let required = ["CI", "PGBOUNCER_REQUIRED"].map(std::env::var_os);
        assert!(
            required.iter().all(Option::is_none),
            "pgbouncer is required here"
        );
        println!("SKIPPED: pgbouncer is missing: apt-get install pgbouncer");
    }
    found
}

impl Pooler {
    async fn start(database: &TestDatabase, mode: &str) -> Self {
        let folder = Folder::new();
        let path = folder.path();
        let options = database.options();
        let socket = options.get_socket().unwrap();
        let (owner, host) = (std::fs::metadata(socket).unwrap(), socket.display());
        let port = options.get_port();
        let settings = format!(
            "[databases]\n* = host={host} port={port} user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n\
             unix_socket_dir = {}\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 60\n\
             ignore_startup_parameters = options,extra_float_digits\n",
            path.display()
        );
        let file = path.join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        let mut command = Command::new("setpriv");
        if rustix::process::geteuid().is_root() {
            // It refuses to run as root, and the server's socket is for its own user.
            chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
            let user = [("--reuid", owner.uid()), ("--regid", owner.gid())];
            command.args(user.map(|(flag, id)| format!("{flag}={id}")));
            command.arg("--clear-groups");
        }
        command.arg("/usr/sbin/pgbouncer").arg(&file);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let pooler = Self {
            child: child.unwrap(),
            folder,
        };
        let socket = pooler.folder.path().join(".s.PGSQL.6432");
        until("the pooler listens", async || socket.exists()).await;
        pooler
    }

    /// The database behind it.
    fn database(&self, behind: &TestDatabase) -> TestDatabase {
        let options = behind.options().socket(self.folder.path()).port(6432);
        TestDatabase::at(options)
    }
}

#[tokio::test]
async fn a_pooler_of_transactions_is_refused_at_the_start() {
    if !is_installed() {
        return;
    }
    let database = TestDatabase::create().await;
    let pooler = Pooler::start(&database, "transaction").await;
    let behind = pooler.database(&database);
    // Sessions that an earlier program has used have its prepared statements.
    for _ in 0..2 {
        let mut program = Program::serve(&behind);
        assert!(!program.ended().await.success());
        let said = program.output();
        assert!(said.contains("pool_mode = session"), "{said}");
        let (code, said) = Program::run(&behind, &["migrate"]).await;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("pool_mode = session"), "{said}");
    }

    let pooler = Pooler::start(&database, "session").await;
    let behind = pooler.database(&database);
    let mut program = Program::serve_with(&behind, FREE_PORTS, &[]);
    let api = program.serving(behind).await;
    api.cluster("pooled").await;
}
