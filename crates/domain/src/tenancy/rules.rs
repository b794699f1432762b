//! The rules of tenancy: checks their configuration, and finds the tenant of a request in its headers
//! (`docs/guides/tenancy.md`).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::super::Tenancy;
use super::{Tenant, TenantRefusal, TenantScope};

pub const VALUE_BYTES_MAX: usize = 63;
/// Longest key of a dimension, in bytes. With the other two limits every tenancy fits into an entry of an index, which
/// names must (2704 bytes in PostgreSQL).
pub const KEY_BYTES_MAX: usize = 63;
pub const DIMENSIONS_MAX: usize = 8;

/// Headers that carry secrets, which responses would expose.
const FORBIDDEN: [&str; 7] = [
    "Authorization",
    "Cookie",
    "Set-Cookie",
    "X-Api-Key",
    "X-Auth-Token",
    "X-Forwarded-Authorization",
    "Proxy-Authorization",
];

/// An operator's settings of tenancy (`server.tenant`), not yet checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether requests carry a tenant.
    pub enabled: bool,
    /// Whether callers see and change only the resources of their tenant.
    pub enforce: bool,
    /// Header that marks system identities with the value `true`.
    pub system_header: String,
    pub dimensions: Vec<Dimension>,
}

/// One dimension of a tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dimension {
    /// Header that carries it.
    pub header: String,
    /// Its key in a tenancy.
    pub key: String,
    /// Whether every caller must send it.
    pub required: bool,
}

/// How requests name their tenant. The default is that they do not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenancyRules(Option<Config>);

impl TenancyRules {
    /// The rules of a configuration. Parts that are switched off are not checked.
    ///
    /// # Errors
    ///
    /// Every error, in the order of the settings.
    pub fn new(config: Config) -> Result<Self, Vec<String>> {
        if !config.enabled && !config.enforce {
            return Ok(Self(None));
        }
        let mut errors = Vec::new();
        if !config.enabled {
            let message = "needs server.tenant.enabled: true, which says who sees what";
            errors.push(error("enforce", message));
        }
        check_header("system_header", &config.system_header, &mut errors);
        check_dimensions(&config, &mut errors);
        if errors.is_empty() {
            Ok(Self(Some(config)))
        } else {
            Err(errors)
        }
    }

    /// The headers that answers depend on; none without tenancy.
    pub fn headers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|config| {
            let dimensions = config.dimensions.iter().map(|d| d.header.as_str());
            std::iter::once(config.system_header.as_str()).chain(dimensions)
        })
    }

    /// Checks that the caller may use what belongs to no tenant: every caller without tenancy, and system identities
    /// with it.
    ///
    /// # Errors
    ///
    /// A tenant.
    pub fn require_system(&self, tenant: &Tenant) -> Result<(), TenantRefusal> {
        if self.0.is_none() || tenant.is_system() {
            Ok(())
        } else {
            Err(TenantRefusal::OnlySystem)
        }
    }

    /// The tenant of a request. `values` returns all values of a header, whose name has no case.
    ///
    /// # Errors
    ///
    /// The first unsuitable header, the one of system identities first.
    pub fn resolve<'h, V>(&self, values: impl Fn(&str) -> V) -> Result<Tenant, TenantRefusal>
    where
        V: Iterator<Item = &'h [u8]>,
    {
        let Some(config) = &self.0 else {
            return Ok(Tenant::default());
        };
        let system = only(&config.system_header, values(&config.system_header))?;
        if system.is_some_and(|value| value.eq_ignore_ascii_case(b"true")) {
            return Ok(Tenant {
                is_system: true,
                ..Tenant::default()
            });
        }
        let mut tenancy = Tenancy::new();
        for Dimension {
            header,
            key,
            required,
        } in &config.dimensions
        {
            match only(header, values(header))? {
                Some(value) => {
                    tenancy.insert(key.clone(), checked(header, value)?);
                }
                None if *required => {
                    let header = header.clone();
                    return Err(TenantRefusal::Missing { header });
                }
                None => {}
            }
        }
        // At least one dimension is required, so that it is not empty.
        let tenants = if config.enforce {
            TenantScope::of(tenancy.clone())
        } else {
            TenantScope::ALL
        };
        Ok(Tenant {
            tenancy,
            tenants,
            is_system: false,
        })
    }
}

