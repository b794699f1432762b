//! Starts and stops a private PostgreSQL.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::binaries;
use super::ended::PostgresFailed;

/// Timeout of a start (with recovery after a crash) and of a stop.
const PATIENCE: Duration = Duration::from_mins(1);
/// Longest path of a Unix socket, in bytes.
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// Marks a folder as one of ours.
const MARKER: &str = "hyperfleet-postgres";
/// Locked while one of our processes uses the folder.
const LOCK: &str = "lock";
/// Users for the server when we are root, which PostgreSQL refuses.
const USERS: [&str; 2] = ["postgres", "nobody"];

/// How durable the data is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Data survives a crash.
    Persistent,
    /// Data is removed with the server, and never synced to disk.
    ThrownAway,
}

/// A running private PostgreSQL. It ends with this process in every case.
#[derive(Debug)]
pub struct PrivatePostgres {
    child: Child,
    folder: PathBuf,
    socket: PathBuf,
    durability: Durability,
    /// Held as long as we use the folder, released by the kernel in every case.
    _lock: FolderLock,
}

impl PrivatePostgres {
    /// Starts a server with its data in `folder`, which is created if necessary, and waits until it answers.
    ///
    /// The server ends when the calling *thread* does: call this from one that lives as long as the server
    /// should.
    ///
    /// # Errors
    /// What is missing and how to install it; that the folder is in use; or [`PostgresFailed`].
    pub fn start(folder: &Path, durability: Durability) -> anyhow::Result<Self> {
        Self::start_with(folder, durability, &[])
    }

    /// The same with settings of PostgreSQL, each as `name=value`. They take precedence.
    ///
    /// # Errors
    /// Those of [`PrivatePostgres::start`].
    pub fn start_with(
        folder: &Path,
        durability: Durability,
        settings: &[String],
    ) -> anyhow::Result<Self> {
        Self::start_as(folder, durability, settings, |_| {})
    }

    /// The same without settings. Calls `announce` with the folder when it is claimed, before the server starts.
    ///
    /// # Errors
    /// Those of [`PrivatePostgres::start`].
    pub fn start_announced(
        folder: &Path,
        durability: Durability,
        announce: impl FnOnce(&Path),
    ) -> anyhow::Result<Self> {
        Self::start_as(folder, durability, &[], announce)
    }

    fn start_as(
        folder: &Path,
        durability: Durability,
        settings: &[String],
        announce: impl FnOnce(&Path),
    ) -> anyhow::Result<Self> {
        let user = server_user()?;
        let folder = claim(folder, user.as_ref()).with_context(|| {
            format!(
                "cannot keep data in {}: choose another folder with --data-dir",
                folder.display()
            )
        })?;
        let data = folder.join("data");
        let programs = binaries::find(&data)?;
        let lock = lock(&folder)?;
        announce(&folder);
        wait_for_predecessor(&data);
        let place = Place {
            programs,
            folder,
            user,
        };
        if !data.exists() {
            place.make_cluster(&data)?;
        }
        let socket = place.socket_folder()?;
        let child = place.spawn(&data, &socket, durability, settings)?;
        let mut server = Self {
            child,
            folder: place.folder,
            socket,
            durability,
            _lock: lock,
        };
        server.wait_until_ready(&data)?;
        Ok(server)
    }

    /// The URL of one of its databases.
    pub fn url(&self, database: &str) -> String {
        let socket = self.socket.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@localhost/{database}?host={socket}")
    }

    /// Why it has ended, if it has.
    pub fn ended(&mut self) -> Option<PostgresFailed> {
        let has_ended = !matches!(self.child.try_wait(), Ok(None));
        has_ended.then(|| {
            let what = "the private PostgreSQL has ended; start again to recover its data";
            self.failed(what.to_owned())
        })
    }

    fn failed(&self, what: String) -> PostgresFailed {
        PostgresFailed::read(what, self.folder.join("log"))
    }

    pub fn stop(mut self) -> anyhow::Result<()> {
        self.interrupt();
        let ended = wait_for(PATIENCE, || Ok(self.child.try_wait()?))?;
        let late = || format!("PostgreSQL did not stop within {} s", PATIENCE.as_secs());
        ended.map(drop).with_context(late)
    }

