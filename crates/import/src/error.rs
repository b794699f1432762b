//! Errors that end a pass without a report.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing}")]
    Failed {
        /// Verb and object, with the database: "read resources of the source".
        doing: &'static str,
        #[source]
        source: sqlx::Error,
    },
    /// A table or a column of the older service is missing.
    #[error(
        "the source is not a database of the older service at its last version: {missing}; check its URL, and run the \
         older service's own `migrate` on it first"
    )]
    UnknownSource { missing: String },
    #[error("another import into this database is running: wait for its end")]
    Busy,
    #[error(
        "the source has no resource that was imported from it, and the import would remove all of them here: check its URL, \
         or import into an empty database"
    )]
    OtherSource,
}

impl Error {
    /// The `SQLSTATE` of the server's error.
    fn code(&self) -> Option<String> {
        let Self::Failed { source, .. } = self else {
            return None;
        };
        Some(source.as_database_error()?.code()?.into_owned())
    }

    /// Whether another row has the name.
    pub(super) fn is_name_taken(&self) -> bool {
        self.code().is_some_and(|code| code == "23505")
    }

    /// Whether a repeated statement may succeed: for a taken name, a removed row, a deadlock.
    pub(super) fn is_conflict(&self) -> bool {
        let code = self.code();
        code.is_some_and(|code| ["23503", "23505", "40001", "40P01"].contains(&&*code))
    }

    /// The same error, unless a table or a column is missing.
    pub(super) fn or_not_older_service(self) -> Self {
        let code = self.code();
        match &self {
            Self::Failed { source, .. }
                if code.is_some_and(|code| ["42P01", "42703"].contains(&&*code)) =>
            {
                let missing = source
                    .as_database_error()
                    .map(sqlx::error::DatabaseError::message);
                let missing = missing.unwrap_or_default().to_owned();
                Self::UnknownSource { missing }
            }
            _ => self,
        }
    }
}

/// Adds the failed action to errors of sqlx.
pub(super) trait Context<T> {
    /// Adds `doing`, a verb and its object.
    fn context(self, doing: &'static str) -> Result<T, Error>;
}

impl<T> Context<T> for Result<T, sqlx::Error> {
    fn context(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Failed { doing, source })
    }
}
