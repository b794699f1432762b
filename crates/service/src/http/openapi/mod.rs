//! The operations and problems of the OpenAPI document, the served document, and its page.

pub(super) mod operations;
mod page;
pub(super) mod problems;

use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use actix_web::http::header::EntityTag;
use actix_web::web::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use page::Served;
pub(super) use page::{document, file, page};

/// The document as it is served: written and compressed at its first request, for all threads. Most instances are never
/// asked for it, and a start need not wait for it.
#[derive(Clone)]
pub struct Document(Arc<LazyLock<Written, Box<dyn FnOnce() -> Written + Send>>>);

#[derive(Debug)]
struct Written {
    bytes: Served,
    tag: EntityTag,
}

impl Document {
    /// `make` makes a document of [`super::openapi_document::openapi`].
    pub fn new(make: impl FnOnce() -> Value + Send + 'static) -> Self {
        let write = move || Written::new(&make());
        Self(Arc::new(LazyLock::new(Box::new(write))))
    }
}

impl Written {
    fn new(document: &Value) -> Self {
        let plain = document.to_string();
        let digest = Sha256::digest(plain.as_bytes());
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let packed = gzip
            .write_all(plain.as_bytes())
            .and_then(|()| gzip.finish());
        Self {
            bytes: Served {
                plain: Bytes::from(plain),
                // `None` if compression failed, which it does not in memory.
                packed: packed.ok().map(Bytes::from),
            },
            // Weak: compressed or not, it is the same document.
            tag: EntityTag::new_weak(URL_SAFE_NO_PAD.encode(digest)),
        }
    }
}
