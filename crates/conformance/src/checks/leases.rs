//! Leases, which the Go HyperFleet API does not have.

use serde_json::json;

use crate::check::{Check, check};

const SOURCE: &str = "docs/reference/api.md#leases";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "leases.holder",
            "A held lease is renewed for its holder and refused to others, 409 CNF-003",
            SOURCE,
            |api| {
                let path = format!("/leases/{}", api.name());
                let claim = |holder: &str| json!({"holder": holder, "duration_seconds": 30});
                let acquired = api.put(&path, claim("first")).await?;
                acquired.status(200)?.has("/holder", "first")?;
                let refused = api.put(&path, claim("second")).await?;
                refused.problem(409, "CNF-003")?;
                let renewed = api.put(&path, claim("first")).await?;
                let since = acquired.text("/acquired_time")?;
                renewed.status(200)?.has("/acquired_time", since)?;
                api.delete(&format!("{path}?holder=first")).await?;
            }
        ),
        check!(
            "leases.release",
            "A released lease does not exist, and another holder can acquire it",
            SOURCE,
            |api| {
                let path = format!("/leases/{}", api.name());
                let claim = |holder: &str| json!({"holder": holder, "duration_seconds": 30});
                api.put(&path, claim("first")).await?.status(200)?;
                let wrong = api.delete(&format!("{path}?holder=second")).await?;
                wrong.problem(404, "NTF-001")?;
                let released = api.delete(&format!("{path}?holder=first")).await?;
                released.status(204)?;
                api.get(&path).await?.problem(404, "NTF-001")?;
                api.put(&path, claim("second")).await?.status(200)?;
                api.delete(&format!("{path}?holder=second")).await?;
            }
        ),
        check!(
            "leases.limits",
            "A lease needs a DNS label, a holder, and 1 to 3600 seconds",
            SOURCE,
            |api| {
                let good = format!("/leases/{}", api.name());
                for (path, body) in [
                    ("/leases/Bad", json!({"holder": "a", "duration_seconds": 1})),
                    (&*good, json!({"holder": "", "duration_seconds": 1})),
                    (&*good, json!({"holder": "a", "duration_seconds": 0})),
                    (&*good, json!({"holder": "a", "duration_seconds": 3601})),
                ] {
                    api.put(path, body).await?.problem(400, "VAL-000")?;
                }
            }
        ),
    ]
}