    fn interrupt(&self) {
        let signal = match self.durability {
            Durability::Persistent => Signal::INT,  // a fast shutdown
            Durability::ThrownAway => Signal::TERM, // to the shell that cleans up
        };
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// The server writes its state on the last line of its pid file.
    fn wait_until_ready(&mut self, data: &Path) -> anyhow::Result<()> {
        let ready = wait_for(PATIENCE, || {
            let file = pid_file(data);
            let state = file.lines().last().unwrap_or_default().trim();
            if matches!(state, "ready" | "standby") && self.is_ours(&file) {
                return Ok(Some(()));
            }
            match self.child.try_wait()? {
                Some(status) => {
                    bail!(self.failed(format!("PostgreSQL ended immediately ({status})")))
                }
                None => Ok(None),
            }
        })?;
        ready.with_context(|| {
            let seconds = PATIENCE.as_secs();
            self.failed(format!("PostgreSQL was not ready after {seconds} s"))
        })
    }

    /// Whether a pid file belongs to the server that was started here.
    fn is_ours(&self, pid_file: &str) -> bool {
        match self.durability {
            Durability::Persistent => pid_file.lines().next() == Some(&self.child.id().to_string()),
            // The child is the shell, and the folder a fresh one.
            Durability::ThrownAway => true,
        }
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        self.interrupt();
        let _ = self.child.wait();
        if self.socket != self.folder {
            let _ = fs::remove_dir_all(&self.socket);
        }
    }
}

/// The folder and the user of a server.
struct Place {
    programs: PathBuf,
    folder: PathBuf,
    user: Option<User>,
}

struct User {
    name: &'static str,
    uid: u32,
    gid: u32,
}

impl Place {
    /// A server program run as the server's user. The kernel ends it with this thread.
    fn command(&self, program: &str, on_our_death: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", on_our_death]);
        if let Some(user) = &self.user {
            let gid = user.gid.to_string();
            command.args(["--reuid", user.name, "--regid", &gid, "--clear-groups"]);
        }
        command.arg("--").arg(program);
        command
            .current_dir(&self.folder)
            .env_clear()
            .envs([
                ("PATH", "/usr/bin:/bin"),
                ("LC_ALL", "C.UTF-8"),
                ("TZ", "UTC"),
            ])
            .stdin(Stdio::null())
            // Ctrl-C is for us: we stop the server after completing requests in progress.
            .process_group(0);
        command
    }

    fn program(&self, name: &str) -> String {
        self.programs.join(name).display().to_string()
    }

    fn make_cluster(&self, data: &Path) -> anyhow::Result<()> {
        // Created under another name and renamed, so that it is never partial.
        let unfinished = self.folder.join("data.new");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        let mut initdb = self.command(&self.program("initdb"), "KILL");
        initdb.arg("-D").arg(&unfinished);
        initdb.args("-U postgres -A trust -E UTF8 --locale=C -N".split(' '));
        let output = initdb
            .output()
            .context("cannot run setpriv (package util-linux)")?;
        if !output.status.success() {
            bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(fs::rename(unfinished, data)?)
    }

    /// The folder itself, unless its path is too long for a socket.
    fn socket_folder(&self) -> anyhow::Result<PathBuf> {
        let socket = self.folder.join(".s.PGSQL.5432");
        if socket.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
            return Ok(self.folder.clone());
        }
        let short = std::env::temp_dir().join(format!("hyperfleet-{}", std::process::id()));
        fs::create_dir_all(&short)?;
        give_to(&short, self.user.as_ref())?;
        Ok(short)
    }

