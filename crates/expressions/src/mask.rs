//! Hides secrets from expressions, because every caller may read their results.

/// Replaces a hidden value.
pub const MASK: &str = "***REDACTED***";

/// Lists and maps nested this deep are empty for expressions.
pub(crate) const DEPTH_MAX: usize = 20;

/// A member whose name contains one of these, in any case, with or without `-` and `_`, is hidden. That
/// includes harmless ones such as `author` or `certificates`. The last two are ours.
const HIDING: [&str; 21] = [
    "password",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "sshkey",
    "encryptionkey",
    "accountkey",
    "servicekey",
    "registrykey",
    "signingkey",
    "credential",
    "passphrase",
    "private",
    "auth",
    "connection",
    "cert",
    "kubeconfig",
    "bearer",
    "passwd",
    "pwd",
];

/// Whether the value of a member with that name is hidden.
pub fn hides(name: &str) -> bool {
    let name = name.to_lowercase().replace(['-', '_'], "");
    HIDING.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_hides_its_value_by_any_part_in_any_case() {
        for name in [
            "adminPassword",
            "PASSWORD",
            "author",
            "tls.Cert",
            "secretKey",
            "x_api_key_y",
            "api-key",
            "ACCESS_KEY",
            "ssh-key",
            "db_passwd",
            "pwd",
        ] {
            assert!(hides(name), "{name}");
        }
        for name in ["zone", "api", "pass", "name", "", "sekret"] {
            assert!(!hides(name), "{name}");
        }
    }
}
