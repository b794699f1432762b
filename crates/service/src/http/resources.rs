//! Resources of every kind: list, create, read, patch, delete.

use actix_web::HttpResponse;
use actix_web::http::header::ETAG;
use actix_web::web::Bytes;
use strum::IntoEnumIterator as _;

use super::conditional::evaluate_preconditions;
use super::request::Call;
use super::{history, watching};
use crate::app::{self, Collection, Command, ListRequest};
use crate::wire::{self, BodyError, Fields, Kinds, ListKey, Params, Views};
use hyperfleet_domain::ListFilterKind;
use hyperfleet_server_kit::http::{PendingResponse, Problem, log_body};

/// `GET`: a list, or a watch of it.
pub(super) async fn list(call: Call) -> Result<HttpResponse, Problem> {
    let collection = call.collection()?;
    if let Some(start) = watching::start(&call)? {
        return watching::watch(call, start).await;
    }
    let (service, tenants) = (&call.service, call.tenants());
    let params = call.params()?;
    let read = list_request(&call, collection, &params);
    let read = read.and_then(|read| Ok((read, params.at()?)));
    let ((request, key, fields), at) = match read {
        Ok(request) => request,
        Err(error) => {
            // A missing owner takes precedence over an invalid parameter.
            let service = call.timed_service();
            service.require_collection(tenants, collection).await?;
            return Err(error);
        }
    };
    let response = PendingResponse::of_page(&call.request, request.page.size)?;
    let timed = call.timed_service();
    let mut answer = HttpResponse::Ok();
    if at.is_none() {
        // Read first: a watch from here misses nothing that the list does not show.
        watching::name_position(call.service.position(), &mut answer);
    }
    let listing = match at {
        None => timed.list(tenants, collection, request).await?,
        Some(at) => timed.list_at(tenants, collection, request, at).await?,
    };
    let kind = collection.entity().map(|entity| entity.kind.as_str());
    let views = Views(service.registry());
    response.item(answer, &views.resources(kind, listing, &key, fields))
}

/// `POST` to a list.
pub(super) async fn create(call: Call, body: Bytes) -> Result<HttpResponse, Problem> {
    log_body(&call.request, &body);
    let is_dry_run = call.is_dry_run()?;
    let collection = call.collection()?;
    let registry = call.service.registry();
    let kinds = collection.entity().map_or(Kinds::Any(registry), Kinds::One);
    let parent = match collection {
        Collection::Owned {
            parent, parent_id, ..
        } => Some((parent, parent_id)),
        Collection::All | Collection::Kind(_) => None,
    };
    let read = wire::resource(&body, kinds);
    if let (Err(BodyError::Invalid(_)), Collection::All) = (&read, collection) {
        // A wrong path takes precedence over other errors.
        let kind = wire::kind_of(&body).and_then(|kind| registry.get(&kind));
        kind.map_or(Ok(()), |kind| call.service.require_root(kind))?;
    }
    let (entity, new) = read?;
    let origin = call.origin()?;
    let key = call.keyed(&body, &origin)?;
    let command = Command::Create {
        entity,
        parent,
        new,
    };
    call.change(command, &origin, key.as_ref(), is_dry_run)
        .await
}

/// `GET`: one resource.
pub(super) async fn get(call: Call) -> Result<HttpResponse, Problem> {
    let conditions = call.preconditions()?;
    let params = call.params()?;
    if let Some(moment) = params.moment()? {
        return history::past(&call, moment).await;
    }
    let shows_removed = params.shows_removed()?;
    let position = call.service.position();
    let (service, path) = (call.timed_service(), call.resource_path()?);
    let found = match service.get(path).await {
        Err(missing @ app::Error::NotFound { .. }) if shows_removed => {
            return Err(history::removed(&service, path, missing).await);
        }
        found => found?,
    };
    let fields = params.fields()?;
    if let Some(answer) = evaluate_preconditions(&conditions, &found, position) {
        return answer;
    }
    let mut answer = HttpResponse::Ok();
    watching::name_position(position, &mut answer);
    answer.insert_header((ETAG, found.tag().to_string()));
    let response = PendingResponse::of(&call.request)?;
    let views = Views(call.service.registry());
    match fields {
        None => response.item(answer, &views.resource(&found)),
        Some(fields) => response.item(answer, &views.sparse(&found, &fields)),
    }
}

/// `PATCH` of one resource.
pub(super) async fn patch(call: Call, body: Bytes) -> Result<HttpResponse, Problem> {
    log_body(&call.request, &body);
    let is_dry_run = call.is_dry_run()?;
    let format = call.patch_format()?;
    let path = call.resource_path()?;
    let change = &wire::patch(format, &body, path.collection.entity())?;
    let conditions = &call.preconditions()?;
    let origin = call.origin()?;
    let key = call.keyed_in(format, &body, &origin)?;
    let command = Command::Patch {
        path,
        patch: change,
        conditions,
    };
    call.change(command, &origin, key.as_ref(), is_dry_run)
        .await
}

/// `DELETE` of one resource. Its body is not read.
pub(super) async fn delete(call: Call) -> Result<HttpResponse, Problem> {
    let is_dry_run = call.is_dry_run()?;
    let path = call.resource_path()?;
    let conditions = &call.preconditions()?;
    let origin = call.origin()?;
    let key = call.keyed(&[], &origin)?;
    let command = Command::Delete { path, conditions };
    call.change(command, &origin, key.as_ref(), is_dry_run)
        .await
}

/// `POST` to `…/force-delete`.
pub(super) async fn force_delete(call: Call, body: Bytes) -> Result<HttpResponse, Problem> {
    log_body(&call.request, &body);
    let is_dry_run = call.is_dry_run()?;
    let path = call.resource_path()?;
    let reason = &wire::force_delete(&body)?;
    let conditions = &call.preconditions()?;
    let origin = call.origin()?;
    let key = call.keyed(&body, &origin)?;
    let command = Command::ForceDelete {
        path,
        reason,
        conditions,
    };
    call.change(command, &origin, key.as_ref(), is_dry_run)
        .await
}

/// Reads the parameters of a list. The first error in the order of the older service is reported, except that one of
/// the order comes before one of the search.
fn list_request(
    call: &Call,
    collection: Collection<'_>,
    params: &Params,
) -> Result<(ListRequest, ListKey, Option<Fields>), Problem> {
    let mut page = params.page_with_reference()?;
    let (search, others): (Vec<_>, _) =
        ListFilterKind::iter().partition(|kind| *kind == ListFilterKind::Search);
    let mut filters = call.service.filters(collection, params.filters(others)?)?;
    let order = params.order()?;
    filters.extend(params.filters(search)?);
    let key = ListKey::new(call.request.path(), params, &filters, call.tenants());
    let continued = params.continuation(&key, &order)?;
    if let Some(continued) = &continued {
        page.number = continued.page.saturating_add(1);
    }
    let fields = params.fields()?;
    let request = ListRequest {
        page,
        after: continued.map(|continued| continued.position),
        order,
        filters,
        has_specs: fields.as_ref().is_none_or(Fields::has_spec),
    };
    Ok((request, key, fields))
}
