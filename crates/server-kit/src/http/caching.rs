//! `Cache-Control` and `Vary` of responses (RFC 9111).
//!
//! By default a response is for one caller at one moment, and must not be stored. A handler may set its own
//! `Cache-Control` for public responses.

use actix_web::dev::ServiceResponse;
use actix_web::http::header::{AUTHORIZATION, CACHE_CONTROL, ETAG, HeaderName, HeaderValue, VARY};
use actix_web::web::Data;

/// Not stored at all. `private` would not suffice: browsers and clients of one user could show an outdated
/// state. A client that keeps a response itself validates it by its `ETag`.
pub const FOR_ITS_CALLER: (HeaderName, HeaderValue) =
    (CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// Stored, but validated each time: it changes with the program.
pub const FOR_EVERYBODY: (HeaderName, HeaderValue) =
    (CACHE_CONTROL, HeaderValue::from_static("no-cache"));

/// Headers that identify callers, without repetitions.
#[derive(Debug, Clone)]
pub struct CallerHeaders(Vec<HeaderName>);

impl CallerHeaders {
    /// `Authorization` and these. Empty names are ignored.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut headers = vec![AUTHORIZATION];
        for name in names
            .into_iter()
            .filter_map(|name| HeaderName::try_from(name).ok())
        {
            if !headers.contains(&name) {
                headers.push(name);
            }
        }
        Self(headers)
    }
}

/// Sets `Cache-Control` and `Vary` of a response.
pub(super) fn set_cache_headers<B>(answer: &mut ServiceResponse<B>) {
    let headers = answer.headers();
    if headers.get(CACHE_CONTROL) == Some(&FOR_EVERYBODY.1) {
        return;
    }
    let (name, value) = FOR_ITS_CALLER;
    answer.headers_mut().insert(name, value);
    let callers = answer.request().app_data::<Data<CallerHeaders>>().cloned();
    for name in callers.iter().flat_map(|callers| &callers.0) {
        depends_on(answer, name);
    }
}

/// Gives the strong `ETag` of a compressed response a suffix: other bytes need another strong tag (RFC 9110, section
/// 8.8.3.3).
pub(super) fn tag_gzip<B>(response: &mut ServiceResponse<B>) {
    let tag = response.headers().get(ETAG);
    let tag = tag
        .and_then(|tag| tag.to_str().ok())
        .filter(|tag| tag.starts_with('"'));
    let Some(opened) = tag.and_then(|tag| tag.strip_suffix('"')) else {
        return;
    };
    if let Ok(tag) = HeaderValue::try_from(format!("{opened}-gzip\"")) {
        response.headers_mut().insert(ETAG, tag);
    }
}

/// Adds a header to `Vary`, unless it is present.
pub(super) fn depends_on<B>(answer: &mut ServiceResponse<B>, name: &HeaderName) {
    let said = answer.headers().get_all(VARY);
    let mut said = said
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    if said.any(|other| other.trim().eq_ignore_ascii_case(name.as_str())) {
        return;
    }
    if let Ok(value) = HeaderValue::from_str(name.as_str()) {
        answer.headers_mut().append(VARY, value);
    }
}
