//! Errors that end a run of the import without a report.

use crate::domain::import::Regression;
use crate::storage::postgres;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the source")]
    Source(#[source] postgres::Error),
    #[error("the database of this service fails")]
    Target(#[from] postgres::Error),
    /// The source is not a database of the older service.
    #[error(
        "the source is not a database of the older service at its last version: it lacks {}; check its URL, \
         and run the older service's own `migrate` on it first",
        missing.join(", ")
    )]
    NoSource {
        /// Tables with their columns.
        missing: Vec<String>,
    },
    #[error("another import into this database is running: wait for its end")]
    Busy,
    /// This database has resources that were not imported.
    #[error(
        "this database has resources that were not imported: import into an empty database, \
         or use --beside-others to import beside them; the import never changes them"
    )]
    OthersHere,
    /// This database has imported from another source.
    #[error(
        "this database has imported from another database: import this source into an empty one. A source that was \
         restored from a dump counts as another one"
    )]
    OtherSource,
    /// The source may lack what was imported.
    #[error(
        "the source may lack what was imported from it, and the import would remove that here: {0}. Name another \
         database, wait for a lagging standby, or use --allow-older-source to import this state anyway"
    )]
    OlderSource(Regression),
}
