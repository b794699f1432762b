//! Resources of every kind: list, create, read, change, delete.

use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};

use super::answer::PendingResponse;
use super::problem::Problem;
use super::request::{Caller, Place, params};
use super::telemetry::tell_body;
use crate::app::{Collection, ListRequest, Search, Service};
use crate::clock::Clock;
use crate::domain::Resource;
use crate::wire::{self, Fields, Kinds, ListKey, Params, Views};

/// `GET` of a list.
pub(super) async fn list(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
) -> Result<HttpResponse, Problem> {
    let place = Place::new(&request, &service);
    let collection = place.collection()?;
    let params = params(&request);
    let key = ListKey::new(request.path(), &params, caller.view());
    let (narrowed, wanted, fields) = match wanted(collection, &params, &key, &service) {
        Ok(wanted) => wanted,
        Err(fault) => {
            // That the owner is missing says more than that a parameter is wrong.
            service
                .require_collection(caller.view(), collection)
                .await?;
            return Err(fault);
        }
    };
    let response = PendingResponse::of_page(&request, wanted.page.size)?;
    let listing = service.list(caller.view(), narrowed, wanted).await?;
    let kind = collection.entity().map(|entity| entity.kind.as_str());
    let views = Views(service.registry());
    match fields {
        None => response.page(&views.resources(kind, &listing, &key)),
        Some(fields) => {
            let sparse = views.sparse_resources(kind, &listing, &key, &fields);
            response.page(&sparse)
        }
    }
}

/// `POST` to a list.
pub(super) async fn create(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
    clock: Data<Clock>,
    body: Bytes,
) -> Result<HttpResponse, Problem> {
    tell_body(&request, &body);
    let collection = Place::new(&request, &service).collection()?;
    let registry = service.registry();
    let kinds = collection.entity().map_or(Kinds::Any(registry), Kinds::One);
    let parent = match collection {
        Collection::Owned {
            parent, parent_id, ..
        } => Some((parent, parent_id)),
        Collection::All | Collection::Kind(_) => None,
    };
    let (entity, new) = wire::resource(&body, kinds)?;
    let origin = caller.origin(&request, &clock)?;
    let made = service
        .create(entity, parent, new, (caller.tenant(), &origin))
        .await?;
    shown(&request, HttpResponse::Created(), &service, &made)
}

/// `GET` of one resource.
pub(super) async fn get(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
) -> Result<HttpResponse, Problem> {
    let address = Place::new(&request, &service).address(&caller)?;
    let found = service.get(address).await?;
    let response = PendingResponse::of(&request)?;
    let view = Views(service.registry()).resource(&found);
    match params(&request).fields()? {
        None => response.item(HttpResponse::Ok(), &view),
        Some(fields) => response.item(HttpResponse::Ok(), &fields.of(&view)),
    }
}

/// `PATCH` of one resource.
pub(super) async fn patch(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
    clock: Data<Clock>,
    body: Bytes,
) -> Result<HttpResponse, Problem> {
    tell_body(&request, &body);
    let address = Place::new(&request, &service).address(&caller)?;
    let change = wire::patch(&body, address.collection.entity())?;
    let origin = caller.origin(&request, &clock)?;
    let patched = service.patch(address, &change, &origin).await?;
    shown(&request, HttpResponse::Ok(), &service, &patched)
}

/// `DELETE` of one resource. Its body is not read.
pub(super) async fn delete(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
    clock: Data<Clock>,
) -> Result<HttpResponse, Problem> {
    let address = Place::new(&request, &service).address(&caller)?;
    let origin = caller.origin(&request, &clock)?;
    let deleted = service.delete(address, &origin).await?;
    shown(&request, HttpResponse::Accepted(), &service, &deleted)
}

/// `POST` to `…/force-delete`.
pub(super) async fn force_delete(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
    clock: Data<Clock>,
    body: Bytes,
) -> Result<HttpResponse, Problem> {
    tell_body(&request, &body);
    let address = Place::new(&request, &service).address(&caller)?;
    let reason = wire::force_delete(&body)?;
    let origin = caller.origin(&request, &clock)?;
    service.force_delete(address, &reason, &origin).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// What of which list is wanted. Faults are looked for in the order of the older service, but that
/// an order by an unknown field is told before a search that makes no sense.
fn wanted<'a>(
    collection: Collection<'a>,
    params: &Params,
    key: &ListKey,
    service: &'a Service,
) -> Result<(Collection<'a>, ListRequest, Option<Fields>), Problem> {
    let ((mut page, link), includes_deleted) =
        (params.page_with_reference()?, params.includes_deleted()?);
    let narrowed = match (collection, params.get("kind")) {
        (Collection::All, Some(kind)) => Collection::Kind(service.entity(kind)?),
        _ => collection,
    };
    let reference = match link {
        Some(link) => service.reference_filter(collection, link.ref_type, link.target)?,
        None => None,
    };
    let order = params.order()?;
    let continued = params.continuation(key, &order)?;
    if let Some(continued) = &continued {
        page.number = continued.page.saturating_add(1);
    }
    let request = ListRequest {
        page,
        after: continued.map(|continued| continued.position),
        order,
        includes_deleted,
        reference,
        search: params.search()?.map(|filter| Search {
            filter,
            paths: Views(service.registry()).paths(),
        }),
    };
    Ok((narrowed, request, params.fields()?))
}

fn shown(
    request: &HttpRequest,
    answer: HttpResponseBuilder,
    service: &Service,
    resource: &Resource,
) -> Result<HttpResponse, Problem> {
    PendingResponse::of(request)?.item(answer, &Views(service.registry()).resource(resource))
}
