//! Resources of every kind: list, create, read, change, delete.

use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};

use super::meta::json;
use super::problem::Problem;
use super::request::{Caller, Place, params};
use crate::app::{Collection, ListRequest, Service};
use crate::clock::Clock;
use crate::domain::Resource;
use crate::wire::{self, Kinds, Params, ParamsFault, Views};

/// `GET` of a list.
pub(super) async fn list(
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, Problem> {
    let place = Place::new(&request, &service);
    let collection = place.collection()?;
    let wanted = match wanted(&params(&request)) {
        Ok(wanted) => wanted,
        Err(fault) => {
            // That the owner is missing says more than that a parameter is wrong.
            service.require_collection(collection).await?;
            return Err(fault.into());
        }
    };
    let listing = service.list(collection, wanted).await?;
    let kind = match collection {
        Collection::All => None,
        Collection::Kind(entity) | Collection::Owned { entity, .. } => Some(entity.kind.as_str()),
    };
    Ok(json(
        HttpResponse::Ok(),
        &Views(service.registry()).resources(kind, &listing),
    ))
}

/// `POST` to a list.
pub(super) async fn create(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
    clock: Data<Clock>,
    body: Bytes,
) -> Result<HttpResponse, Problem> {
    let collection = Place::new(&request, &service).collection()?;
    let kinds = match collection {
        Collection::All => Kinds::Any(service.registry()),
        Collection::Kind(entity) | Collection::Owned { entity, .. } => Kinds::One(entity),
    };
    let parent = match collection {
        Collection::Owned {
            parent, parent_id, ..
        } => Some((parent, parent_id)),
        Collection::All | Collection::Kind(_) => None,
    };
    let (entity, new) = wire::resource(&body, kinds)?;
    let origin = caller.origin(&request, &clock);
    let made = service.create(entity, parent, new, &origin).await?;
    Ok(shown(HttpResponse::Created(), &service, &made))
}

/// `GET` of one resource.
pub(super) async fn get(
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, Problem> {
    let address = Place::new(&request, &service).address()?;
    let found = service.get(address).await?;
    Ok(shown(HttpResponse::Ok(), &service, &found))
}

/// `PATCH` of one resource.
pub(super) async fn patch(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
    clock: Data<Clock>,
    body: Bytes,
) -> Result<HttpResponse, Problem> {
    let address = Place::new(&request, &service).address()?;
    let change = wire::patch(&body)?;
    let origin = caller.origin(&request, &clock);
    let patched = service.patch(address, &change, &origin).await?;
    Ok(shown(HttpResponse::Ok(), &service, &patched))
}

/// `DELETE` of one resource. Its body is not read.
pub(super) async fn delete(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
    clock: Data<Clock>,
) -> Result<HttpResponse, Problem> {
    let address = Place::new(&request, &service).address()?;
    let origin = caller.origin(&request, &clock);
    let deleted = service.delete(address, &origin).await?;
    Ok(shown(HttpResponse::Accepted(), &service, &deleted))
}

/// `POST` to `…/force-delete`.
pub(super) async fn force_delete(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
    clock: Data<Clock>,
    body: Bytes,
) -> Result<HttpResponse, Problem> {
    let address = Place::new(&request, &service).address()?;
    let reason = wire::force_delete(&body)?;
    let origin = caller.origin(&request, &clock);
    service.force_delete(address, &reason, &origin).await?;
    Ok(HttpResponse::NoContent().finish())
}

fn wanted(params: &Params) -> Result<ListRequest, ParamsFault> {
    Ok(ListRequest {
        page: params.page()?,
        order: params.order()?,
        includes_deleted: params.includes_deleted()?,
        kind: params.get("kind").map(ToOwned::to_owned),
    })
}

fn shown(answer: HttpResponseBuilder, service: &Service, resource: &Resource) -> HttpResponse {
    json(answer, &Views(service.registry()).resource(resource))
}
