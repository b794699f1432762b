//! gzip for those who accept it, and from those who send it.

use std::io::Read;

use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use flate2::read::{GzDecoder, ZlibDecoder};

use super::problem::Problem;
use crate::wire::{BASE, BODY_BYTES_MAX};

/// Leaves the compressing middleware two choices: gzip, or nothing. It would refuse a client that
/// accepts neither, and the service never refuses a client for what it accepts.
pub(super) async fn gzip_or_nothing(
    mut request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let accepts = request.headers().get(ACCEPT_ENCODING);
    let accepts = accepts
        .and_then(|value| value.to_str().ok())
        .is_some_and(accepts_gzip);
    let is_compressible = accepts && request.path().starts_with(BASE);
    let headers = request.headers_mut();
    headers.remove(ACCEPT_ENCODING);
    if is_compressible {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    next.call(request).await
}

/// A body as it was before it was packed as its headers say; unknown codings are left to whoever
/// reads it. Stops where the body becomes too large: a mebibyte can unpack to a gibibyte.
///
/// # Errors
///
/// 413 if it is too large, 400 if it is not what it says.
pub(super) fn unpacked(body: Bytes, headers: &mut HeaderMap) -> Result<Bytes, Problem> {
    let coding = headers.get(CONTENT_ENCODING);
    let coding = coding.and_then(|coding| coding.to_str().ok());
    let plain = match coding.map(str::trim) {
        Some(name)
            if ["gzip", "x-gzip"]
                .iter()
                .any(|it| name.eq_ignore_ascii_case(it)) =>
        {
            read_all(GzDecoder::new(&*body))?
        }
        Some(name) if name.eq_ignore_ascii_case("deflate") => read_all(ZlibDecoder::new(&*body))?,
        _ => return Ok(body),
    };
    // The server library would unpack it once more.
    headers.remove(CONTENT_ENCODING);
    Ok(plain)
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

/// Whether a list such as `br;q=1.0, gzip;q=0.5` has `gzip` or `*` at more than nothing (RFC 9110
/// §12.5.3). A weight that cannot be read counts as full.
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
