//! What lists and watches show of the resources of a kind.

use crate::resource::Resource;
use crate::watch::Change;

#[derive(Debug)]
pub(super) struct News {
    /// Position of the kind in the settings.
    pub(super) kind: usize,
    pub(super) part: Part,
}

#[derive(Debug)]
pub(super) enum Part {
    /// A sweep begins: everything is listed from now on.
    SweepBegins,
    /// Resources to work on, changed or not.
    Swept(Vec<Resource>),
    /// The sweep is complete: a resource that was not seen since its begin is gone.
    SweepEnds,
    /// Resources to work on if they have changed.
    Listed(Vec<Resource>),
    /// Changes that a watch shows.
    Changed(Vec<Change>),
}
