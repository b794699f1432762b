//! Use cases of reported states.

use super::mirror::Picture;
use super::view::state_view;
use super::{Error, Fleet, Page, StateView, parse_token};
use crate::keys::KeyStore;
use crate::registry::StateFilter;

impl<S: KeyStore> Fleet<S> {
    /// What machines report, by unit and then by machine. The filter holds full names; an empty name selects
    /// all. All pages of a list need the same filter.
    ///
    /// # Errors
    /// [`Error::Token`]; [`Error::Unavailable`] while the mirror is not connected.
    pub async fn list_states(
        &self,
        filter: &StateFilter,
        token: Option<&str>,
    ) -> Result<Page<StateView>, Error> {
        let after = parse_token(token)?;
        let (filter, after, limit) = (&without_empty(filter), after.as_ref(), self.page_size);
        let list = |picture: &Picture| picture.list_states(filter, after, limit);
        Ok(self.mirrored(list).await??.map(state_view))
    }

    /// The current report of a unit; of several machines, that with the lowest id.
    ///
    /// # Errors
    /// [`Error::NoState`] if no machine reports it; [`Error::Unavailable`] while the mirror is not connected.
    pub async fn find_state(&self, unit: &str) -> Result<StateView, Error> {
        let filter = StateFilter {
            unit: Some(unit.to_owned()),
            machine: None,
        };
        let list = |picture: &Picture| picture.list_states(&filter, None, 1);
        let first = self.mirrored(list).await??.items.into_iter().next();
        first.map(state_view).ok_or(Error::NoState)
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
