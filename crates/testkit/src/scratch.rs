//! Where servers that tests start keep their files.

use std::path::PathBuf;

use rustix::fs::statvfs;
use tempfile::TempDir;

/// Files in memory.
const MEMORY: &str = "/dev/shm";
/// Tests of the HyperFleet API write 5 GB: a database each.
const FREE_BYTES_MIN: u64 = 8 << 30;

/// A folder in memory if there is room, otherwise the folder for temporary files. In memory a database is created
/// ten times faster, and etcd does not wait for a disk.
pub fn scratch_root() -> PathBuf {
    let free_bytes = statvfs(MEMORY).map_or(0, |memory| memory.f_bavail * memory.f_frsize);
    if free_bytes >= FREE_BYTES_MIN {
        MEMORY.into()
    } else {
        std::env::temp_dir()
    }
}

/// A folder below it, which is removed when it is dropped.
pub fn scratch_folder(prefix: &str) -> TempDir {
    let root = scratch_root();
    let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(root);
    folder.unwrap()
}
