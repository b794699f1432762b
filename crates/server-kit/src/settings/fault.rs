//! Faults of settings, reported all at once.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingFault {
    /// The setting or section with the fault; empty for a whole source, absent for a fault between settings.
    about: Option<String>,
    /// Whether the value is unknown because of it.
    is_unknown: bool,
    text: String,
}

impl SettingFault {
    /// An invalid value in the place of which another counts while other faults are looked for. The text names the
    /// setting.
    pub fn of_value(key: impl Into<String>, text: String) -> Self {
        Self {
            is_unknown: false,
            ..Self::of_key(key, text)
        }
    }

    /// A setting or section whose value is unknown. The text names it and its source.
    pub fn of_key(key: impl Into<String>, text: String) -> Self {
        Self {
            about: Some(key.into()),
            is_unknown: true,
            text,
        }
    }

    /// Known values that are invalid together, or by a rule of the product. The text names them.
    pub fn of_values(text: String) -> Self {
        Self {
            about: None,
            is_unknown: false,
            text,
        }
    }

    /// A source that cannot be read.
    pub(super) fn of_source(text: String) -> Self {
        Self::of_key("", text)
    }

    /// Whether it is about this setting.
    pub(super) fn is_of(&self, setting: &str) -> bool {
        self.is_unknown && self.about.as_deref() == Some(setting)
    }

    /// Whether it makes this setting, or one of this section, unknown.
    pub(super) fn touches(&self, section: &str) -> bool {
        self.is_unknown && self.concerns(section)
    }

    /// Whether this setting, or one of this section, has the fault.
    pub(super) fn concerns(&self, section: &str) -> bool {
        let is_in = |key: &str, section: &str| {
            let rest = key.strip_prefix(section);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let Some(key) = &self.about else { return false };
        key.is_empty() || is_in(key, section) || is_in(section, key)
    }
}

impl fmt::Display for SettingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_leaves_open_what_is_at_above_or_below_its_key() {
        let fault = SettingFault::of_key("server.tls", String::new());
        for section in ["server", "server.tls", "server.tls.enabled"] {
            assert!(fault.touches(section), "{section}");
        }
        for section in ["server.tlsx", "server.jwt", "tls", "serve"] {
            assert!(!fault.touches(section), "{section}");
        }
        assert!(SettingFault::of_source(String::new()).touches("server"));
        let fault = SettingFault::of_value("server.port", String::new());
        assert!(!fault.touches("server"));
        assert!(fault.concerns("server") && !fault.concerns("health"));
    }
}
