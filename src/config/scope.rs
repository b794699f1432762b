//! Which settings a command uses. Its help lists only the flags of these settings. It also accepts the flags of all
//! others, so that the same flags work with several commands.

use std::ffi::OsString;

use clap::{Command, CommandFactory as _, FromArgMatches as _};

use super::Args;
use super::catalogue::TABLE;
use super::dev_defaults::dev_default;
use super::load::DATABASE;
use hyperfleet_server_kit::settings::{Setting, flag_help};

impl Args {
    /// Reads these arguments. Ends the process for a wrong command line, or for help.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let matches = command().get_matches_from(arguments);
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// The command line, with the help of each command.
pub fn command() -> Command {
    scoped(Args::command(), "")
}

/// A command at a path of names, and those below it.
fn scoped(command: Command, path: &str) -> Command {
    let names = command.get_subcommands().map(|c| c.get_name().to_owned());
    let names: Vec<_> = names.collect();
    let command = names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(name, |inner| scoped(inner, path.trim_start()))
    });
    command.mut_args(|flag| match TABLE.find(flag.get_id().as_str()) {
        Some(setting) if !uses(path, setting) => flag.hide(true),
        Some(setting) if path == "dev" => {
            // The database is a private one, unless one is named.
            let is_private = DATABASE.contains(&setting.key);
            let default = if is_private { "" } else { dev_default(setting) };
            flag.help(flag_help(&TABLE, setting, default))
        }
        _ => flag,
    })
}

/// Whether the setting has an effect on a command.
fn uses(command: &str, setting: &Setting) -> bool {
    let (key, section) = (setting.key, setting.section());
    let is_of_log = section == "logging" || key == "server.hostname";
    let is_of_database = section == "database";
    let is_of_kinds = key == "server.openapi_schema_path";
    match command {
        "migrate" | "migrate status" | "audit verify" | "audit export" => {
            is_of_database || is_of_log
        }
        "import" => is_of_database || is_of_log || is_of_kinds,
        "openapi" => is_of_kinds,
        "demo-adapter" => is_of_kinds || is_of_log,
        "healthcheck" => ["health.host", "health.port", "health.tls.enabled"].contains(&key),
        "fleet-adapter run" => {
            let of_listeners = [
                "server.timeouts.write",
                "server.tls.cert_file",
                "server.tls.key_file",
            ];
            let of_api = [
                "health.db_ping_timeout",
                "metrics.reconciliation_stuck_threshold",
            ];
            let is_beside = ["health", "metrics"].contains(&section);
            is_of_log || of_listeners.contains(&key) || is_beside && !of_api.contains(&key)
        }
        "fleet-adapter render" | "fleet-adapter approve-removals" => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    /// The help of a command, and the flags that it shows.
    fn help(path: &[&str]) -> (String, Vec<String>) {
        let mut command = command();
        command.build();
        for name in path {
            command = command.find_subcommand(name).unwrap().clone();
        }
        let text = command.render_long_help().to_string();
        let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let flags = visible.filter_map(|arg| arg.get_long().map(ToOwned::to_owned));
        (text, flags.collect())
    }

    #[test]
    fn help_shows_the_flags_that_have_an_effect() {
        let flags = |path: &[&str]| help(path).1;
        let schema = "server-openapi-schema-path";
        assert_eq!(
            flags(&["openapi"]),
            ["output", "fleet", "plain", "config", schema, "help"]
        );
        assert_eq!(
            flags(&["healthcheck"]),
            [
                "ready",
                "timeout",
                "config",
                "health-host",
                "health-port",
                "health-tls-enabled",
                "help"
            ]
        );
        assert_eq!(
            flags(&["fleet-adapter", "approve-removals"]),
            ["config", "help"]
        );
        for path in [
            &["migrate"][..],
            &["migrate", "status"],
            &["audit", "verify"],
            &["audit", "export"],
            &["import"],
        ] {
            let flags = flags(path);
            let shows = |flag: &str| flags.iter().any(|other| other == flag);
            for flag in ["db-host", "database-url", "log-level", "server-hostname"] {
                assert!(shows(flag), "{path:?}: {flag}");
            }
            for flag in [
                "server-port",
                "health-port",
                "metrics-port",
                "server-jwt-enabled",
            ] {
                assert!(!shows(flag), "{path:?}: {flag}");
            }
            assert_eq!(shows(schema), path == ["import"], "{path:?}");
        }
        let of_adapter = flags(&["fleet-adapter", "run"]);
        assert!(
            of_adapter.contains(&"health-port".to_owned()),
            "{of_adapter:?}"
        );
        assert!(
            !of_adapter.contains(&"db-host".to_owned()),
            "{of_adapter:?}"
        );
        let of_serve = flags(&["serve"]).len();
        assert!(of_serve > 40, "{of_serve}");
    }

    #[test]
    fn flags_without_effect_are_accepted() {
        for command in ["migrate", "openapi", "healthcheck", "import"] {
            let line = ["hyperfleet-api", command, "--server-port=1", "--db-host=h"];
            Args::try_parse_from(line).unwrap();
        }
    }

    #[test]
    fn the_help_of_dev_shows_the_defaults_of_dev() {
        let (of_dev, of_serve) = (help(&["dev"]).0, help(&["serve"]).0);
        for (variable, serve, dev) in [
            ("SERVER_JWT_ENABLED", Some("true"), Some("false")),
            ("SERVER_HOST", Some("localhost"), Some("127.0.0.1")),
            ("SERVER_PORT", Some("8000"), Some("8000")),
            ("HEALTH_PORT", Some("8080"), Some("0")),
            ("METRICS_PORT", Some("9090"), Some("0")),
            ("LOGGING_FORMAT", Some("json"), Some("text")),
            ("LOGGING_OUTPUT", Some("stdout"), Some("stderr")),
            ("DATABASE_HOST", Some("localhost"), None),
            ("DATABASE_NAME", Some("hyperfleet"), None),
        ] {
            let shows_default = |text: &str, default: Option<&str>| {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let start = format!("[env: HYPERFLEET_{variable}]");
                let (_, rest) = text.split_once(&start).unwrap();
                let expected = default.map(|default| format!(" [default: {default}]"));
                match expected {
                    Some(expected) => rest.starts_with(&expected),
                    None => !rest.starts_with(" [default"),
                }
            };
            assert!(
                shows_default(&of_serve, serve),
                "serve {variable}: {of_serve}"
            );
            assert!(shows_default(&of_dev, dev), "dev {variable}: {of_dev}");
        }
    }
}
