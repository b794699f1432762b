//! Prints the addresses and first steps of `dev` once it serves.

use std::net::SocketAddr;
use std::path::Path;

use super::process::Addresses;
use crate::config::{Settings, Tls};
use crate::dev::token;
use hyperfleet_auth::Authentication;
use hyperfleet_domain::{Entity, EntityRegistry, tenancy};

/// What `dev` has started.
pub(super) struct Started<'a> {
    pub(super) addresses: &'a Addresses,
    /// Folder of the private PostgreSQL, if there is one.
    pub(super) data: Option<&'a Path>,
    pub(super) authentication: &'a Authentication,
    /// The adapters that the demo adapter plays, or why it does not run.
    pub(super) demo: Result<Vec<&'a str>, &'static str>,
    pub(super) settings: &'a Settings,
    pub(super) kinds: &'a EntityRegistry,
}

/// The text that `dev` prints once it serves.
pub(super) fn banner(started: &Started<'_>) -> String {
    let Started {
        addresses,
        authentication,
        settings,
        ..
    } = started;
    let (api, tenant) = (addresses.api, &settings.server.tenant);
    let base = format!("{}/api/hyperfleet/v1", origin(api, &settings.server.tls));
    let health = origin(addresses.health, &settings.health.tls);
    let metrics = origin(addresses.metrics, &settings.metrics.tls);
    let demo = match &started.demo {
        Ok(adapters) => format!("plays {}", adapters.join(", ")),
        Err(why) => format!("off ({why})"),
    };
    let database = match started.data {
        Some(folder) => format!("private PostgreSQL in {}", folder.display()),
        None => "the PostgreSQL that was named".to_owned(),
    };
    let (authentication, token, option) = protection(authentication, api);
    let curl = format!("curl -s{option}{}", tenant_options(tenant));
    let first = first_steps(&curl, &base, started.kinds);
    format!(
        "
HyperFleet API     {base}
  documentation    {base}/openapi.html
  health           {health}/readyz
  metrics          {metrics}/metrics
  authentication   {authentication}
  database         {database}
  demo adapter     {demo}
  stop             Ctrl-C; data persists

Try it:
{token}{first}  {curl} '{base}/audit?action=create'

"
    )
}

/// The credentials of a caller: whether any are needed, how to get them in a shell, and the option of `curl` that
/// sends them.
fn protection(authentication: &Authentication, address: SocketAddr) -> (String, String, String) {
    let Authentication::On(authenticator) = authentication else {
        let text = if address.ip().is_loopback() {
            "off (for trying it on this machine only)"
        } else {
            "OFF: any client that reaches this address may change and delete everything"
        };
        return (text.to_owned(), String::new(), String::new());
    };
    let issuers: Vec<_> = authenticator.issuers().collect();
    let token = if issuers.contains(&token::ISSUER) {
        let program = std::env::args().next();
        let program = program.as_deref().unwrap_or("hyperfleet-api");
        format!("  TOKEN=$({program} dev-token)\n")
    } else {
        "  TOKEN=…   # of one of these issuers\n".to_owned()
    };
    let header = authenticator.headers().next().unwrap_or_default();
    (
        format!("on: tokens of {}", issuers.join(", ")),
        token,
        format!(" -H \"{header}: Bearer $TOKEN\""),
    )
}

/// Scheme and address of a listener, as URLs begin.
fn origin(address: SocketAddr, tls: &Tls) -> String {
    let scheme = if tls.enabled { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// The options of `curl` for the headers of a tenant, if there are tenants.
fn tenant_options(tenant: &tenancy::Config) -> String {
    let dimensions = tenant.dimensions.iter();
    let required = dimensions.filter(|d| tenant.enabled && d.required);
    let options: Vec<_> = required
        .map(|d| format!(" -H '{}: example'", d.header))
        .collect();
    options.concat()
}

/// How to list and create resources of the first kind that accepts any spec and needs no reference.
fn first_steps(curl: &str, base: &str, kinds: &EntityRegistry) -> String {
    let is_plain = |e: &&Entity| {
        e.parent.is_none() && e.spec_schema.is_none() && e.references.iter().all(|r| r.min == 0)
    };
    let Some(Entity { kind, plural, .. }) = kinds.entities().iter().find(is_plain) else {
        return format!("  {curl} {base}/resources\n");
    };
    format!(
        "  {curl} {base}/{plural}
  {curl} -X POST {base}/{plural} -H 'Content-Type: application/json' -d '{{\"kind\":\"{kind}\",\"name\":\"first\",\"spec\":{{}}}}'
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_of_the_scheme_that_their_listener_speaks() {
        let mut settings = Settings::default();
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let addresses = Addresses {
            api: address(1),
            health: address(2),
            metrics: address(3),
        };
        let kinds = settings.kinds().unwrap().registry;
        let mut text_with = |api: bool, metrics: bool| {
            settings.server.tls.enabled = api;
            settings.metrics.tls.enabled = metrics;
            banner(&Started {
                addresses: &addresses,
                data: None,
                authentication: &Authentication::Off,
                demo: Err("--no-demo-adapter"),
                settings: &settings,
                kinds: &kinds,
            })
        };
        let plain = text_with(false, false);
        assert!(!plain.contains("https:"), "{plain}");
        let mixed = text_with(true, true);
        assert!(!mixed.contains("http://127.0.0.1:1/"), "{mixed}");
        for link in [
            "HyperFleet API     https://127.0.0.1:1/api",
            " http://127.0.0.1:2/readyz",
            " https://127.0.0.1:3/metrics",
            "curl -s https://127.0.0.1:1/api",
        ] {
            assert!(mixed.contains(link), "no {link} in: {mixed}");
        }
    }
}
