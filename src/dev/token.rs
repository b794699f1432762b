//! Makes tokens for trying the service on this machine, signed with a generated key.
//!
//! The private key stays in its folder. The service knows only the public key, as of any other issuer: from the key
//! set in the same folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Datelike as _, Utc};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

/// The default issuer. Settings accept its scheme and host for this machine.
pub const ISSUER: &str = "http://localhost/dev-token";
/// Name of the key set in the folder.
pub const KEY_SET_FILE: &str = "jwks.json";
/// Name of the private key in the folder: PKCS#8, DER.
const KEY_FILE: &str = "key.pk8";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}")]
    File { path: PathBuf, source: io::Error },
    /// The file has no private key for ES256.
    #[error("{0} holds no private key for ES256: name another folder with --folder, or remove it")]
    NoKey(PathBuf),
    /// Others than the owner may read or replace the key: every reader of it can sign tokens.
    #[error("{path} holds a private key that others may use (mode {mode:04o}): chmod 600 '{path}'")]
    Exposed {
        path: PathBuf,
        /// The file's permissions.
        mode: u32,
    },
    /// The system has no random bytes.
    #[error("the system has no random bytes")]
    Random,
    /// A token cannot be valid for that long.
    #[error("a token cannot be valid for that long")]
    TooLong,
}

#[derive(Debug, Clone)]
pub struct Claims {
    pub issuer: String,
    pub audience: Option<String>,
    pub subject: String,
    /// Identity of the caller.
    pub email: String,
    pub valid_for: Duration,
}

/// A folder with a key.
#[derive(Debug)]
pub struct Minter {
    pair: EcdsaKeyPair,
    kid: String,
}

impl Minter {
    /// Opens the key of a folder, or creates it. Created files are complete or absent: two processes at the same time
    /// end up with the same key.
    ///
    /// # Errors
    ///
    /// A folder or file that is unusable, or a key that others can use.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o755).create(folder);
        made.map_err(file(folder))?;
        let path = folder.join(KEY_FILE);
        let key = match read_key(&path) {
            Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
                make_key(folder, &path)?
            }
            read => read?,
        };
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &SystemRandom::new());
        let pair = pair.map_err(|_| Error::NoKey(path))?;
        let kid = thumbprint(&pair);
        let minter = Self { pair, kid };
        minter.publish(&folder.join(KEY_SET_FILE))?;
        Ok(minter)
    }

    /// Writes the key set if it differs.
    fn publish(&self, path: &Path) -> Result<(), Error> {
        let (x, y) = coordinates(&self.pair);
        let set = json!({"keys": [
            {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.kid, "x": x, "y": y}
        ]});
        let text = format!("{set:#}\n");
        if fs::read_to_string(path).is_ok_and(|there| there == text) {
            return Ok(());
        }
        let part = part_of(path);
        write(&part, 0o644, text.as_bytes()).map_err(file(&part))?;
        fs::rename(&part, path).map_err(file(path))
    }

    /// A token that is valid from now on.
    ///
    /// # Errors
    ///
    /// An expiry after the year 9999, which no service accepts.
    pub fn mint(&self, claims: &Claims, now: DateTime<Utc>) -> Result<String, Error> {
        let time = chrono::TimeDelta::from_std(claims.valid_for).ok();
        let expires = time.and_then(|time| now.checked_add_signed(time));
        let expires = expires.filter(|at| at.year() <= 9999);
        let expires = expires.ok_or(Error::TooLong)?.timestamp();
        let header = json!({"alg": "ES256", "kid": self.kid, "typ": "JWT"});
        let mut payload = json!({
            "iss": claims.issuer,
            "sub": claims.subject,
            "email": claims.email,
            "iat": now.timestamp(),
            "exp": expires,
        });
        if let Some(audience) = &claims.audience {
            payload["aud"] = json!(audience);
        }
        let message = format!("{}.{}", part(&header), part(&payload));
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes());
        let signature = signature.map_err(|_| Error::Random)?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    |source| Error::File { path, source }
}

/// The path of a new file beside another, unique to this process.
fn part_of(path: &Path) -> PathBuf {
    path.with_extension(format!("new-{}", uuid::Uuid::now_v7()))
}

