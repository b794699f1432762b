//! Headers of changes: `If-Match`, `If-None-Match`, `Idempotency-Key`, and the `Content-Type` of a patch.

use actix_web::HttpResponse;
use actix_web::http::header::{
    CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH, VARY,
};

use super::problem::unsupported_patch;
use super::request::Call;
use super::watching::name_position;
use crate::app;
use crate::wire::{self, PatchFormat};
use hyperfleet_domain::StoredResource;
use hyperfleet_domain::audit::ChangeOrigin;
use hyperfleet_domain::change::ChangePosition;
use hyperfleet_domain::idempotency::{IdempotencyKey, KeyedRequest};
use hyperfleet_domain::precondition::{EntityTag, PreconditionOutcome, Preconditions};
use hyperfleet_server_kit::http::Problem;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl Call {
    /// What the request demands of the state of its resource.
    pub(super) fn preconditions(&self) -> Result<Preconditions, Problem> {
        let conditions = Preconditions::parse(self.lines(&IF_MATCH), self.lines(&IF_NONE_MATCH));
        conditions.map_err(|violation| app::Error::from(violation).into())
    }

    /// The key of the request, if it has one, with all that makes a repetition of it. It belongs to the tenant and the
    /// caller.
    pub(super) fn keyed(
        &self,
        body: &[u8],
        origin: &ChangeOrigin,
    ) -> Result<Option<KeyedRequest>, Problem> {
        self.keyed_in(PatchFormat::Parts, body, origin)
    }

    /// As [`Call::keyed`], for a patch. The same bytes in another format are another request.
    pub(super) fn keyed_in(
        &self,
        format: PatchFormat,
        body: &[u8],
        origin: &ChangeOrigin,
    ) -> Result<Option<KeyedRequest>, Problem> {
        let key = IdempotencyKey::parse(self.lines(&IDEMPOTENCY_KEY)).map_err(app::Error::from)?;
        let method = self.request.method().as_str();
        let media_type = (format != PatchFormat::Parts).then_some(format.media_type());
        Ok(key.map(|key| KeyedRequest {
            tenancy: self.tenant.tenancy().clone(),
            caller: origin.actor.clone(),
            key,
            fingerprint: wire::fingerprint(method, media_type, &self.real_target(), body),
            at: origin.at,
        }))
    }

    /// The format of the body of a patch.
    ///
    /// # Errors
    ///
    /// `Content-Type` names none, or several.
    pub(super) fn patch_format(&self) -> Result<PatchFormat, Problem> {
        let types: Vec<_> = self
            .lines(&CONTENT_TYPE)
            .map(String::from_utf8_lossy)
            .collect();
        let format = match types.as_slice() {
            [] => Some(PatchFormat::Parts),
            [only] => PatchFormat::of(only),
            _ => None,
        };
        format.ok_or_else(|| unsupported_patch(&types.join(", ")))
    }

    fn lines(&self, name: &HeaderName) -> impl Iterator<Item = &[u8]> {
        let lines = self.request.headers().get_all(name);
        lines.map(HeaderValue::as_bytes)
    }
}

/// 304 for a client that has the resource in this state, 412 for a client that requires another state, `None` if the
/// resource is to be sent. A watch from `position` misses nothing after this response.
pub(super) fn evaluate_preconditions(
    conditions: &Preconditions,
    found: &StoredResource,
    position: Option<ChangePosition>,
) -> Option<Result<HttpResponse, Problem>> {
    let tag = found.tag();
    match conditions.check(tag) {
        PreconditionOutcome::Holds => None,
        PreconditionOutcome::NotModified => Some(Ok(not_modified(tag, position))),
        PreconditionOutcome::Failed => {
            let failed = app::Error::Precondition {
                kind: found.kind.clone(),
                id: found.id,
                tag,
            };
            Some(Err(failed.into()))
        }
    }
}

/// The headers of the 200 that a 304 replaces (RFC 9110, section 15.4.5).
fn not_modified(tag: EntityTag, position: Option<ChangePosition>) -> HttpResponse {
    let mut answer = HttpResponse::NotModified();
    answer
        .insert_header((VARY, "Authorization"))
        .insert_header((ETAG, tag.to_string()));
    name_position(position, &mut answer);
    answer.finish()
}
