//! Watches the files of certificates, applies changes, and logs the result.
//!
//! ```text
//! in use ─ other valid files ─▶ in use, logged
//!    │                                ▲
//!    └─ missing or invalid ─▶ trouble, logged at the second check ─ valid files ─┘
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::identity::{Identity, Texts};

/// How often the files are checked.
const PERIOD: Duration = Duration::from_secs(2);

/// A certificate in use, and the state of its files.
pub struct Watched {
    identity: Arc<Identity>,
    /// The contents that it was loaded from.
    good: Texts,
    /// Why the latest check failed, if it did.
    fault: Option<String>,
    /// The latest fault in the log, until the files are valid again.
    logged: Option<String>,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
enum CertificateChange {
    /// Another certificate is in use.
    Replaced,
    /// The files are unusable, with the reason.
    Failed(String),
    /// The files are again those in use.
    Restored,
}

/// Watches the files for the lifetime of the process.
pub fn watch(mut watched: Vec<Watched>) -> std::io::Result<()> {
    if watched.is_empty() {
        return Ok(());
    }
    let check = move || {
        loop {
            // The panic is logged where it happens; the next check tries again.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                for one in &mut watched {
                    let change = one.check();
                    one.log(change);
                }
            }));
            std::thread::sleep(PERIOD);
        }
    };
    let thread = std::thread::Builder::new().name("certificates".to_owned());
    thread.spawn(check).map(drop)
}

impl Watched {
    /// A certificate that was loaded from `good`.
    pub(super) fn new(identity: Arc<Identity>, good: Texts) -> Self {
        Self {
            identity,
            good,
            fault: None,
            logged: None,
        }
    }

    /// Applies new contents if they are valid. Otherwise the earlier certificate stays.
    fn check(&mut self) -> Option<CertificateChange> {
        let fault = match self.apply() {
            Ok(is_replaced) => {
                self.fault = None;
                let was_logged = self.logged.take().is_some();
                return if is_replaced {
                    Some(CertificateChange::Replaced)
                } else {
                    was_logged.then_some(CertificateChange::Restored)
                };
            }
            Err(fault) => format!("{fault:#}"),
        };
        let name = "hyperfleet_api_tls_certificate_reload_failures_total";
        metrics::counter!(name, "listener" => self.identity.listener).increment(1);
        // Reported at its second check: files that are just being replaced are no fault.
        let is_second = self.fault.replace(fault.clone()).as_ref() == Some(&fault);
        let is_new = self.logged.as_ref() != Some(&fault);
        (is_second && is_new).then(|| {
            self.logged = Some(fault.clone());
            CertificateChange::Failed(fault)
        })
    }

    /// Reads the files, and uses their contents if they are new. Returns whether they are.
    fn apply(&mut self) -> anyhow::Result<bool> {
        let found = self.identity.texts()?;
        if found == self.good {
            return Ok(false);
        }
        self.identity.replace(&found)?;
        self.good = found;
        Ok(true)
    }

    /// Logs the result, and sets the metric of the expiry.
    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds since 1970 fit an f64 exactly"
    )]
    fn log(&self, change: Option<CertificateChange>) {
        let listener = self.identity.listener;
        match change {
            Some(CertificateChange::Replaced) => tracing::info!(listener, "certificate replaced"),
            Some(CertificateChange::Failed(error)) => {
                tracing::warn!(listener, fault = error, "certificate not replaced");
            }
            Some(CertificateChange::Restored) => {
                tracing::info!(listener, "certificate files valid again: unchanged");
            }
            None => {}
        }
        let name = "hyperfleet_api_tls_certificate_expiry_timestamp_seconds";
        let expires_at = self.identity.expires_at().as_secs() as f64;
        metrics::gauge!(name, "listener" => listener).set(expires_at);
        // Created at the start, so that the first failure is visible as an increase.
        let name = "hyperfleet_api_tls_certificate_reload_failures_total";
        metrics::counter!(name, "listener" => listener).increment(0);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use tempfile::TempDir;

    use super::super::Files;
    use super::*;
    struct Folder(TempDir);

    impl Folder {
        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn write(&self, (certificate, key): &(String, String)) {
            fs::write(self.path("crt"), certificate).unwrap();
            fs::write(self.path("key"), key).unwrap();
        }
    }

    fn signed() -> (String, String) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (cert.pem(), signing_key.serialize_pem())
    }

    fn watched(pair: &(String, String)) -> (Folder, Watched) {
        let files = Folder(tempfile::tempdir().unwrap());
        files.write(pair);
        let (identity, texts) = Identity::load(&Files {
            listener: "api",
            pair: "tls",
            cert: ("cert_file", &files.path("crt")),
            key: ("key_file", &files.path("key")),
            client_ca: None,
        })
        .unwrap();
        (files, Watched::new(Arc::new(identity), texts))
    }

    #[track_caller]
    fn assert_error(change: Option<CertificateChange>, word: &str) {
        match change {
            Some(CertificateChange::Failed(error)) => {
                assert!(error.contains(word), "no {word} in: {error}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn missing_files_are_reported_once_and_so_is_their_return() {
        let pair = signed();
        let (files, mut watched) = watched(&pair);
        for name in ["crt", "key"] {
            assert_eq!(watched.check(), None);
            fs::remove_file(files.path(name)).unwrap();
            assert_eq!(watched.check(), None, "it may be about to be replaced");
            assert_error(watched.check(), name);
            assert_eq!(watched.check(), None);
            files.write(&pair);
            assert_eq!(watched.check(), Some(CertificateChange::Restored));
        }
        assert_eq!(watched.check(), None);
    }

    #[test]
    fn what_is_away_for_a_moment_is_not_worth_a_word() {
        let pair = signed();
        let (files, mut watched) = watched(&pair);
        fs::remove_file(files.path("crt")).unwrap();
        assert_eq!(watched.check(), None);
        files.write(&pair);
        assert_eq!(watched.check(), None);
        // Certificate first, key next: in between they do not match.
        let next = signed();
        fs::write(files.path("crt"), &next.0).unwrap();
        assert_eq!(watched.check(), None);
        files.write(&next);
        assert_eq!(watched.check(), Some(CertificateChange::Replaced));
        assert_eq!(watched.check(), None);
    }

    #[test]
    fn each_error_is_reported_and_a_new_certificate_ends_them_all() {
        let (first, second) = (signed(), signed());
        let (files, mut watched) = watched(&first);
        let expires_at = watched.identity.expires_at();
        files.write(&(first.0.clone(), second.1.clone()));
        assert_eq!(watched.check(), None);
        assert_error(watched.check(), "does not match the certificate");
        files.write(&("nonsense".to_owned(), second.1.clone()));
        assert_eq!(watched.check(), None);
        assert_error(watched.check(), "no certificate");
        fs::remove_file(files.path("key")).unwrap();
        // A trouble seen once and resolved is not logged.
        assert_eq!(watched.check(), None);
        assert_eq!(watched.identity.expires_at(), expires_at);
        files.write(&second);
        assert_eq!(watched.check(), Some(CertificateChange::Replaced));
        assert_eq!(watched.check(), None);
    }
}
