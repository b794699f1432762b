//! What the parts of the service say of the request that they work for, for the one line it gets.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use actix_web::HttpMessage;

use super::RoutePath;

/// What is known of a request so far. Every clone is the same one.
#[derive(Debug, Clone, Default)]
pub struct RequestLog(Rc<RefCell<RequestEntry>>);

/// What the line says, besides what the request itself does.
#[derive(Debug, Default)]
pub struct RequestEntry {
    /// Route that the request took.
    pub route: Option<RoutePath>,
    /// Whether its span is kept.
    pub is_traced: bool,
    /// Name of the caller, once it is proven. Never a token.
    pub caller: Option<String>,
    /// On whose behalf the request is made.
    pub tenant: Option<String>,
    /// Code of the problem, if the request failed.
    pub code: Option<String>,
    /// Why the caller was turned away; the log may say more than the response.
    pub reason: Option<String>,
    /// What the client is not told of a failure.
    pub cause: Option<String>,
    /// Whether the failure belongs to an outage that has a line of its own.
    pub is_told_elsewhere: bool,
}

impl RequestLog {
    /// The one of a request; a new one the first time.
    pub fn of(request: &impl HttpMessage) -> Self {
        if let Some(log) = request.extensions().get::<Self>() {
            return log.clone();
        }
        let log = Self::default();
        request.extensions_mut().insert(log.clone());
        log
    }

    /// Notes a failure. A reason that was noted before says more.
    pub(in crate::http) fn failed(
        &self,
        code: Option<String>,
        cause: Option<String>,
        reason: Option<String>,
    ) {
        let mut entry = self.entry_mut();
        entry.code = code;
        entry.cause = cause;
        entry.reason = entry.reason.take().or(reason);
    }

    pub(super) fn entry(&self) -> Ref<'_, RequestEntry> {
        self.0.borrow()
    }

    /// The entry, to be added to.
    pub fn entry_mut(&self) -> RefMut<'_, RequestEntry> {
        self.0.borrow_mut()
    }
}
