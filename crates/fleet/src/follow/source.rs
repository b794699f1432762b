//! The resources that can be followed.

use crate::mirror::{Picture, Touch};
use crate::registry::{Error, Page, PageToken, StateFilter, StateKey};
use crate::view::{state_view, unit_view};
use crate::{StateView, UnitView};

/// A resource that can be followed, [`UnitView`] or [`StateView`]: the mirror lists it and knows when it is
/// touched.
pub trait Followed: Sized + Send + 'static {
    type Key: std::fmt::Debug + Clone + Ord + Send + 'static;
    type Filter: std::fmt::Debug + Clone + Send + Sync + 'static;

    /// The next items of the list.
    #[doc(hidden)]
    fn list(
        picture: &Picture,
        filter: &Self::Filter,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<Page<Self>, Error>;

    /// The key of a touched item, if the filter selects it.
    #[doc(hidden)]
    fn key(touch: &Touch, filter: &Self::Filter) -> Option<Self::Key>;

    /// The current state.
    #[doc(hidden)]
    fn find(picture: &Picture, key: &Self::Key) -> Option<Self>;

    /// Approximate size in memory, in bytes.
    #[doc(hidden)]
    fn bytes(&self) -> usize;
}

impl Followed for UnitView {
    type Key = String;
    type Filter = ();

    fn list(
        picture: &Picture,
        (): &(),
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<Page<Self>, Error> {
        Ok(picture.snapshot.list_units(after, limit)?.map(unit_view))
    }

    fn key(touch: &Touch, (): &()) -> Option<String> {
        match touch {
            Touch::Unit(name) => Some(name.clone()),
            Touch::State(_) => None,
        }
    }

    fn find(picture: &Picture, name: &String) -> Option<Self> {
        picture.snapshot.unit(name).map(unit_view)
    }

    fn bytes(&self) -> usize {
        let options = self.options.iter();
        let text = options.map(|o| o.section.len() + o.name.len() + o.value.len());
        let each = size_of_val(&*self.options) + text.sum::<usize>();
        size_of::<Self>() + self.name.len() + each
    }
}

impl Followed for StateView {
    type Key = StateKey;
    type Filter = StateFilter;

    fn list(
        picture: &Picture,
        filter: &StateFilter,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<Page<Self>, Error> {
        Ok(picture.list_states(filter, after, limit)?.map(state_view))
    }

    fn key(touch: &Touch, filter: &StateFilter) -> Option<StateKey> {
        let Touch::State(key) = touch else {
            return None;
        };
        let asked = |wanted: &Option<String>, is: &String| wanted.as_ref().is_none_or(|w| w == is);
        let is_asked = asked(&filter.unit, &key.unit) && asked(&filter.machine, &key.machine);
        is_asked.then(|| key.clone())
    }

    fn find(picture: &Picture, key: &StateKey) -> Option<Self> {
        picture.snapshot.state(key.clone()).map(state_view)
    }

    fn bytes(&self) -> usize {
        let words = [&self.unit, &self.machine, &self.hash, &self.load];
        let more = [&self.active, &self.sub];
        let text = words.iter().chain(&more).map(|text| text.len());
        size_of::<Self>() + text.sum::<usize>()
    }
}
