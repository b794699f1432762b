//! From settings to a connection to etcd: checks before the start, and messages while etcd is away.

mod diagnosis;
mod watch;

use std::path::Path;

use anyhow::{Context as _, bail};
use reqwest::Url;

use crate::etcd::{Credentials, EtcdTls, Identity, InvalidSettings, Settings};
use crate::settings::Etcd;
use hyperfleet_server_kit::errors::ErrorList;
use hyperfleet_server_kit::settings::Secret;
use hyperfleet_server_kit::{files, tls};

pub(super) use watch::log_connection;

const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Names of the settings, for messages.
pub struct SettingNames {
    pub endpoints: &'static str,
    pub username: &'static str,
    pub password: &'static str,
    pub ca_file: &'static str,
    pub cert_file: &'static str,
    pub key_file: &'static str,
}

/// The connection settings of the configuration. Reads the named files, and contacts no server.
///
/// # Errors
/// Every invalid setting, one per line, with its name.
pub fn settings(etcd: &Etcd, password: &Secret, names: &SettingNames) -> anyhow::Result<Settings> {
    let mut faults = ErrorList::default();
    for url in &etcd.endpoints {
        faults.part(endpoint(url).map_err(|fault| anyhow::anyhow!("{}: {fault}", names.endpoints)));
    }
    let credentials = faults.part(credentials(etcd, password, names)).flatten();
    let authorities = faults.part(authorities(&etcd.ca_file, names)).flatten();
    let identity = faults.part(identity(etcd, names)).flatten();
    let server_name = Some(etcd.server_name.clone()).filter(|name| !name.is_empty());
    let is_tls = authorities.is_some() || identity.is_some() || server_name.is_some();
    let settings = Settings {
        credentials,
        tls: is_tls.then(|| EtcdTls {
            authorities_pem: authorities.unwrap_or_default(),
            identity,
            server_name,
        }),
        request_timeout: etcd.request_timeout,
        connect_timeout: etcd.request_timeout.min(CONNECT_TIME_MAX),
        ..Settings::plain(etcd.endpoints.clone())
    };
    // Consequences of another fault are not reported.
    if faults.0.is_empty() {
        let checked = settings.check().map_err(|fault| named(fault, names));
        faults.part(checked);
    }
    faults.refuse()?;
    Ok(settings)
}

/// Connection timeout where calls may take longer: the next server may answer.
const CONNECT_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(2);

/// The message for an invalid setting, with its name.
fn named(fault: InvalidSettings, names: &SettingNames) -> anyhow::Error {
    let about = match fault {
        InvalidSettings::NoEndpoint | InvalidSettings::Schemes => names.endpoints,
        InvalidSettings::NoAuthorities | InvalidSettings::UselessTls => names.ca_file,
    };
    anyhow::anyhow!("{about}: {fault}")
}

/// Checks the URL of a server. It may contain a password by mistake, so the message does not repeat it.
fn endpoint(text: &str) -> Result<(), String> {
    if text.contains('@') {
        return Err("a URL of etcd must not contain a user or password".to_owned());
    }
    let url = text.parse::<Url>().ok();
    let is_good = url.is_some_and(|url| {
        ["http", "https"].contains(&url.scheme())
            && url.has_host()
            && ["", "/"].contains(&url.path())
            && url.query().is_none()
            && url.fragment().is_none()
    });
    if is_good {
        return Ok(());
    }
    Err(format!(
        "{text:?} is no server of etcd: give http://host:port or https://host:port"
    ))
}

fn credentials(
    etcd: &Etcd,
    password: &Secret,
    names: &SettingNames,
) -> anyhow::Result<Option<Credentials>> {
    let in_file = read(&etcd.password_file, names.password)?;
    let password = match in_file {
        Some(bytes) => {
            let text = String::from_utf8(bytes).ok();
            let text = text.with_context(|| format!("{}: it is no UTF-8", names.password))?;
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
        None => password.expose().to_owned(),
    };
    match (etcd.username.is_empty(), password.is_empty()) {
        (true, true) => Ok(None),
        (false, false) => Ok(Some(Credentials {
            user: etcd.username.clone(),
            password,
        })),
        (true, false) => bail!("{} is given, but {} is not", names.password, names.username),
        (false, true) => bail!("{} is given, but {} is not", names.username, names.password),
    }
}

fn authorities(file: &Path, names: &SettingNames) -> anyhow::Result<Option<Vec<u8>>> {
    let Some(pem) = read(file, names.ca_file)? else {
        return Ok(None);
    };
    tls::authorities(&pem)
        .with_context(|| format!("{}: cannot use {}", names.ca_file, file.display()))?;
    Ok(Some(pem))
}

fn identity(etcd: &Etcd, names: &SettingNames) -> anyhow::Result<Option<Identity>> {
    let certificate = read(&etcd.cert_file, names.cert_file)?;
    let key = read(&etcd.key_file, names.key_file)?;
    let (certificate_pem, key_pem) = match (certificate, key) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        _ => bail!(
            "{} and {} go together: set both, or none",
            names.cert_file,
            names.key_file
        ),
    };
    tls::check_pair(&certificate_pem, &key_pem).with_context(|| {
        let (cert, key) = (etcd.cert_file.display(), etcd.key_file.display());
        format!("{}: cannot use {cert} with {key}", names.cert_file)
    })?;
    Ok(Some(Identity {
        certificate_pem,
        key_pem,
    }))
}

/// The content of a file, if one is set.
fn read(file: &Path, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
    if file.as_os_str().is_empty() {
        return Ok(None);
    }
    let read = files::read(file, FILE_BYTES_MAX);
    let read = read.with_context(|| format!("{name}: cannot read {}", file.display()))?;
    Ok(Some(read))
}

#[cfg(test)]
mod tests;