/// The one value of a header, trimmed; none if it is blank. Repeated headers are refused whatever their values: a
/// proxy may read the first and a service the last.
fn only<'h>(
    header: &str,
    mut values: impl Iterator<Item = &'h [u8]>,
) -> Result<Option<&'h [u8]>, TenantRefusal> {
    let first = values.next().map(<[u8]>::trim_ascii);
    if values.next().is_some() {
        return Err(invalid(header));
    }
    Ok(first.filter(|value| !value.is_empty()))
}

fn checked(header: &str, value: &[u8]) -> Result<String, TenantRefusal> {
    let text = std::str::from_utf8(value).map_err(|_| invalid(header))?;
    if text.len() > VALUE_BYTES_MAX || !is_plain(text) {
        return Err(invalid(header));
    }
    Ok(text.to_owned())
}

fn invalid(header: &str) -> TenantRefusal {
    TenantRefusal::Invalid {
        header: header.to_owned(),
    }
}

/// `[A-Za-z0-9._-]*`
fn is_plain(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    text.bytes().all(is_plain)
}

/// A token of RFC 9110 §5.6.2, as names of headers are.
fn is_token(text: &str) -> bool {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(is_token)
}

fn error(setting: &str, message: &str) -> String {
    format!("server.tenant.{setting}: {message}")
}

fn check_header(setting: &str, header: &str, errors: &mut Vec<String>) {
    if header.is_empty() {
        errors.push(error(setting, "is required: the name of a header"));
    } else if !is_token(header) {
        errors.push(error(setting, "is not a valid header name"));
    } else if FORBIDDEN.iter().any(|f| f.eq_ignore_ascii_case(header)) {
        let message = format!("must not be {header}: its value is secret, but tenancies are shown");
        errors.push(error(setting, &message));
    }
}

fn check_dimensions(config: &Config, errors: &mut Vec<String>) {
    let dimensions = &config.dimensions;
    if dimensions.is_empty() {
        errors.push(error("dimensions", "needs one at least"));
        return;
    }
    if dimensions.len() > DIMENSIONS_MAX {
        let message = format!("may have {DIMENSIONS_MAX} at most");
        errors.push(error("dimensions", &message));
        return;
    }
    let mut headers = BTreeSet::new();
    let mut keys = BTreeSet::new();
    for (place, dimension) in dimensions.iter().enumerate() {
        let Dimension { header, key, .. } = dimension;
        let setting = format!("dimensions[{place}].header");
        check_header(&setting, header, errors);
        let is_system = header.eq_ignore_ascii_case(&config.system_header);
        if is_system && !header.is_empty() {
            let message = "must not be the header of system identities";
            errors.push(error(&setting, message));
        }
        if !headers.insert(header.to_ascii_lowercase()) && !header.is_empty() {
            let message =
                "is also the header of another dimension (upper and lower case are equal)";
            errors.push(error(&setting, message));
        }
        let setting = format!("dimensions[{place}].key");
        if key.is_empty() {
            errors.push(error(&setting, "is required: a name for the dimension"));
        } else if key.len() > KEY_BYTES_MAX || !is_plain(key) {
            let message = format!(
                "must be {KEY_BYTES_MAX} characters at most, of A-Z, a-z, 0-9, '.', '_', '-'"
            );
            errors.push(error(&setting, &message));
        }
        if !keys.insert(key) && !key.is_empty() {
            errors.push(error(&setting, "is also the key of another dimension"));
        }
    }
    if !dimensions.iter().any(|d| d.required) {
        let message = "needs one at least with required: true";
        errors.push(error("dimensions", message));
    }
}
