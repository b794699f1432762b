//! gzip for clients that accept it, and from clients that send it.

use std::io::Read;

use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use flate2::read::{GzDecoder, ZlibDecoder};

use super::caching;
use super::problem::{BODY_BYTES_MAX, Problem};

/// Accepted encodings of a body.
pub const UNDERSTOOD: [&str; 3] = ["gzip", "deflate", "identity"];

/// The `Content-Encoding` of a response that must not be compressed.
pub const PLAIN: HeaderValue = HeaderValue::from_static("identity");

/// The encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    Deflate,
}

/// Restricts the compressing middleware to gzip, for paths below `base`, or no compression. It would refuse a
/// client that accepts neither; this service never does.
pub async fn gzip_below(
    base: &str,
    mut request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let is_below = request.path().starts_with(base);
    let accepts = request.headers().get(ACCEPT_ENCODING);
    let accepts = accepts
        .and_then(|value| value.to_str().ok())
        .is_some_and(accepts_gzip);
    let headers = request.headers_mut();
    headers.remove(ACCEPT_ENCODING);
    if accepts && is_below {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let mut response = next.call(request).await?;
    // The response asks not to be compressed: it must not wait until there is enough to compress.
    let is_plain = response.headers().get(CONTENT_ENCODING) == Some(&PLAIN);
    if is_plain {
        response.headers_mut().remove(CONTENT_ENCODING);
    }
    let is_packed = response.headers().contains_key(CONTENT_ENCODING);
    // A 304 has the headers that the response with a body would have.
    let is_not_modified = response.status() == StatusCode::NOT_MODIFIED;
    if accepts && is_below && (is_packed || is_not_modified) {
        caching::tag_gzip(&mut response);
    }
    // Problems are never compressed, and responses without a body cannot be.
    let can_be_packed =
        response.status().is_success() && response.headers().contains_key(CONTENT_TYPE);
    if is_below && !is_plain && (can_be_packed || is_not_modified) {
        caching::depends_on(&mut response, &ACCEPT_ENCODING);
    }
    Ok(response)
}

impl Packing {
    /// The encoding named by these headers.
    ///
    /// # Errors
    /// 415 (RFC 9110 §15.5.16) for an unknown encoding or several: read without decoding, the body would be
    /// misunderstood.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let lines: Vec<_> = headers.get_all(CONTENT_ENCODING).collect();
        let line = match lines[..] {
            [] => return Ok(Self::Plain),
            [line] => line,
            _ => return Err(Problem::packed("more than one", &UNDERSTOOD)),
        };
        let coding = String::from_utf8_lossy(line.as_bytes()).to_ascii_lowercase();
        match coding.trim() {
            "" | "identity" => Ok(Self::Plain),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "deflate" => Ok(Self::Deflate),
            other => Err(Problem::packed(other, &UNDERSTOOD)),
        }
    }

    /// Decompresses a body. Stops where it becomes too large: a mebibyte can expand to a gibibyte.
    ///
    /// # Errors
    /// 413 if it is too large, 400 if it is not in this encoding.
    pub(super) fn unpacked(self, body: Bytes) -> Result<Bytes, Problem> {
        match self {
            Self::Plain => Ok(body),
            Self::Gzip => read_all(GzDecoder::new(&*body)),
            Self::Deflate => read_all(ZlibDecoder::new(&*body)),
        }
    }
}

fn read_all(packed: impl Read) -> Result<Bytes, Problem> {
    let mut plain = Vec::new();
    let most = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX);
    let read = packed.take(most.saturating_add(1)).read_to_end(&mut plain);
    read.map_err(|error| Problem::of(&PayloadError::Io(error).into()))?;
    if plain.len() > BODY_BYTES_MAX {
        return Err(Problem::too_large());
    }
    Ok(plain.into())
}

/// Whether a list such as `br;q=1.0, gzip;q=0.5` accepts `gzip` or `*` (RFC 9110 §12.5.3). An unreadable weight
/// counts as 1.
fn accepts_gzip(list: &str) -> bool {
    list.split(',').any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let weight = parts.find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q=")));
        let weight = weight.and_then(|q| q.parse::<f32>().ok()).unwrap_or(1.0);
        (coding.eq_ignore_ascii_case("gzip") || coding == "*") && weight > 0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_by_name_or_star() {
        for (list, accepted) in [
            ("gzip", true),
            ("GZIP", true),
            ("br, gzip;q=0.5", true),
            ("*", true),
            ("gzip;q=0, *;q=0.1", true),
            ("gzip;q=x", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("br", false),
            ("identity;q=0", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(list), accepted, "{list:?}");
        }
    }
}
