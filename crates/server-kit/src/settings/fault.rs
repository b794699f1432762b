//! What is wrong with settings, told all at once.

use std::fmt;

use anyhow::bail;

/// Something wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingFault {
    /// The setting or section of which it is not known what it should be.
    about: About,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum About {
    /// None: it is known, and makes no sense.
    Nothing,
    Key(String),
    /// All of them: a whole source cannot be read.
    Everything,
}

impl SettingFault {
    /// A value that is known, and makes no sense. The text names it.
    pub fn of_value(text: String) -> Self {
        let about = About::Nothing;
        Self { about, text }
    }

    /// A setting or section of which nothing is known now. The text names it, and its source.
    pub fn of_key(key: impl Into<String>, text: String) -> Self {
        let about = About::Key(key.into());
        Self { about, text }
    }

    /// A source of which nothing is known.
    pub(super) fn of_source(text: String) -> Self {
        let about = About::Everything;
        Self { about, text }
    }

    /// Whether it is about that setting.
    pub(super) fn is_of(&self, setting: &str) -> bool {
        matches!(&self.about, About::Key(key) if key == setting)
    }

    /// Whether it leaves open what that setting, or one of that section, should be.
    pub(super) fn touches(&self, section: &str) -> bool {
        let is_in = |key: &str, section: &str| {
            let rest = key.strip_prefix(section);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        match &self.about {
            About::Nothing => false,
            About::Key(key) => is_in(key, section) || is_in(section, key),
            About::Everything => true,
        }
    }
}

impl fmt::Display for SettingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One error of many faults.
///
/// # Errors
///
/// There are some.
pub(super) fn refuse(faults: &[String]) -> anyhow::Result<()> {
    match faults {
        [] => Ok(()),
        [one] => bail!("{one}"),
        several => {
            let listed = several.iter().map(|fault| fault.replace('\n', "\n    "));
            let listed: Vec<_> = listed.collect();
            bail!("the settings have faults:\n  - {}", listed.join("\n  - "))
        }
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
        assert!(!SettingFault::of_value(String::new()).touches("server"));
    }
}
