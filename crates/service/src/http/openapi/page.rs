//! `…/openapi`, and `…/openapi.html` with its files: all from this program, so that it works without the internet.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use actix_web::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETag, HeaderName, IfNoneMatch, VARY,
};
use actix_web::web::{Bytes, Data, Header};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use flate2::read::GzDecoder;
use utoipa_swagger_ui::{Config, SwaggerFile};

use super::Document;
use hyperfleet_server_kit::http::{FOR_EVERYBODY, Problem, pieces};

const VARIES: (HeaderName, &str) = (VARY, "Accept-Encoding");

/// Shows our own document, without a badge of an external validator.
static CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
    let config = Config::from("/api/hyperfleet/v1/openapi");
    Arc::new(config.use_base_layout().validator_url("none"))
});

/// Bytes to serve, and their gzip form if there is one.
#[derive(Debug, Clone)]
pub(super) struct Served {
    pub(super) plain: Bytes,
    pub(super) packed: Option<Bytes>,
}

impl Served {
    /// Compressed for clients that accept it. Middleware has reduced `Accept-Encoding` to gzip or nothing.
    fn answer(self, request: &HttpRequest, mut answer: HttpResponseBuilder) -> HttpResponse {
        let Some(packed) = self.packed else {
            return pieces(answer, self.plain);
        };
        answer.insert_header(VARIES);
        if !request.headers().contains_key(ACCEPT_ENCODING) {
            return pieces(answer, self.plain);
        }
        answer.insert_header((CONTENT_ENCODING, "gzip"));
        pieces(answer, packed)
    }
}

/// `GET`: the document; 304 if the client has it.
pub(in crate::http) async fn document(
    request: HttpRequest,
    document: Data<Document>,
    // An unreadable value counts as absent (RFC 9110 §13.1.2 requires nothing else).
    known: Option<Header<IfNoneMatch>>,
) -> HttpResponse {
    let document = &*document.0;
    let is_known = match known.as_deref() {
        Some(IfNoneMatch::Any) => true,
        Some(IfNoneMatch::Items(tags)) => tags.iter().any(|tag| tag.weak_eq(&document.tag)),
        None => false,
    };
    let mut answer = if is_known {
        HttpResponse::NotModified()
    } else {
        HttpResponse::Ok()
    };
    answer.insert_header(FOR_EVERYBODY);
    answer.insert_header(ETag(document.tag.clone()));
    if is_known {
        return answer.insert_header(VARIES).finish();
    }
    answer.content_type("application/json");
    document.bytes.clone().answer(&request, answer)
}

pub(in crate::http) async fn page() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html")
        .insert_header(FOR_EVERYBODY)
        .body(include_str!("page.html"))
}

/// `GET`: a file of the page.
pub(in crate::http) async fn file(request: HttpRequest) -> Result<HttpResponse, Problem> {
    let name = request.match_info().get("file").unwrap_or_default();
    // The library serves its own page for an empty name, which is not this page.
    let is_asset = [".css", ".js", ".png"]
        .iter()
        .any(|end| name.ends_with(end));
    let found = if is_asset {
        utoipa_swagger_ui::serve(name, CONFIG.clone())
    } else {
        Ok(None)
    };
    match found {
        Ok(Some(file)) => {
            let mut answer = HttpResponse::Ok();
            answer.insert_header(FOR_EVERYBODY);
            answer.insert_header((CONTENT_TYPE, file.content_type.clone()));
            Ok(unpack_once(name, file)?.answer(&request, answer))
        }
        Ok(None) => Err(Problem::unknown_path(request.path())),
        Err(error) => Err(Problem::internal(error.to_string())),
    }
}

/// Stores the result of a file's first request: any client may ask for it, any number of times.
fn unpack_once(name: &str, file: SwaggerFile<'_>) -> Result<Served, Problem> {
    static UNPACKED: Mutex<BTreeMap<String, Served>> = Mutex::new(BTreeMap::new());
    let mut all = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(unpacked) = all.get(name) {
        return Ok(unpacked.clone());
    }
    let bytes = Bytes::from(file.bytes.into_owned());
    let unpacked = if file.gzpipped {
        let mut plain = Vec::new();
        let read = GzDecoder::new(&*bytes).read_to_end(&mut plain);
        read.map_err(|error| Problem::internal(error.to_string()))?;
        Served {
            plain: plain.into(),
            packed: Some(bytes),
        }
    } else {
        Served {
            plain: bytes,
            packed: None,
        }
    };
    all.insert(name.to_owned(), unpacked.clone());
    Ok(unpacked)
}
