//! What the parts of the service say of the request that they work for, for the one line it gets.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use actix_web::HttpMessage;

use super::RoutePath;

/// What is known of a request so far. Every clone is the same one.
#[derive(Debug, Clone, Default)]
pub struct RequestLog(Rc<RefCell<Entry>>);

/// What the line says, besides what the request itself does.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) route: Option<RoutePath>,
    /// Whether its span is kept.
    pub(super) is_traced: bool,
    pub(super) caller: Option<String>,
    pub(super) tenant: Option<String>,
    /// The code of the problem that the answer is.
    pub(super) code: Option<String>,
    /// Why the caller was turned away.
    pub(super) reason: Option<String>,
    /// What the client is not told.
    pub(super) cause: Option<String>,
    /// Whether its failure is one of an outage that has a line of its own.
    pub(super) is_told_elsewhere: bool,
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

    /// Its span is kept.
    pub(super) fn traced(&self) {
        self.entry_mut().is_traced = true;
    }

    /// Which route the request took.
    pub fn route(&self, route: RoutePath) {
        self.entry_mut().route = Some(route);
    }

    /// Who asks, once that is proven. Never a token.
    pub fn caller(&self, identity: &str) {
        self.entry_mut().caller = Some(identity.to_owned());
    }

    /// For which tenant.
    pub fn tenant(&self, tenant: &str) {
        self.entry_mut().tenant = Some(tenant.to_owned());
    }

    /// Why the caller is turned away, where the log may say more than the answer.
    pub fn reason(&self, reason: &str) {
        self.entry_mut().reason = Some(reason.to_owned());
    }

    /// It failed: the code of the problem, if it has one, what the client is not told, and why the
    /// caller is turned away, unless more was said.
    pub fn failed(&self, code: Option<String>, cause: Option<String>, reason: Option<String>) {
        let mut entry = self.entry_mut();
        entry.code = code;
        entry.cause = cause;
        entry.reason = entry.reason.take().or(reason);
    }

    /// It failed for an outage that has a line of its own.
    pub fn told_elsewhere(&self) {
        self.entry_mut().is_told_elsewhere = true;
    }

    pub(super) fn entry(&self) -> Ref<'_, Entry> {
        self.0.borrow()
    }

    fn entry_mut(&self) -> RefMut<'_, Entry> {
        self.0.borrow_mut()
    }
}
