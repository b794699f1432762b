//! Tenants of callers: the dimensions of a tenant, the resources that a caller sees, and the changes that are reserved
//! to tenants.
//!
//! ```text
//! headers ──TenancyRules::resolve──▶ Tenant ──▶ tenancy   stamped on its new resources
//!                                   ├──▶ tenants   what it sees and changes
//!                                   └──▶ author?   whether it may change the desired state
//! ```

use super::Tenancy;

mod rules;

pub use rules::{Config, DIMENSIONS_MAX, Dimension, KEY_BYTES_MAX, TenancyRules, VALUE_BYTES_MAX};

/// Why a request is refused because of its tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TenantRefusal {
    /// A required header is missing or blank.
    #[error("required tenant header \"{header}\" is missing")]
    Missing {
        /// Its name, as configured.
        header: String,
    },
    /// A header is repeated, too long, or has forbidden characters.
    #[error("tenant header \"{header}\" has an invalid value")]
    Invalid {
        /// Its name, as configured.
        header: String,
    },
    /// A system identity asks to change the desired state.
    #[error("system identities may only write status and conditions")]
    OnlyReports,
    /// A tenant asks for something that belongs to none: all tenants share the machines that units run on.
    #[error(
        "units and machines belong to no tenant: only system identities may see or change them"
    )]
    OnlySystem,
}

/// The tenant of a request. Made by [`TenancyRules::resolve`]; the default is the tenant of a service without tenancy,
/// which sees and may change everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tenant {
    tenancy: Tenancy,
    tenants: TenantScope,
    is_system: bool,
}

impl Tenant {
    /// The tenancy of the resources that it creates; empty without tenancy and for system identities.
    pub fn tenancy(&self) -> &Tenancy {
        &self.tenancy
    }

    /// What it sees and changes.
    pub fn tenants(&self) -> &TenantScope {
        &self.tenants
    }

    /// Whether it is a part of the system, such as an adapter, that works for every tenant.
    pub fn is_system(&self) -> bool {
        self.is_system
    }

    /// Its name in the log: `org=acme,project=web`, or `system`; unset without tenancy.
    pub fn label(&self) -> Option<String> {
        if self.is_system {
            return Some("system".to_owned());
        }
        let dimensions = self.tenancy.iter();
        let dimensions: Vec<_> = dimensions.map(|(key, v)| format!("{key}={v}")).collect();
        (!dimensions.is_empty()).then(|| dimensions.join(","))
    }

    /// Checks that it may change the desired state: create, patch, delete and force-delete.
    ///
    /// # Errors
    ///
    /// System identities only report.
    pub fn require_author(&self) -> Result<(), TenantRefusal> {
        if self.is_system {
            Err(TenantRefusal::OnlyReports)
        } else {
            Ok(())
        }
    }
}

/// The resources that a caller may see. Others do not exist for it: every statement that finds resources takes one.
/// The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantScope(Option<Tenancy>);

impl TenantScope {
    /// All of them.
    pub const ALL: Self = Self(None);

    /// The tenancy that resources must have, exactly; unset for all resources. Never an empty one: resources without a
    /// tenant are visible only to callers that see everything.
    pub fn tenancy(&self) -> Option<&Tenancy> {
        self.0.as_ref()
    }

    fn of(tenancy: Tenancy) -> Self {
        Self(Some(tenancy))
    }
}
