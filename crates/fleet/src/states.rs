//! Use cases of reported states.

use super::view::state_view;
use super::{Error, Fleet, Page, StateView, parse_token};
use crate::keys::KeyStore;
use crate::registry::StateFilter;

impl<S: KeyStore> Fleet<S> {
    /// What machines report, by unit and then by machine. The filter holds full names; an empty name selects
    /// all. All pages of a list show one moment and need the same filter.
    ///
    /// # Errors
    /// [`Error::Token`]; [`Error::Stale`] if the moment is too long ago.
    pub async fn list_states(
        &self,
        filter: &StateFilter,
        token: Option<&str>,
    ) -> Result<Page<StateView>, Error> {
        let after = parse_token(token)?;
        let (filter, after, limit) = (&without_empty(filter), after.as_ref(), self.page_size);
        let list = self.mirrored(after, |picture| picture.list_states(filter, after, limit));
        let page = match list.await? {
            Some(page) => Ok(page),
            None => self.registry.list_states(filter, after, limit).await,
        };
        match page {
            Err(error) if Error::is_unusable_name(&error) => Ok(Page {
                items: Vec::new(),
                revision: 0,
                next: None,
            }),
            page => Ok(page?.map(state_view)),
        }
    }

    /// The current report of a unit; of several machines, that with the lowest id.
    ///
    /// # Errors
    /// [`Error::NoState`] if no machine reports it.
    pub async fn find_state(&self, unit: &str) -> Result<StateView, Error> {
        let filter = StateFilter {
            unit: Some(unit.to_owned()),
            machine: None,
        };
        match self.registry.list_states(&filter, None, 1).await {
            Ok(page) => page.items.into_iter().next().map(state_view),
            Err(error) if Error::is_unusable_name(&error) => None,
            Err(error) => return Err(error.into()),
        }
        .ok_or(Error::NoState)
    }
}

/// The filter without empty names.
pub(super) fn without_empty(filter: &StateFilter) -> StateFilter {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    StateFilter {
        unit: given(&filter.unit),
        machine: given(&filter.machine),
    }
}