fn write(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Creates a key; uses the one of another process if that was faster.
fn make_key(folder: &Path, path: &Path) -> Result<Vec<u8>, Error> {
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    let made = made.map_err(|_| Error::Random)?;
    let part = part_of(path);
    write(&part, 0o600, made.as_ref()).map_err(file(folder))?;
    // A link, unlike a rename, does not replace an existing file.
    let linked = fs::hard_link(&part, path);
    fs::remove_file(&part).map_err(file(&part))?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(file(path)(error)),
        _ => read_key(path),
    }
}

/// Reads a key file. Only its owner may have access to it, as with ssh.
fn read_key(path: &Path) -> Result<Vec<u8>, Error> {
    let mut opened = File::open(path).map_err(file(path))?;
    let mode = opened.metadata().map_err(file(path))?.mode() & 0o777;
    if mode & 0o077 != 0 {
        let path = path.to_owned();
        return Err(Error::Exposed { path, mode });
    }
    let mut key = Vec::new();
    opened.read_to_end(&mut key).map_err(file(path))?;
    Ok(key)
}

/// Both coordinates of the public key, as key sets encode them.
fn coordinates(pair: &EcdsaKeyPair) -> (String, String) {
    let point = pair.public_key().as_ref();
    // One byte for the form of the point, then 32 bytes for each coordinate.
    let (x, y) = point[1..].split_at(32);
    (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y))
}

/// The name of a key, computed from it (RFC 7638).
fn thumbprint(pair: &EcdsaKeyPair) -> String {
    let (x, y) = coordinates(pair);
    let text = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_key_is_created_once_and_readable_only_by_its_owner() {
        let folder = folder();
        let inner = folder.path().join("a/b");
        let first = Minter::open(&inner).unwrap();
        let second = Minter::open(&inner).unwrap();
        assert_eq!(first.kid, second.kid);
        let key = fs::metadata(inner.join(KEY_FILE)).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
        let mut names: Vec<_> = fs::read_dir(&inner)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, [KEY_SET_FILE, KEY_FILE]);
    }

    #[test]
    fn many_at_once_make_one_key() {
        let folder = folder();
        let kids: Vec<_> = std::thread::scope(|scope| {
            let open = || Minter::open(folder.path()).unwrap().kid;
            let all: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(kids.iter().all(|kid| *kid == kids[0]), "{kids:?}");
        let set = fs::read_to_string(folder.path().join(KEY_SET_FILE)).unwrap();
        assert!(set.contains(&kids[0]), "{set}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_that_others_can_use_is_refused_with_what_to_do() {
        let folder = folder();
        let kid = Minter::open(folder.path()).unwrap().kid;
        let path = folder.path().join(KEY_FILE);
        for mode in [0o644, 0o640, 0o604, 0o620, 0o602, 0o660, 0o777, 0o601] {
            allow(&path, mode);
            let error = Minter::open(folder.path()).unwrap_err().to_string();
            let advice = format!("(mode {mode:04o}): chmod 600 '{}'", path.display());
            assert!(error.ends_with(&advice), "{error}");
        }
        for mode in [0o600, 0o400, 0o700] {
            allow(&path, mode);
            assert_eq!(Minter::open(folder.path()).unwrap().kid, kid, "{mode:o}");
        }
    }

    #[test]
    fn what_is_no_key_is_not_replaced() {
        let folder = folder();
        let path = folder.path().join(KEY_FILE);
        fs::write(&path, "precious").unwrap();
        allow(&path, 0o600);
        let error = Minter::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("--folder"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn times_out_of_all_reason_are_refused() {
        let minter = Minter::open(folder().path()).unwrap();
        let claims = |valid_for| Claims {
            issuer: ISSUER.to_owned(),
            audience: None,
            subject: "dev".to_owned(),
            email: "dev".to_owned(),
            valid_for,
        };
        let day = minter.mint(&claims(Duration::from_hours(24)), DateTime::UNIX_EPOCH);
        assert_eq!(day.unwrap().split('.').count(), 3);
        let long = Duration::from_hours(24 * 366 * 9000);
        for long in [long, Duration::MAX] {
            let ever = minter.mint(&claims(long), DateTime::UNIX_EPOCH);
            assert!(matches!(ever, Err(Error::TooLong)));
        }
    }
}
