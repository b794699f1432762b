//! Reads key sets from an address or a file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Request, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;
use strum::{IntoStaticStr, VariantNames};
use tracing::Instrument as _;

use super::key::Key;
use super::pace::Pace;
use hyperfleet_server_kit::causes::chain;
use hyperfleet_server_kit::files;
use hyperfleet_server_kit::telemetry::{TraceContext, client_span};

pub const KEY_SET_BYTES_MAX: u64 = 1024 * 1024;
/// Media types of a key set (RFC 7517 §8.5). Kubernetes publishes the first and refuses a request that names only the
/// second; some issuers send neither.
const MEDIA_TYPES: &str = "application/jwk-set+json, application/json;q=0.9, */*;q=0.1";
/// Keys in a set at most, usable or not.
pub const KEYS_MAX: usize = 100;
/// Names of keys up to this length appear in messages, in characters.
const KID_EXCERPT_MAX: usize = 64;

/// An address of keys, with the client for it.
#[derive(Debug)]
pub(super) struct KeyAddress {
    pub(super) url: Url,
    pub(super) client: Client,
    /// File with the bearer token to send.
    pub(super) token_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Published {
    /// The document of the key set.
    pub(super) text: Vec<u8>,
    /// The usable keys.
    pub(super) keys: Vec<Arc<Key>>,
    /// Why each of the others is unusable.
    pub(super) skipped: Vec<String>,
}

/// Why there is no key set; the name is the outcome in metrics. The earlier key set stays in use.
#[derive(Debug, thiserror::Error, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub(super) enum FetchError {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("it does not answer in time")]
    Timeout,
    #[error("it answers {0}: check jwk_cert_token_file, the bearer token that it wants")]
    Denied(StatusCode),
    #[error("it answers {0}")]
    Status(StatusCode),
    #[error("it is larger than {KEY_SET_BYTES_MAX} bytes")]
    TooLarge,
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("jwk_cert_token_file {0}")]
    #[strum(serialize = "unreadable")]
    Token(String),
    #[error("it is not a JSON object with an array `keys`")]
    #[strum(serialize = "invalid")]
    Malformed,
    #[error("it has more than {KEYS_MAX} keys")]
    #[strum(serialize = "invalid")]
    TooMany,
    /// No key is usable; the reason of each.
    #[error("{0}")]
    Empty(String),
}

/// The outcome without an error.
pub(super) const SUCCESS: &str = "success";

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Timeout;
        }
        // The address may hold a password; the causes say more anyway.
        Self::Unreachable(chain(&error.without_url()))
    }
}

/// A client that follows no redirects: only the configured address is trusted to answer.
pub(super) fn client(
    url: &Url,
    authorities: Vec<Certificate>,
    pace: Pace,
) -> reqwest::Result<Client> {
    hyperfleet_server_kit::crypto::install();
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .connect_timeout(pace.connect)
        .timeout(pace.fetch)
        .referer(false);
    // Plain HTTP needs no authorities, so the system's may be missing.
    builder = if url.scheme() == "https" {
        builder.tls_certs_merge(authorities)
    } else {
        builder.tls_certs_only([])
    };
    // A proxy resolves this machine's names to itself.
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// Whether an address is on this machine, judged only by its name.
pub(super) fn is_loopback(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Fetches the key set at an address, in a span below the one of the request that asks for it.
pub(super) async fn fetch(
    address: &KeyAddress,
    asked_by: &TraceContext,
) -> Result<Published, FetchError> {
    let mut request = address.client.get(address.url.clone());
    request = request.header(ACCEPT, MEDIA_TYPES);
    if let Some(path) = address.token_file.clone() {
        let token = tokio::task::spawn_blocking(move || read_token(&path)).await;
        let token = token.unwrap_or_else(|error| Err(error.to_string()));
        request = request.header(AUTHORIZATION, token.map_err(FetchError::Token)?);
    }
    let mut request = request.build()?;
    let span = client_span(&mut request, asked_by);
    let result = send(&address.client, request)
        .instrument(span.clone())
        .await;
    if let Err(error) = &result {
        span.record("error.type", <&str>::from(error));
        span.record("otel.status_code", "error");
    }
    result
}

/// Reads the credentials to send from a file with a bearer token; what is wrong begins with its name. Kubernetes replaces
/// such files before their tokens expire.
pub(super) fn read_token(path: &Path) -> Result<HeaderValue, String> {
    let file = path.display();
    let text = read(path).map_err(|error| format!("{file}: {error}"))?;
    let token = str::from_utf8(&text).unwrap_or_default().trim();
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let value = HeaderValue::try_from(format!("Bearer {token}"));
    let value = value.ok().filter(|_| is_token);
    let mut value = value.ok_or_else(|| format!("{file} holds no token"))?;
    value.set_sensitive(true);
    Ok(value)
}

async fn send(client: &Client, request: Request) -> Result<Published, FetchError> {
    let mut answer = client.execute(request).await?;
    match answer.status() {
        StatusCode::OK => {}
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            return Err(FetchError::Denied(status));
        }
        status => return Err(FetchError::Status(status)),
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() as u64 > KEY_SET_BYTES_MAX {
            return Err(FetchError::TooLarge);
        }
    }
    parse(body)
}

/// Reads a file up to the largest size of a key set. Follows links: Kubernetes changes mounted files by swapping one.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, FetchError> {
    // Reading a pipe would wait.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file").into());
    }
    files::read(path, KEY_SET_BYTES_MAX).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => FetchError::TooLarge,
        _ => error.into(),
    })
}

