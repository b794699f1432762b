use sha2::{Digest as _, Sha256};

use hyperfleet_domain::idempotency::Fingerprint;

/// The digest of a request: its method, the media type of its body, its path with the query, and the bytes of its body.
///
/// The media type is unset for plain JSON, so that keys which an earlier release has stored still fit.
pub fn fingerprint(
    method: &str,
    media_type: Option<&str>,
    target: &str,
    body: &[u8],
) -> Fingerprint {
    let mut digest = Sha256::new();
    digest.update(method);
    for part in media_type
        .into_iter()
        .flat_map(|media_type| [" ", media_type])
    {
        digest.update(part);
    }
    // A method has no blank, and neither part before the body a line break: no two requests are the same text.
    for part in [b"\n", target.as_bytes(), b"\n", body] {
        digest.update(part);
    }
    Fingerprint(digest.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_request_counts() {
        let first = fingerprint("POST", None, "/a?b", b"{}");
        assert_eq!(first, fingerprint("POST", None, "/a?b", b"{}"));
        let merged = fingerprint("POST", Some("merge"), "/a?b", b"{}");
        assert_ne!(first, merged);
        assert_ne!(merged, fingerprint("POST", Some("json"), "/a?b", b"{}"));
        for (method, target, body) in [
            ("PATCH", "/a?b", "{}"),
            ("POST", "/a", "{}"),
            ("POST", "/a?b", "{} "),
            ("POST", "/a?b", ""),
        ] {
            assert_ne!(first, fingerprint(method, None, target, body.as_bytes()));
        }
    }

    #[test]
    fn plain_json_has_the_digest_of_earlier_releases() {
        let mut digest = Sha256::new();
        digest.update("PATCH\n/a\n{}");
        let expected = Fingerprint(digest.finalize().into());
        assert_eq!(fingerprint("PATCH", None, "/a", b"{}"), expected);
    }
}
