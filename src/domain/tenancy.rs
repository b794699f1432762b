//! On whose behalf callers act: what a tenant consists of, which resources a caller
//! sees, and what is reserved to those who own what they change.
//!
//! ```text
//! headers ──Rules::resolve──▶ Tenant ──▶ tenancy   what its new resources are stamped with
//!                                   ├──▶ view      what it sees and changes
//!                                   └──▶ author?   whether it may change what is wanted
//! ```

use super::Tenancy;

mod rules;

pub use rules::{Config, DIMENSIONS_MAX, Dimension, KEY_BYTES_MAX, TenancyRules, VALUE_BYTES_MAX};

/// Why a request is refused for whom it is made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// A header that every caller must send is not there, or is blank.
    #[error("required tenant header \"{header}\" is missing")]
    Missing {
        /// Which one, as it is configured.
        header: String,
    },
    /// A header is there more than once, too long, or has other characters than it may.
    #[error("tenant header \"{header}\" has an invalid value")]
    Invalid {
        /// Which one, as it is configured.
        header: String,
    },
    /// A system identity wants to change what is wanted.
    #[error("system identities may only write status and conditions")]
    OnlyReports,
    /// A tenant wants something of what belongs to none: units run on machines that all share.
    #[error(
        "units and machines belong to no tenant: only system identities may see or change them"
    )]
    OnlySystem,
}

/// On whose behalf a request is made. Made by [`TenancyRules::resolve`]; the default is that of a service
/// without tenancy, which sees and may change everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tenant {
    tenancy: Tenancy,
    view: TenantScope,
    is_system: bool,
}

impl Tenant {
    /// What the resources that it creates are stamped with; empty without tenancy and for system
    /// identities.
    pub fn tenancy(&self) -> &Tenancy {
        &self.tenancy
    }

    /// What it sees and changes.
    pub fn tenants(&self) -> &TenantScope {
        &self.view
    }

    /// Whether it is a part of the system, such as an adapter, that works for every tenant.
    pub fn is_system(&self) -> bool {
        self.is_system
    }

    /// What the log calls it: `org=acme,project=web`, or `system`; unset without tenancy.
    pub fn label(&self) -> Option<String> {
        if self.is_system {
            return Some("system".to_owned());
        }
        let dimensions = self.tenancy.iter();
        let dimensions: Vec<_> = dimensions.map(|(key, v)| format!("{key}={v}")).collect();
        (!dimensions.is_empty()).then(|| dimensions.join(","))
    }

    /// Checks that it may say what is wanted: create, patch, delete and force-delete.
    ///
    /// # Errors
    ///
    /// System identities report on what others want.
    pub fn require_author(&self) -> Result<(), Denied> {
        if self.is_system {
            Err(Denied::OnlyReports)
        } else {
            Ok(())
        }
    }
}

/// The resources that a caller may see. Others do not exist for it: every statement that looks for
/// resources is given one. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantScope(Option<Tenancy>);

impl TenantScope {
    /// All of them.
    pub const ALL: Self = Self(None);

    /// The tenancy that resources must have, exactly; unset where any will do. Never an empty one:
    /// what belongs to nobody is for those who see everything.
    pub fn tenancy(&self) -> Option<&Tenancy> {
        self.0.as_ref()
    }

    fn of(tenancy: Tenancy) -> Self {
        Self(Some(tenancy))
    }
}
