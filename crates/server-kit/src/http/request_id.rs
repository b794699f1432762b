use actix_web::HttpMessage;
use actix_web::http::header::HeaderName;
use uuid::Uuid;

/// The id of a request, in its response, its log lines and its audit entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(pub String);

pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest accepted request id, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;

impl RequestId {
    /// The request's id: a valid one of the caller, or else a new one. Later calls return the same.
    pub fn of(request: &impl HttpMessage) -> Self {
        if let Some(id) = request.extensions().get::<Self>() {
            return id.clone();
        }
        let sent = request.headers().get(X_REQUEST_ID);
        let sent = sent.and_then(|value| value.to_str().ok());
        let is_sane = |id: &&str| {
            (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())
                && id
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        };
        let id = sent
            .filter(is_sane)
            .map_or_else(|| Uuid::now_v7().to_string(), ToOwned::to_owned);
        request.extensions_mut().insert(Self(id.clone()));
        Self(id)
    }
}
