//! Where what is followed comes from.

use crate::mirror::{Picture, Touch};
use crate::registry::{self, PageToken, StateFilter};
use crate::view::{StateKey, unit_view};
use crate::{StateView, UnitView};

/// Something that the mirror lists, and of which it knows when it is touched.
pub trait Source: Sized + Send + 'static {
    /// What tells one from others.
    type Key: std::fmt::Debug + Clone + Ord + Send + 'static;
    /// Which of them are asked for.
    type Filter: std::fmt::Debug + Clone + Send + Sync + 'static;

    /// Some of what there is.
    #[doc(hidden)]
    fn list(
        picture: &Picture,
        filter: &Self::Filter,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<registry::Page<Self>, registry::Error>;

    /// What was touched, if it is asked for.
    #[doc(hidden)]
    fn key(touch: &Touch, filter: &Self::Filter) -> Option<Self::Key>;

    /// What it is now.
    #[doc(hidden)]
    fn find(picture: &Picture, key: &Self::Key) -> Option<Self>;

    /// How much of memory it takes, about, in bytes.
    #[doc(hidden)]
    fn bytes(&self) -> usize;
}

impl Source for UnitView {
    type Key = String;
    type Filter = ();

    fn list(
        picture: &Picture,
        (): &(),
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<registry::Page<Self>, registry::Error> {
        Ok(shown(picture.known.list_units(after, limit)?, unit_view))
    }

    fn key(touch: &Touch, (): &()) -> Option<String> {
        match touch {
            Touch::Unit(name) => Some(name.clone()),
            Touch::State(_) => None,
        }
    }

    fn find(picture: &Picture, name: &String) -> Option<Self> {
        picture.known.unit(name).map(unit_view)
    }

    fn bytes(&self) -> usize {
        let options = self.options.iter();
        let text = options.map(|o| o.section.len() + o.name.len() + o.value.len());
        let each = size_of_val(&*self.options) + text.sum::<usize>();
        size_of::<Self>() + self.name.len() + self.hash.len() + each
    }
}

impl Source for StateView {
    type Key = StateKey;
    type Filter = StateFilter;

    fn list(
        picture: &Picture,
        filter: &StateFilter,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<registry::Page<Self>, registry::Error> {
        Ok(shown(
            picture.list_states(filter, after, limit)?,
            Into::into,
        ))
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
        picture.known.state(&key.unit, &key.machine).map(Into::into)
    }

    fn bytes(&self) -> usize {
        let words = [&self.unit, &self.machine, &self.hash, &self.load];
        let more = [&self.active, &self.sub];
        let text = words.iter().chain(&more).map(|text| text.len());
        size_of::<Self>() + text.sum::<usize>()
    }
}

fn shown<T, R>(page: registry::Page<R>, view: impl Fn(R) -> T) -> registry::Page<T> {
    registry::Page {
        items: page.items.into_iter().map(view).collect(),
        revision: page.revision,
        next: page.next,
    }
}
