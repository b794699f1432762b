//! Table `leases`: which copy of an adapter works. The database's clock decides when a lease expires.

use sqlx::types::Json;

use super::measure::SqlOperation::{Create, Delete, Query};
use super::measure::SqlTable::Leases;
use super::{Db, Error};
use hyperfleet_domain::Tenancy;
use hyperfleet_domain::lease::{HeldLease, LeaseClaim, LeaseHolder, LeaseName};

impl Db<'_> {
    /// Acquires or renews a lease unless another holder has it. Returns the lease as it is then, of whichever holder.
    ///
    /// A lease of another holder is written unchanged instead of being skipped, because a skipped row is not returned.
    /// The time is read before the statement waits for the row, so that a wait never lengthens a lease.
    pub async fn acquire_lease(
        &mut self,
        tenancy: &Tenancy,
        name: &LeaseName,
        claim: &LeaseClaim,
    ) -> Result<HeldLease, Error> {
        let result = sqlx::query_as!(
            HeldLease,
            "INSERT INTO leases AS l (tenancy, name, holder, acquired_at, renewed_at, expires_at)
             SELECT $1::jsonb, $2::text, $3::text, t.now, t.now, t.now + make_interval(secs => $4::integer)
             FROM (SELECT clock_timestamp() AS now) t
             ON CONFLICT (tenancy, name) DO UPDATE SET
                 holder = CASE WHEN l.holder = excluded.holder OR l.expires_at <= excluded.renewed_at
                     THEN excluded.holder ELSE l.holder END,
                 acquired_at = CASE WHEN l.expires_at <= excluded.renewed_at
                     THEN excluded.acquired_at ELSE l.acquired_at END,
                 renewed_at = CASE WHEN l.holder = excluded.holder OR l.expires_at <= excluded.renewed_at
                     THEN excluded.renewed_at ELSE l.renewed_at END,
                 expires_at = CASE WHEN l.holder = excluded.holder OR l.expires_at <= excluded.renewed_at
                     THEN excluded.expires_at ELSE l.expires_at END
             RETURNING name, holder, acquired_at, renewed_at, expires_at",
            Json(tenancy) as _,
            name.as_str(),
            claim.holder.as_str(),
            claim.duration.seconds(),
        )
        .fetch_one(self.repeatable_connection())
        .await;
        self.complete(result, Create(Leases), "acquire a lease")
    }

    /// `None` if the lease is not held now.
    pub async fn find_lease(
        &mut self,
        tenancy: &Tenancy,
        name: &LeaseName,
    ) -> Result<Option<HeldLease>, Error> {
        let result = sqlx::query_as!(
            HeldLease,
            "SELECT name, holder, acquired_at, renewed_at, expires_at FROM leases
             WHERE tenancy = $1 AND name = $2 AND expires_at > clock_timestamp()",
            Json(tenancy) as _,
            name.as_str(),
        )
        .fetch_optional(self.repeatable_connection())
        .await;
        self.complete(result, Query(Leases), "find a lease")
    }

    /// Releases the lease of a holder; returns whether it was held by that holder.
    pub async fn delete_lease(
        &mut self,
        tenancy: &Tenancy,
        name: &LeaseName,
        holder: &LeaseHolder,
    ) -> Result<bool, Error> {
        let result = sqlx::query_scalar!(
            r#"DELETE FROM leases WHERE tenancy = $1 AND name = $2 AND holder = $3
               RETURNING expires_at > clock_timestamp() AS "was_held!""#,
            Json(tenancy) as _,
            name.as_str(),
            holder.as_str(),
        )
        .fetch_optional(self.connection())
        .await;
        let was_held = self.complete(result, Delete(Leases), "release a lease")?;
        Ok(was_held == Some(true))
    }

    /// Removes expired leases, at most `count_max` of them; returns how many. Leases that a request has locked stay for
    /// the next time.
    pub async fn delete_expired_leases(&mut self, count_max: i64) -> Result<u64, Error> {
        let result = sqlx::query!(
            "DELETE FROM leases WHERE (tenancy, name) IN (
                 SELECT tenancy, name FROM leases WHERE expires_at <= clock_timestamp()
                 LIMIT $1 FOR UPDATE SKIP LOCKED)",
            count_max,
        )
        .execute(self.connection())
        .await;
        let done = self.complete(result, Delete(Leases), "remove expired leases")?;
        Ok(done.rows_affected())
    }
}
