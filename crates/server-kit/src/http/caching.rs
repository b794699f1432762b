//! What caches on the way may do with an answer (RFC 9111).
//!
//! Answers are for one caller and of one moment: nobody keeps them. What is for everybody is what its
//! handler says so of, by a `Cache-Control` of its own; a new route is for its caller until then.

use actix_web::dev::ServiceResponse;
use actix_web::http::header::{AUTHORIZATION, CACHE_CONTROL, HeaderName, HeaderValue, VARY};
use actix_web::web::Data;

/// Nobody keeps it. `private` would not do: browsers and clients of one user might still show a state
/// that has passed, and nothing in an answer lets them ask whether it has.
pub const FOR_ITS_CALLER: (HeaderName, HeaderValue) =
    (CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// Anybody may keep it and must ask each time whether it is still so: it changes with the program.
pub const FOR_EVERYBODY: (HeaderName, HeaderValue) =
    (CACHE_CONTROL, HeaderValue::from_static("no-cache"));

/// The headers by which callers are told apart, each once.
#[derive(Debug, Clone)]
pub struct CallerHeaders(Vec<HeaderName>);

impl CallerHeaders {
    /// `Authorization`, and these. Empty names are left out.
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

/// Says who may keep an answer, and on which headers it depends.
pub(super) fn tell<B>(answer: &mut ServiceResponse<B>) {
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

/// Adds a header to those that an answer depends on, unless it is there.
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
