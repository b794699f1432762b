//! Parts of a request other than its path.

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use actix_web::web;

use super::Fault;
use hyperfleet_fleet_model::wire::Query;

/// Checks the `Content-Type` as the older server did: exactly one header, in exactly this case, parameters
/// ignored.
///
/// # Errors
/// 415.
pub(super) fn check_media_type(headers: &HeaderMap) -> Result<(), Fault> {
    let refused = |message: String| Err(Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    let given: Vec<&HeaderValue> = headers.get_all(CONTENT_TYPE).collect();
    let [given] = given[..] else {
        return refused(format!("expected 1 Content-Type, got {}", given.len()));
    };
    let media = given.as_bytes().split(|byte| *byte == b';').next();
    if media.unwrap_or_default().trim_ascii() == b"application/json" {
        Ok(())
    } else {
        refused("only acceptable Content-Type is application/json".to_owned())
    }
}

pub(super) fn query(request: &HttpRequest) -> Query {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    Query(pairs.map(web::Query::into_inner).unwrap_or_default())
}
