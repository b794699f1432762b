//! Looks whether the files of certificates have changed, and says what comes of it.
//!
//! ```text
//! in use ─ other files that fit ─▶ in use, said
//!    │                                ▲
//!    └─ none, or none that fit ─▶ trouble, said at the second look ─ files that fit ─┘
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::identity::{Identity, Texts};

/// How often the files are looked at.
const PERIOD: Duration = Duration::from_secs(2);

/// A certificate in use, and what is known of its files.
pub struct Watched {
    identity: Arc<Identity>,
    /// What the files held when it was taken from them.
    good: Texts,
    trouble: Option<Trouble>,
    /// Whether trouble was told that is not over.
    is_told: bool,
}

/// Files that cannot be used.
struct Trouble {
    found: Found,
    is_told: bool,
}

/// What the files hold, or why they cannot be read.
type Found = Result<Texts, String>;

/// What there is to say after a look.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// Another certificate is used.
    Replaced,
    /// The files cannot be used, which is why.
    Fault(String),
    /// The files are again what they were before there was trouble.
    Restored,
}

/// Looks for changed files from now on, as long as the process lives.
pub fn watch(mut watched: Vec<Watched>) -> std::io::Result<()> {
    if watched.is_empty() {
        return Ok(());
    }
    let look = move || {
        loop {
            // A panic is told where it happens; what it keeps from being read, the next look reads.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                for one in &mut watched {
                    let news = one.look();
                    one.tell(news);
                }
            }));
            std::thread::sleep(PERIOD);
        }
    };
    let thread = std::thread::Builder::new().name("certificates".to_owned());
    thread.spawn(look).map(drop)
}

impl Watched {
    /// A certificate that was taken from files which held `good`.
    pub(super) fn new(identity: Arc<Identity>, good: Texts) -> Self {
        Self {
            identity,
            good,
            trouble: None,
            is_told: false,
        }
    }

    /// Takes what the files hold if that is new and good. What was good before stays otherwise.
    fn look(&mut self) -> Option<News> {
        let found = self.identity.texts().map_err(|fault| format!("{fault:#}"));
        if found.as_ref() == Ok(&self.good) {
            self.trouble = None;
            return std::mem::take(&mut self.is_told).then_some(News::Restored);
        }
        let replaced = match &found {
            Ok(texts) => self
                .identity
                .replace(texts)
                .map_err(|fault| format!("{fault:#}")),
            Err(fault) => Err(fault.clone()),
        };
        if let Err(fault) = replaced {
            return self.fail(found, fault);
        }
        self.good = found.unwrap_or_default();
        self.trouble = None;
        self.is_told = false;
        Some(News::Replaced)
    }

    /// Says what is wrong once it was found twice: files that are being replaced are no trouble.
    fn fail(&mut self, found: Found, fault: String) -> Option<News> {
        let name = "hyperfleet_api_tls_certificate_reload_failures_total";
        metrics::counter!(name, "listener" => self.identity.listener).increment(1);
        match &mut self.trouble {
            Some(trouble) if trouble.found == found => {
                self.is_told = true;
                let was_told = std::mem::replace(&mut trouble.is_told, true);
                (!was_told).then_some(News::Fault(fault))
            }
            other => {
                let is_told = false;
                *other = Some(Trouble { found, is_told });
                None
            }
        }
    }

    /// Logs the news, and says when the certificate in use expires.
    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds since 1970 fit an f64 exactly"
    )]
    fn tell(&self, news: Option<News>) {
        let listener = self.identity.listener;
        match news {
            Some(News::Replaced) => tracing::info!(listener, "a new certificate is used"),
            Some(News::Fault(fault)) => {
                tracing::warn!(listener, "the certificate stays as it was: {fault}");
            }
            Some(News::Restored) => tracing::info!(
                listener,
                "the files of the certificate are good again: it stays as it was"
            ),
            None => {}
        }
        let name = "hyperfleet_api_tls_certificate_expiry_timestamp_seconds";
        let expires_at = self.identity.expires_at().as_secs() as f64;
        metrics::gauge!(name, "listener" => listener).set(expires_at);
        // There from the beginning, so that the first failure shows as an increase.
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
    fn assert_fault(news: Option<News>, word: &str) {
        match news {
            Some(News::Fault(fault)) => assert!(fault.contains(word), "no {word} in: {fault}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_that_are_away_are_told_once_and_so_is_that_they_are_back() {
        let pair = signed();
        let (files, mut watched) = watched(&pair);
        for name in ["crt", "key"] {
            assert_eq!(watched.look(), None);
            fs::remove_file(files.path(name)).unwrap();
            assert_eq!(watched.look(), None, "it may be about to be replaced");
            assert_fault(watched.look(), name);
            assert_eq!(watched.look(), None);
            files.write(&pair);
            assert_eq!(watched.look(), Some(News::Restored));
        }
        assert_eq!(watched.look(), None);
    }

    #[test]
    fn what_is_away_for_a_moment_is_not_worth_a_word() {
        let pair = signed();
        let (files, mut watched) = watched(&pair);
        fs::remove_file(files.path("crt")).unwrap();
        assert_eq!(watched.look(), None);
        files.write(&pair);
        assert_eq!(watched.look(), None);
        // Certificate first, key next: half-way they do not fit.
        let next = signed();
        fs::write(files.path("crt"), &next.0).unwrap();
        assert_eq!(watched.look(), None);
        files.write(&next);
        assert_eq!(watched.look(), Some(News::Replaced));
        assert_eq!(watched.look(), None);
    }

    #[test]
    fn each_fault_is_told_and_a_new_certificate_ends_them_all() {
        let (first, second) = (signed(), signed());
        let (files, mut watched) = watched(&first);
        let expires_at = watched.identity.expires_at();
        files.write(&(first.0.clone(), second.1.clone()));
        assert_eq!(watched.look(), None);
        assert_fault(watched.look(), "not that of the certificate");
        files.write(&("nonsense".to_owned(), second.1.clone()));
        assert_eq!(watched.look(), None);
        assert_fault(watched.look(), "no certificate");
        fs::remove_file(files.path("key")).unwrap();
        // Seen once, and over: what was told before is over as well.
        assert_eq!(watched.look(), None);
        assert_eq!(watched.identity.expires_at(), expires_at);
        files.write(&second);
        assert_eq!(watched.look(), Some(News::Replaced));
        assert_eq!(watched.look(), None);
    }
}