    fn spawn(
        &self,
        data: &Path,
        socket: &Path,
        durability: Durability,
        more: &[String],
    ) -> anyhow::Result<Child> {
        let postgres = self.program("postgres");
        let (mut command, sync) = match durability {
            Durability::Persistent => (self.command(&postgres, "INT"), "on"),
            Durability::ThrownAway => {
                let mut shell = self.command("sh", "TERM");
                // Removes the data, whether the server or its owner ends first.
                shell.args(["-c", THROW_AWAY]);
                shell.arg(&self.folder).arg(&postgres);
                (shell, "off")
            }
        };
        command.arg("-D").arg(data).arg("-k").arg(socket);
        let settings = [
            "listen_addresses=",
            "unix_socket_permissions=0700",
            "max_connections=200",
            &format!("fsync={sync}"),
            &format!("synchronous_commit={sync}"),
            &format!("full_page_writes={sync}"),
        ];
        for setting in settings.into_iter().chain(more.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        let log = File::create(self.folder.join("log"))?;
        command.stdout(Stdio::null()).stderr(log);
        command
            .spawn()
            .context("cannot run setpriv (package util-linux)")
    }
}

/// `$0` is the folder, the rest the server's command line.
const THROW_AWAY: &str = r#"
trap 'kill -QUIT $server 2>/dev/null' TERM INT
"$@" & server=$!
wait $server; wait $server
cd / && rm -rf "$0"/* "$0"/.s.PGSQL* && rmdir "$0" 2>/dev/null
exit 0
"#;

/// The user of the server: ourselves, or an unprivileged user if we are root.
fn server_user() -> anyhow::Result<Option<User>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let passwd = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
    let ids = |name: &str| {
        let mut lines = passwd
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>());
        let line = lines.find(|fields| fields.len() > 3 && fields[0] == name)?;
        Some((line[2].parse().ok()?, line[3].parse().ok()?))
    };
    let mut users = USERS.iter().filter_map(|&name| {
        let (uid, gid) = ids(name)?;
        Some(User { name, uid, gid })
    });
    let user = users.next();
    user.map(Some)
        .with_context(|| format!("root, but none of the users {USERS:?} exists"))
}

/// Marks the folder as ours: a new or empty one, or one that was ours before. Any other folder is left
/// unchanged.
fn claim(folder: &Path, user: Option<&User>) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let folder = folder.canonicalize()?;
    let marker = folder.join(MARKER);
    if !marker.exists() {
        for entry in fs::read_dir(&folder)? {
            let name = entry?.file_name();
            // Created by another process of this program that starts at the same time.
            if name != MARKER && name != LOCK {
                bail!("it holds other files, such as {}", name.display());
            }
        }
        File::create(marker)?;
    }
    give_to(&folder, user)?;
    Ok(folder)
}

/// Gives the server, and no other user, access to a folder.
fn give_to(folder: &Path, user: Option<&User>) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    user.map_or(Ok(()), |user| chown(folder, Some(user.uid), Some(user.gid)))
}

/// A locked folder.
#[derive(Debug)]
struct FolderLock(File);

impl Drop for FolderLock {
    /// Closing the file would not do: a child that another thread has just started has it open, too, until it runs its
    /// program.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Locks the folder until the result is dropped.
fn lock(folder: &Path) -> anyhow::Result<FolderLock> {
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join(LOCK))
        .with_context(|| format!("cannot lock {}", folder.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(FolderLock(lock)),
        Err(TryLockError::WouldBlock) => bail!(
            "{} is in use by another process of this program: stop that one, or choose another \
             folder with --data-dir",
            folder.display()
        ),
        Err(TryLockError::Error(error)) => Err(error).context("cannot lock the data folder"),
    }
}

/// Waits for an earlier server that may still be shutting down after its owner was killed.
fn wait_for_predecessor(data: &Path) {
    // PostgreSQL itself tells a stale file from a running server.
    let _ = wait_for(Duration::from_secs(10), || {
        let file = pid_file(data);
        let first = file.lines().next().and_then(|pid| pid.trim().parse().ok());
        Ok((!first.is_some_and(is_postgres)).then_some(()))
    });
}

/// Repeats a check until it has a result; `None` after `patience`.
fn wait_for<T>(
    patience: Duration,
    mut ask: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Option<T>> {
    let since = Instant::now();
    loop {
        let answer = ask()?;
        if answer.is_some() || since.elapsed() > patience {
            return Ok(answer);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The pid file of a server in this folder; empty without one.
fn pid_file(data: &Path) -> String {
    fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default()
}

/// Whether that process is a server, and not a later one with the same number.
fn is_postgres(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    // A zombie has no memory.
    let memory = fs::read_to_string(format!("/proc/{pid}/statm"));
    name.is_ok_and(|name| name.trim() == "postgres")
        && memory.is_ok_and(|memory| !memory.starts_with("0 "))
}
