use sha2::{Digest as _, Sha256};

use crate::domain::idempotency::Fingerprint;

/// The digest of a request: its method, its path with the query, and the bytes of its body.
pub fn fingerprint(method: &str, target: &str, body: &[u8]) -> Fingerprint {
    let mut digest = Sha256::new();
    // Neither of the first two has a line break: no two requests are the same text.
    for part in [method.as_bytes(), b"\n", target.as_bytes(), b"\n", body] {
        digest.update(part);
    }
    Fingerprint(digest.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_request_counts() {
        let first = fingerprint("POST", "/a?b", b"{}");
        assert_eq!(first, fingerprint("POST", "/a?b", b"{}"));
        for (method, target, body) in [
            ("PATCH", "/a?b", "{}"),
            ("POST", "/a", "{}"),
            ("POST", "/a?b", "{} "),
            ("POST", "/a?b", ""),
        ] {
            assert_ne!(first, fingerprint(method, target, body.as_bytes()));
        }
    }
}
