//! gzip for clients that accept it, and from clients that send it.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read};

use actix_web::Error;
use actix_web::body::{BodySize, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use flate2::{Compress, Compression, FlushCompress, Status};

use super::caching;
use super::pieces::PIECE;
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

/// Compresses a response whose body is one piece in memory, if the client accepts gzip ([`gzip_below`] has reduced
/// `Accept-Encoding`). Head and body are then sent in one write, with a length. The compressing middleware, which
/// compresses larger bodies, writes the head first and compresses on another thread.
pub async fn gzip_in_place(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, Bytes>>, Error> {
    let accepts = request.headers().contains_key(ACCEPT_ENCODING);
    let response = next.call(request).await?;
    let is_error = response.response().error().is_some();
    let is_encoded = response.headers().contains_key(CONTENT_ENCODING);
    if !accepts || is_error || is_encoded {
        return Ok(response.map_into_left_body());
    }
    Ok(response.map_body(|head, body| {
        let is_small = matches!(body.size(), BodySize::Sized(bytes @ 1..) if bytes <= PIECE as u64);
        if !is_small {
            return EitherBody::left(body);
        }
        let plain = match body.try_into_bytes() {
            Ok(plain) => plain,
            Err(body) => return EitherBody::left(body),
        };
        EitherBody::right(match gzip(&plain) {
            Some(packed) => {
                let gzip = HeaderValue::from_static("gzip");
                head.headers_mut().insert(CONTENT_ENCODING, gzip);
                packed
            }
            None => plain,
        })
    }))
}

/// Compresses a small body. `None` if the library reports an error, which it has no reason for.
fn gzip(plain: &[u8]) -> Option<Bytes> {
    thread_local! {
        /// A new one allocates a quarter of a mebibyte, which takes longer than to compress a resource.
        static GZIP: RefCell<Compress> = RefCell::new(Compress::new_gzip(Compression::fast(), 15));
    }
    GZIP.with_borrow_mut(|gzip| {
        gzip.reset();
        // Deflate stores what it cannot compress, in blocks with a few bytes of overhead each.
        let mut packed = Vec::with_capacity(plain.len() + plain.len() / 64 + 64);
        let status = gzip.compress_vec(plain, &mut packed, FlushCompress::Finish);
        matches!(status, Ok(Status::StreamEnd)).then(|| packed.into())
    })
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
    /// A gzip body is one member or several (RFC 1952, section 2.2), and nothing else may follow.
    ///
    /// # Errors
    /// 413 if it is too large, 400 if it is not in this encoding.
    pub(super) fn unpacked(self, body: Bytes) -> Result<Bytes, Problem> {
        match self {
            Self::Plain => Ok(body),
            Self::Gzip => read_all(MultiGzDecoder::new(&*body)),
            Self::Deflate => {
                let mut packed = ZlibDecoder::new(&*body);
                let plain = read_all(&mut packed)?;
                if !packed.into_inner().is_empty() {
                    let error = io::Error::new(ErrorKind::InvalidData, "bytes after the stream");
                    return Err(malformed(error));
                }
                Ok(plain)
            }
        }
    }
}

fn read_all(packed: impl Read) -> Result<Bytes, Problem> {
    let mut plain = Vec::new();
    let most = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX);
    let read = packed.take(most.saturating_add(1)).read_to_end(&mut plain);
    read.map_err(malformed)?;
    if plain.len() > BODY_BYTES_MAX {
        return Err(Problem::too_large());
    }
    Ok(plain.into())
}

fn malformed(error: io::Error) -> Problem {
    Problem::of(&PayloadError::Io(error).into())
}

/// Whether a list such as `br;q=1.0, gzip;q=0.5` accepts `gzip`; `*` stands for it if the list does not name it (RFC
/// 9110, section 12.5.3). An unreadable weight counts as 1.
fn accepts_gzip(list: &str) -> bool {
    let weight_of = |name: &str| {
        let entry = list.split(',').find_map(|entry| {
            let (coding, parameters) = entry.split_once(';').unwrap_or((entry, ""));
            coding
                .trim()
                .eq_ignore_ascii_case(name)
                .then_some(parameters)
        })?;
        Some(weight(entry))
    };
    let gzip = weight_of("gzip").or_else(|| weight_of("*"));
    gzip.is_some_and(|weight| weight > 0.0)
}

/// The weight in the parameters of a list's entry, such as `q=0.5` (RFC 9110, section 12.4.2). An unreadable one counts
/// as 1.
pub fn weight(parameters: &str) -> f32 {
    let mut parameters = parameters.split(';').map(str::trim);
    let weight = parameters.find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q=")));
    weight.and_then(|q| q.parse().ok()).unwrap_or(1.0)
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
            ("gzip;q=0, *;q=0.1", false),
            ("*;q=0, gzip", true),
            ("identity;q=0.5, *;q=0", false),
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
