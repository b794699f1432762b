//! Explains what a resource waits for.

use chrono::{DateTime, Utc};

use super::{Error, ResourcePath, Service};
use hyperfleet_domain::explain::{ExplainInput, ResourceExplanation, explain};

impl Service {
    /// Explains what a resource waits for, as of `now`, and what prevents its deletion.
    ///
    /// The resource and its surroundings are read by one statement, so that an explanation does not contradict itself.
    pub async fn explain(
        &self,
        path: ResourcePath<'_>,
        now: DateTime<Utc>,
    ) -> Result<ResourceExplanation, Error> {
        let Some(scope) = path.scope() else {
            return Err(self.missing(path).await);
        };
        let mut session = self.store.session().await?;
        let mut db = session.db();
        let with_rules = self.registry.kinds_with_rules();
        let Some(found) = db.find_surrounded(scope, with_rules).await? else {
            return Err(path.missing(self, &mut db).await);
        };
        // Rules may take a while: other requests get the connection.
        drop(session);
        Ok(explain(&ExplainInput {
            snapshot: &found.snapshot,
            created_at: found.created_at,
            surroundings: &found.surroundings,
            registry: &self.registry,
            now,
        }))
    }
}
