//! Which settings a command uses. Its help shows only the flags of these. It accepts the flags of all others, too, so
//! that the same flags work with several commands.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use clap::ArgMatches;

use super::catalogue::TABLE;
use super::dev_defaults::dev_default;
use super::load::DATABASE;
use super::shared_args::SettingsArgs;
use hyperfleet_server_kit::settings::Setting;

/// The settings of a command.
pub trait Scope: fmt::Debug + 'static {
    /// Whether the setting has an effect.
    fn uses(setting: &Setting) -> bool;

    /// The setting's default with this command.
    fn default(setting: &Setting) -> &'static str {
        setting.default
    }
}

/// Settings that the flags of a command can give.
#[derive(Debug)]
pub struct ScopedArgs<S> {
    args: SettingsArgs,
    scope: PhantomData<fn() -> S>,
}

/// `migrate` and `audit`: the database and the log.
#[derive(Debug)]
pub struct MigrateScope;
/// `import`: the same, and the schemas of specs.
#[derive(Debug)]
pub struct ImportScope;
/// `openapi`: the kinds and the schemas of their specs.
#[derive(Debug)]
pub struct OpenapiScope;
/// `healthcheck`: the address of the health listener.
#[derive(Debug)]
pub struct HealthcheckScope;
/// `fleet-adapter run`: listeners beside the API's, and the log.
#[derive(Debug)]
pub struct AdapterScope;
/// Other commands of the fleet adapter: settings only of a file or the environment.
#[derive(Debug)]
pub struct FileScope;
/// `demo-adapter`: the kinds and the log.
#[derive(Debug)]
pub struct DemoScope;
/// `dev`: everything, with defaults for trying the service on this machine.
#[derive(Debug)]
pub struct DevScope;

fn is_of_log(setting: &Setting) -> bool {
    setting.section() == "logging" || setting.key == "server.hostname"
}

impl Scope for MigrateScope {
    fn uses(setting: &Setting) -> bool {
        setting.section() == "database" || is_of_log(setting)
    }
}

impl Scope for ImportScope {
    fn uses(setting: &Setting) -> bool {
        MigrateScope::uses(setting) || OpenapiScope::uses(setting)
    }
}

impl Scope for OpenapiScope {
    fn uses(setting: &Setting) -> bool {
        setting.key == "server.openapi_schema_path"
    }
}

impl Scope for DemoScope {
    fn uses(setting: &Setting) -> bool {
        OpenapiScope::uses(setting) || is_of_log(setting)
    }
}

impl Scope for HealthcheckScope {
    fn uses(setting: &Setting) -> bool {
        ["health.host", "health.port", "health.tls.enabled"].contains(&setting.key)
    }
}

impl Scope for AdapterScope {
    fn uses(setting: &Setting) -> bool {
        const OF_LISTENERS: [&str; 3] = [
            "server.timeouts.write",
            "server.tls.cert_file",
            "server.tls.key_file",
        ];
        let is_of_api = [
            "health.db_ping_timeout",
            "metrics.reconciliation_stuck_threshold",
        ];
        let is_beside = ["health", "metrics"].contains(&setting.section());
        is_of_log(setting)
            || OF_LISTENERS.contains(&setting.key)
            || is_beside && !is_of_api.contains(&setting.key)
    }
}

impl Scope for FileScope {
    fn uses(_: &Setting) -> bool {
        false
    }
}

impl Scope for DevScope {
    fn uses(_: &Setting) -> bool {
        true
    }

    fn default(setting: &Setting) -> &'static str {
        // The database is a private one, unless one is named.
        if DATABASE.contains(&setting.key) {
            return "";
        }
        dev_default(setting)
    }
}

impl<S> Deref for ScopedArgs<S> {
    type Target = SettingsArgs;

    fn deref(&self) -> &SettingsArgs {
        &self.args
    }
}

impl<S: Scope> clap::Args for ScopedArgs<S> {
    fn augment_args(command: clap::Command) -> clap::Command {
        let arguments = SettingsArgs::arguments(S::default);
        command.args(arguments.map(|argument| {
            let setting = TABLE.find(argument.get_id().as_str());
            let is_unused = setting.is_some_and(|setting| !S::uses(setting));
            let is_hidden = is_unused || argument.is_hide_set();
            argument.hide(is_hidden)
        }))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<S> clap::FromArgMatches for ScopedArgs<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            args: SettingsArgs::from_arg_matches(matches)?,
            scope: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.args.update_from_arg_matches(matches)
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::super::Args;

    /// The help of a command, and the flags that it shows.
    fn help(path: &[&str]) -> (String, Vec<String>) {
        let mut command = Args::command();
        command.build();
        for name in path {
            command = command.find_subcommand(name).unwrap().clone();
        }
        let text = command.render_long_help().to_string();
        let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let flags = shown.filter_map(|arg| arg.get_long().map(ToOwned::to_owned));
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
            let shows = |flag: &str| flags.iter().any(|shown| shown == flag);
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
            let shown = |text: &str, default: Option<&str>| {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let start = format!("[env: HYPERFLEET_{variable}]");
                let (_, rest) = text.split_once(&start).unwrap();
                let expected = default.map(|default| format!(" [default: {default}]"));
                match expected {
                    Some(expected) => rest.starts_with(&expected),
                    None => !rest.starts_with(" [default"),
                }
            };
            assert!(shown(&of_serve, serve), "serve {variable}: {of_serve}");
            assert!(shown(&of_dev, dev), "dev {variable}: {of_dev}");
        }
    }
}
