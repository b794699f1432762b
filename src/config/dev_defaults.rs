//! Defaults of `dev`, which tries the service on this machine.

use super::Settings;
use super::catalogue::TABLE;
use hyperfleet_server_kit::settings::{Setting, defaults};

/// Those that differ from the defaults of `serve`. The help of `dev` shows them.
const DEFAULTS: [(&str, &str); 9] = [
    ("server.host", "127.0.0.1"),
    ("server.jwt.enabled", "false"),
    // Another instance may run here: any port will do for these.
    ("health.host", "127.0.0.1"),
    ("health.port", "0"),
    ("metrics.host", "127.0.0.1"),
    ("metrics.port", "0"),
    // No load balancer needs time to notice the shutdown.
    ("health.shutdown_delay", "0s"),
    ("logging.format", "text"),
    // Standard output is for people.
    ("logging.output", "stderr"),
];

pub(super) fn dev_default(setting: &Setting) -> &'static str {
    let found = DEFAULTS.iter().find(|(key, _)| *key == setting.key);
    found.map_or(setting.default, |(_, default)| default)
}

/// The settings of `dev` without any source.
pub fn dev_defaults() -> Settings {
    let settings = TABLE.settings.iter().map(|setting| Setting {
        default: dev_default(setting),
        ..*setting
    });
    defaults(&settings.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_of_dev_is_one_of_a_setting_and_another_than_that_of_serve() {
        for (key, default) in DEFAULTS {
            let setting = TABLE.find(key).unwrap();
            assert_ne!(setting.default, default, "{key}");
        }
        let settings = dev_defaults();
        assert!(!settings.server.jwt.enabled);
        assert_eq!((settings.health.port, settings.server.port), (0, 8000));
    }
}
