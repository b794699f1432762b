//! `…/units/{unitName}/status` and `…/units/{unitName}/journal`

use actix_web::http::header::{ContentType, HeaderName};
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream;
use tokio::time::{Instant, sleep_until};

use super::Fault;
use super::body::query;
use super::follow;
use crate::EtcdFleet;
use crate::inspect::{
    EXIT_STATUS, Inspection, Inspector, JournalPosition, LINES_MAX, Request, TextStream,
};
use hyperfleet_fleet_model::wire::{EVENT_STREAM, InvalidParameter, Query};
use hyperfleet_server_kit::http::{Admission, Gate, endless};

/// Default number of lines of a journal.
const LINES: u32 = 10;
/// `fleetctl` 0.1 asks for texts, and would print events as they are.
const OLDER_CLIENT: &str = "the parameters output and follow were removed: entries are JSON events, and watch=true continues with new ones; update fleetctl 0.1, or add --ssh";

/// `GET …/units/{unitName}/status`
pub(super) async fn status(
    request: HttpRequest,
    fleet: Data<EtcdFleet>,
    inspector: Data<Inspector>,
    admission: Data<Admission>,
    name: Path<String>,
) -> Result<HttpResponse, Fault> {
    let query = query(&request);
    follow::refuse(&query)?;
    let requested = requested(&name, &query, Inspection::Status)?;
    answer(&request, &fleet, &inspector, &admission, &requested).await
}

/// `GET …/units/{unitName}/journal`
pub(super) async fn journal(
    request: HttpRequest,
    fleet: Data<EtcdFleet>,
    inspector: Data<Inspector>,
    admission: Data<Admission>,
    name: Path<String>,
) -> Result<HttpResponse, Fault> {
    let query = query(&request);
    let lines = query.filter("lines").map_or(Ok(LINES), |text| {
        let lines = text.parse().ok().filter(|lines| *lines <= LINES_MAX);
        lines.ok_or(InvalidParameter("lines"))
    })?;
    if query.filter("output").is_some() || query.is_set("follow")? {
        return Err(follow::bad(OLDER_CLIENT));
    }
    let (follows, after) = following(&request, &query)?;
    let inspection = Inspection::Journal {
        lines,
        follows,
        after,
    };
    let requested = requested(&name, &query, inspection)?;
    answer(&request, &fleet, &inspector, &admission, &requested).await
}

/// Whether a journal is followed, and after which position.
///
/// # Errors
/// 400 for invalid parameters, or parameters that exclude each other.
fn following(
    request: &HttpRequest,
    query: &Query,
) -> Result<(bool, Option<JournalPosition>), Fault> {
    if !query.is_watch()? {
        return Ok((false, None));
    }
    follow::check(request, query)?;
    let parse = |text: &str| text.parse::<JournalPosition>().ok();
    let of_query = query.filter("after");
    let of_query = of_query.map(|text| parse(text).ok_or(InvalidParameter("after")));
    let of_query = of_query.transpose()?;
    let of_header = follow::last_event_id(request, parse)?;
    Ok((true, of_header.or(of_query)))
}

fn requested<'q>(
    unit: &'q str,
    query: &'q Query,
    inspection: Inspection,
) -> Result<Request<'q>, Fault> {
    Ok(Request {
        unit,
        machine: query.filter("machineID"),
        inspection,
        is_forwarded: query.is_set("forwarded")?,
    })
}

async fn answer(
    request: &HttpRequest,
    fleet: &EtcdFleet,
    inspector: &Inspector,
    admission: &Admission,
    requested: &Request<'_>,
) -> Result<HttpResponse, Fault> {
    // This response may last as long as its client likes, like that of a watch.
    let slot = admission.admit_watcher(requested.inspection.bytes_max());
    let slot = slot.map_err(Fault::no_watcher)?;
    let inspected = inspector.inspect(fleet, requested).await?;
    let mut answer = endless(request, admission);
    match requested.inspection {
        Inspection::Status => answer.content_type(ContentType::plaintext()),
        Inspection::Journal { .. } => answer.content_type(EVENT_STREAM),
    };
    if let Some(status) = inspected.exit_status {
        answer.insert_header((HeaderName::from_static(EXIT_STATUS), status.to_string()));
    }
    let end_at = Instant::now() + follow::TIME_MAX;
    let gate = admission.gate().clone();
    let state = (inspected.text, gate, end_at, slot);
    let pieces = stream::unfold(state, async |(mut text, gate, end_at, slot)| {
        let piece = next(&mut text, &gate, end_at).await?;
        Some((piece, (text, gate, end_at, slot)))
    });
    Ok(answer.streaming(pieces))
}

/// The next piece; `None` at the end of the text, of its time, or of the service.
async fn next(
    text: &mut TextStream,
    gate: &Gate,
    end_at: Instant,
) -> Option<Result<Bytes, actix_web::Error>> {
    let piece = tokio::select! {
        biased;
        () = gate.stopped() => return None,
        () = sleep_until(end_at) => return None,
        piece = text.next() => piece,
    };
    match piece {
        Ok(piece) => Some(Ok(Bytes::from(piece?))),
        Err(error) => {
            tracing::info!(%error, "a unit's output ended early");
            Some(Err(error.into()))
        }
    }
}
