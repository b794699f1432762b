//! Explains what a resource waits for.

use chrono::{DateTime, Utc};

use super::{Error, ResourcePath, Service};
use crate::domain::explain::{ExplainInput, ResourceExplanation, explain};

impl Service {
    /// Explains what a resource waits for, as of `now`, and what prevents its deletion.
    ///
    /// The resource and its surroundings are read by two statements. So an explanation may name a child that has just
    /// been removed, or miss one that has just been created; the next explanation does not.
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
        let Some(found) = db.find_whole(scope, with_rules).await? else {
            return Err(path.missing(self, &mut db).await);
        };
        let surroundings = db.find_surroundings(path.tenants, scope.id).await?;
        // Rules may take a while: other requests get the connection.
        drop(session);
        Ok(explain(&ExplainInput {
            snapshot: &found.snapshot,
            created_at: found.resource.created_at,
            surroundings: &surroundings,
            registry: &self.registry,
            now,
        }))
    }
}
