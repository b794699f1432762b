//! A unix socket in the file system: created where no process listens, and removed at a graceful shutdown.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::sockets::BACKLOG;

/// Access for the owner only.
const LOCK_MODE: u32 = 0o600;

/// The file of a socket. It is removed on drop if it is still the same file.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    /// Locked while the process listens, so that no other process replaces the socket as a leftover.
    _lock: File,
}

/// Listens at a path with this mode. Creates the folder if necessary, and replaces the socket of a dead
/// process.
///
/// A file beside the socket, `….lock`, is locked and stays: without it, two processes could both find no
/// listener and replace each other's socket.
///
/// # Errors
/// A process listens there, another file is there, or permission is missing.
pub fn listen(path: &Path, mode: u32) -> anyhow::Result<(UnixListener, SocketFile)> {
    let socket = make(path, mode);
    socket.with_context(|| format!("cannot listen on unix:{}", path.display()))
}

fn make(path: &Path, mode: u32) -> anyhow::Result<(UnixListener, SocketFile)> {
    if let Some(folder) = path.parent() {
        let path = folder.display();
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {path}"))?;
    }
    let lock = locked(path)?;
    remove_left_over(path)?;
    let address = SocketAddrUnix::new(path)?;
    let socket = socket()?;
    rustix::net::bind(&socket, &address)?;
    // Before it listens, the mode is restricted.
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    let file = SocketFile {
        identity: identity(&fs::symlink_metadata(path)?),
        path: path.to_owned(),
        _lock: lock,
    };
    rustix::net::listen(&socket, BACKLOG)?;
    Ok((UnixListener::from(socket), file))
}

fn locked(path: &Path) -> anyhow::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = open_lock(Path::new(&name));
    let file = file.with_context(|| format!("cannot open {}", name.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(in_use()),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Opens the lock file for the owner only: any process that can open it could lock it and keep fleetd from
/// starting. A file with a wider mode from an older version is restricted. Links are not followed.
fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true).mode(LOCK_MODE);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let file = options.open(path)?;
    if file.metadata()?.permissions().mode() & 0o777 != LOCK_MODE {
        file.set_permissions(fs::Permissions::from_mode(LOCK_MODE))?;
    }
    Ok(file)
}

fn in_use() -> anyhow::Error {
    anyhow!(
        "another process listens there: stop it, or set another socket (listen = unix:/path, FLEET_LISTEN)"
    )
}

fn remove_left_over(path: &Path) -> anyhow::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !found.file_type().is_socket() {
        bail!("there is a file that is no socket: remove it, or set another socket");
    }
    if is_living(path)? {
        return Err(in_use());
    }
    fs::remove_file(path)?;
    tracing::info!(path = %path.display(), "socket of a dead process replaced");
    Ok(())
}

/// Whether a process listens, including a stopped one, and one with a full queue.
fn is_living(path: &Path) -> io::Result<bool> {
    match rustix::net::connect(socket()?, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => Ok(false),
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    Ok(socket?)
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let now = fs::symlink_metadata(&self.path);
        if now.is_ok_and(|now| identity(&now) == self.identity) {
            // If this fails, the next start replaces the leftover.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/fleet.sock");
        (folder, path)
    }

    fn error(path: &Path) -> String {
        format!("{:#}", listen(path, 0o600).unwrap_err())
    }

    #[test]
    fn it_is_there_for_whom_it_should_and_gone_with_its_process() {
        let (_folder, path) = place();
        let (listener, file) = listen(&path, 0o640).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let _client = UnixStream::connect(&path).unwrap();
        assert!(listener.accept().is_ok());
        drop(file);
        assert!(!path.exists());
        let (_listener, _file) = listen(&path, 0o600).unwrap();
    }

    #[test]
    fn its_lock_is_closed_to_others_and_is_no_link() {
        let (folder, path) = place();
        fs::create_dir(path.parent().unwrap()).unwrap();
        let lock = path.with_file_name("fleet.sock.lock");
        fs::write(&lock, "").unwrap();
        fs::set_permissions(&lock, fs::Permissions::from_mode(0o644)).unwrap();
        drop(listen(&path, 0o600).unwrap());
        let mode = fs::metadata(&lock).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, LOCK_MODE);
        fs::remove_file(&lock).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, &lock).unwrap();
        assert!(error(&path).contains("cannot open"), "{}", error(&path));
        assert!(!elsewhere.exists());
    }

    #[test]
    fn one_of_a_dead_process_is_replaced_and_one_of_a_living_is_not() {
        let (_folder, path) = place();
        fs::create_dir(path.parent().unwrap()).unwrap();
        // Closed without being removed, as by a crash.
        drop(UnixListener::bind(&path).unwrap());
        let (_listener, _file) = listen(&path, 0o600).unwrap();
        assert!(error(&path).contains("another process listens there"));
        // It was not changed.
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn of_several_that_find_a_left_over_together_one_listens() {
        for _ in 0..20 {
            let (_folder, path) = place();
            fs::create_dir(path.parent().unwrap()).unwrap();
            drop(UnixListener::bind(&path).unwrap());
            let starts: Vec<_> = (0..8)
                .map(|_| {
                    let path = path.clone();
                    std::thread::spawn(move || listen(&path, 0o600).ok())
                })
                .collect();
            let listening: Vec<_> = starts
                .into_iter()
                .filter_map(|s| s.join().unwrap())
                .collect();
            assert_eq!(listening.len(), 1);
            UnixStream::connect(&path).unwrap();
        }
    }

    #[test]
    fn the_socket_of_a_program_without_a_lock_is_not_changed_even_if_it_is_full() {
        let (_folder, path) = place();
        fs::create_dir(path.parent().unwrap()).unwrap();
        let socket = socket().unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&socket, 0).unwrap();
        // As many as fit into the queue of a process that does not accept.
        let connect = || {
            let client = super::socket().unwrap();
            let address = SocketAddrUnix::new(&path).unwrap();
            rustix::net::connect(&client, &address)
                .is_ok()
                .then_some(client)
        };
        let clients: Vec<_> = std::iter::from_fn(connect).collect();
        assert!(!clients.is_empty());
        assert!(error(&path).contains("another process listens there"));
    }

    #[test]
    fn other_files_and_other_programs_sockets_are_not_changed() {
        let (_folder, path) = place();
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, "precious").unwrap();
        assert!(error(&path).contains("there is a file that is no socket"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
        let (_listener, file) = listen(&path, 0o600).unwrap();
        fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(file);
        assert!(path.exists());
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/nowhere", &path).unwrap();
        assert!(error(&path).contains("there is a file that is no socket"));
    }
}