/// Reads a key set. Ignores keys for other purposes: an issuer may publish kinds of keys that do not exist yet.
pub(super) fn parse(text: Vec<u8>) -> Result<Published, FetchError> {
    #[derive(Deserialize)]
    struct Jwks {
        keys: Vec<Value>,
    }
    let set: Jwks = serde_json::from_slice(&text).map_err(|_| FetchError::Malformed)?;
    if set.keys.len() > KEYS_MAX {
        return Err(FetchError::TooMany);
    }
    let (mut keys, mut skipped) = (Vec::new(), Vec::new());
    for (index, value) in set.keys.into_iter().enumerate() {
        let name = match value.get("kid").and_then(Value::as_str) {
            Some(kid) => format!(
                "{:?}",
                kid.chars().take(KID_EXCERPT_MAX).collect::<String>()
            ),
            None => format!("number {index}"),
        };
        match Key::new(value) {
            Ok(key) => keys.push(Arc::new(key)),
            Err(why) => skipped.push(format!("key {name}: {why}")),
        }
    }
    if keys.is_empty() {
        skipped.insert(0, "it has no usable key".to_owned());
        return Err(FetchError::Empty(skipped.join("; ")));
    }
    Ok(Published {
        text,
        keys,
        skipped,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What RFC 7517 allows in a set, and what issuers publish beside it.
    #[test]
    fn other_members_and_other_keys_leave_a_key_usable() {
        let x = "B".repeat(42) + "A";
        let good = json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "e", "use": "sig", "alg": "EdDSA",
            "key_ops": ["verify", "wrapKey"], "x5c": ["MIIB"], "x5t": "x", "x5t#S256": "x", "x5u": "https://x",
            "exp": 1, "issuer": {"any": ["thing"]}});
        let bare =
            json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": null, "alg": null, "use": null});
        let others = json!([
            {"kty": "AKP", "alg": "ML-DSA-44", "pub": "x"}, {"kty": "OKP", "crv": "X25519", "x": x},
            {"kty": "EC", "crv": "secp256k1", "x": x, "y": x}, {"kty": "RSA", "use": "enc", "n": "x", "e": "AQAB"},
            {"kty": "RSA"}, {"kty": 1}, {"kid": "no kind"}, {"kty": "OKP", "key_ops": "verify"},
            {"kty": "oct", "k": "AQAB"}, {}, null, "x", 1, [],
        ]);
        let mut keys = others.as_array().unwrap().clone();
        keys.splice(7..7, [good, bare]);
        let set = json!({"keys": keys, "expires": 1, "next": {"any": "thing"}});
        let read = parse(set.to_string().into_bytes()).unwrap();
        assert_eq!((read.keys.len(), read.skipped.len()), (2, 14), "{read:?}");
    }

    #[test]
    fn a_set_is_what_can_be_used_of_it() {
        let x = "B".repeat(42) + "A";
        let good = json!({"kty": "OKP", "crv": "Ed25519", "kid": "e", "x": x});
        let oct = json!({"kty": "oct", "kid": "o", "k": "AQAB"});
        let read = |set: Value| parse(set.to_string().into_bytes());
        let error = |set: Value| read(set).unwrap_err().to_string();
        let mixed = read(json!({"keys": [oct, good]})).unwrap();
        assert_eq!(mixed.keys.len(), 1);
        assert_eq!(mixed.skipped, ["key \"o\": it is symmetric"]);
        let none = "it has no usable key";
        let why = format!("{none}; key \"o\": it is symmetric; key number 1: it is not a JWK");
        assert_eq!(error(json!({"keys": [oct, 1]})), why);
        assert_eq!(error(json!({"keys": []})), none);
        let malformed = FetchError::Malformed.to_string();
        assert_eq!(error(json!({"keys": {}})), malformed);
        assert_eq!(error(json!([])), malformed);
        let many = vec![good; KEYS_MAX + 1];
        assert_eq!(
            error(json!({"keys": many})),
            FetchError::TooMany.to_string()
        );
    }
}
