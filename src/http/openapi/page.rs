//! `…/openapi`, and `…/openapi.html` with the files that it needs: all from this program, so that
//! it works without the internet.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use actix_web::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETag, IfNoneMatch, VARY,
};
use actix_web::web::{Bytes, Data, Header};
use actix_web::{HttpRequest, HttpResponse};
use flate2::read::GzDecoder;
use utoipa_swagger_ui::{Config, SwaggerFile};

use super::Document;
use hyperfleet_server_kit::http::{FOR_EVERYBODY, Problem, pieces};

/// How the page is set up: our own document, and no badge from elsewhere that says whether it is
/// valid.
static CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
    let config = Config::from("/api/hyperfleet/v1/openapi");
    Arc::new(config.use_base_layout().validator_url("none"))
});

/// `GET` of the document; 304 to those who have it.
pub(in crate::http) async fn document(
    request: HttpRequest,
    document: Data<Document>,
    // One that cannot be read is as good as none (RFC 9110 §13.1.2 asks nothing of it).
    known: Option<Header<IfNoneMatch>>,
) -> HttpResponse {
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
    answer.insert_header((VARY, "Accept-Encoding"));
    if is_known {
        return answer.finish();
    }
    answer.content_type("application/json");
    match &document.packed {
        Some(packed) if accepts_gzip(&request) => {
            answer.insert_header((CONTENT_ENCODING, "gzip"));
            pieces(answer, packed.clone())
        }
        _ => pieces(answer, document.plain.clone()),
    }
}

/// All that a middleware before has left there is gzip, or nothing.
fn accepts_gzip(request: &HttpRequest) -> bool {
    request.headers().contains_key(ACCEPT_ENCODING)
}

/// `GET` of the page.
pub(in crate::http) async fn page() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html")
        .insert_header(FOR_EVERYBODY)
        .body(include_str!("page.html"))
}

/// `GET` of a file that the page names.
pub(in crate::http) async fn file(request: HttpRequest) -> Result<HttpResponse, Problem> {
    let name = request.match_info().get("file").unwrap_or_default();
    // The library's own page would be served for no name, and is not this one.
    let is_asset = [".css", ".js", ".png"]
        .iter()
        .any(|end| name.ends_with(end));
    let found = if is_asset {
        utoipa_swagger_ui::serve(name, CONFIG.clone())
    } else {
        Ok(None)
    };
    match found {
        Ok(Some(file)) => served(&request, name, file),
        Ok(None) => Err(Problem::unknown_path(request.path())),
        Err(error) => Err(Problem::internal(error.to_string())),
    }
}

/// The file packed, where it is kept so, to those who understand it; unpacked to others.
fn served(
    request: &HttpRequest,
    name: &str,
    file: SwaggerFile<'_>,
) -> Result<HttpResponse, Problem> {
    let mut answer = HttpResponse::Ok();
    answer.insert_header(FOR_EVERYBODY);
    answer.insert_header((CONTENT_TYPE, file.content_type.clone()));
    let is_packed = file.gzpipped;
    let kept = keep(name, file)?;
    if !is_packed {
        return Ok(pieces(answer, kept.plain));
    }
    answer.insert_header((VARY, "Accept-Encoding"));
    if accepts_gzip(request) {
        answer.insert_header((CONTENT_ENCODING, "gzip"));
        return Ok(pieces(answer, kept.packed));
    }
    Ok(pieces(answer, kept.plain))
}

/// A file in the bytes that are served.
#[derive(Clone)]
struct Kept {
    packed: Bytes,
    plain: Bytes,
}

/// What was made of a file when it was first asked for: anybody may ask for it, as often as they
/// like.
fn keep(name: &str, file: SwaggerFile<'_>) -> Result<Kept, Problem> {
    static KEPT: Mutex<BTreeMap<String, Kept>> = Mutex::new(BTreeMap::new());
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = all.get(name) {
        return Ok(kept.clone());
    }
    let packed = Bytes::from(file.bytes.into_owned());
    let plain = if file.gzpipped {
        let mut bytes = Vec::new();
        let read = GzDecoder::new(&*packed).read_to_end(&mut bytes);
        read.map_err(|error| Problem::internal(error.to_string()))?;
        bytes.into()
    } else {
        packed.clone()
    };
    let kept = Kept { packed, plain };
    all.insert(name.to_owned(), kept.clone());
    Ok(kept)
}
