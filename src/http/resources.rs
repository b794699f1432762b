//! Resources of every kind: list, create, read, change, delete.

use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use strum::IntoEnumIterator as _;

use super::request::{Caller, Place, params};
use crate::app::{Collection, ListRequest, Service};
use crate::domain::{ListFilterKind, Resource};
use crate::wire::{self, Fields, Kinds, ListKey, Params, Views};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::http::{PendingResponse, Problem, tell_body};

/// `GET` of a list.
pub(super) async fn list(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
) -> Result<HttpResponse, Problem> {
    let place = Place::new(&request, &service);
    let collection = place.collection()?;
    let params = params(&request);
    let (wanted, key, fields) = match wanted(&request, &caller, collection, &params, &service) {
        Ok(wanted) => wanted,
        Err(fault) => {
            // A missing owner says more than a wrong parameter.
            service
                .require_collection(caller.view(), collection)
                .await?;
            return Err(fault);
        }
    };
    let response = PendingResponse::of_page(&request, wanted.page.size)?;
    let listing = service.list(caller.view(), collection, wanted).await?;
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

/// Reads the parameters of a list. Faults are looked for in the order of the older service, except
/// that one of the order comes before one of the search.
fn wanted(
    request: &HttpRequest,
    caller: &Caller,
    collection: Collection<'_>,
    params: &Params,
    service: &Service,
) -> Result<(ListRequest, ListKey, Option<Fields>), Problem> {
    let mut page = params.page_with_reference()?;
    let (search, others): (Vec<_>, _) =
        ListFilterKind::iter().partition(|kind| *kind == ListFilterKind::Search);
    let mut filters = service.filters(collection, params.filters(others)?)?;
    let order = params.order()?;
    filters.extend(params.filters(search)?);
    let key = ListKey::new(request.path(), params, &filters, caller.view());
    let continued = params.continuation(&key, &order)?;
    if let Some(continued) = &continued {
        page.number = continued.page.saturating_add(1);
    }
    let wanted = ListRequest {
        page,
        after: continued.map(|continued| continued.position),
        order,
        filters,
    };
    Ok((wanted, key, params.fields()?))
}

fn shown(
    request: &HttpRequest,
    answer: HttpResponseBuilder,
    service: &Service,
    resource: &Resource,
) -> Result<HttpResponse, Problem> {
    PendingResponse::of(request)?.item(answer, &Views(service.registry()).resource(resource))
}
