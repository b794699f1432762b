//! A watch of a list: changes as they happen, as an answer that does not end.

mod events;

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use serde_json::Value;

use self::events::Events;
use super::error::{Error, unavailable};
use super::resource::Resource;

/// The answer's media type. A service without watch ignores `watch=true`, and answers with a list.
const MEDIA_TYPE: &str = "application/x-ndjson";
/// The members that [`Resource`] needs. The spec is read when the resource is worked on.
pub(crate) const FIELDS: &str = "id,kind,name,href,generation,deleted_time,owner_references";
/// Longest time without a byte. The service sends a bookmark every 15 seconds.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(45);
/// Code of an event after which changes are no longer stored.
const POSITION_GONE: &str = "HYPERFLEET-WCH-001";

/// The changes of a list.
#[derive(Debug)]
pub(crate) struct Watch {
    response: Response,
    events: Events,
}

/// A change of a list.
#[derive(Debug, PartialEq)]
pub(crate) enum Change {
    /// The resource is in the list, new or changed. Its document has [`FIELDS`] only.
    Seen(Resource),
    /// The resource at this path was removed, or is not in the list any more.
    Removed(String),
}

/// Why there is no watch, or no longer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchEnd {
    /// This service, or this list, has no watch.
    #[error("{0}")]
    NotOffered(String),
    #[error("changes after the position are no longer stored")]
    PositionGone,
    /// A new watch may continue after the last position.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl Watch {
    /// Reads the answer to a request with `watch=true`.
    ///
    /// # Errors
    /// It is an error, or no watch.
    pub(crate) fn begin(answer: Result<Response, Error>) -> Result<Self, WatchEnd> {
        let response = answer.map_err(WatchEnd::of)?;
        let media_type = response.headers().get(CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or_default().split(';').next();
        let media_type = media_type.unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case(MEDIA_TYPE) {
            let fault = format!("the answer to watch=true is {media_type:?}");
            return Err(WatchEnd::NotOffered(fault));
        }
        Ok(Self {
            response,
            events: Events::default(),
        })
    }

    /// Every change up to here was returned. `None` before the first event.
    pub(crate) fn position(&self) -> Option<&str> {
        self.events.position()
    }

    /// The next changes, in their order; none if only bookmarks have arrived.
    ///
    /// # Errors
    /// The watch has ended.
    pub(crate) async fn next(&mut self) -> Result<Vec<Change>, WatchEnd> {
        loop {
            if let Some(changes) = self.events.take()? {
                return Ok(changes);
            }
            match self.response.chunk().await.map_err(unavailable)? {
                Some(chunk) => self.events.push(&chunk),
                None => return Err(WatchEnd::ended("the watch was closed".to_owned())),
            }
        }
    }
}

impl WatchEnd {
    /// Authentication may succeed later, with another token. Other refusals concern the watch.
    fn of(error: Error) -> Self {
        const GONE: u16 = StatusCode::GONE.as_u16();
        match error {
            Error::Refused { status: GONE, .. } => Self::PositionGone,
            Error::Refused { status, detail } if !matches!(status, 401 | 403) => {
                Self::NotOffered(format!("{status} {detail}"))
            }
            error => Self::Failed(error),
        }
    }

    /// The end that an event announces.
    fn of_event(problem: &Value) -> Self {
        if problem["code"] == POSITION_GONE {
            return Self::PositionGone;
        }
        let text = |name: &str| problem[name].as_str().unwrap_or_default();
        Self::ended(format!("{} {}", text("code"), text("detail")))
    }

    fn ended(message: String) -> Self {
        let again_after = None;
        Self::Failed(Error::Unavailable {
            message,
            again_after,
        })
    }
}
