//! Ids of machines.

use std::sync::Arc;

use crate::identity::identity;

identity!(
    /// A machine's id, as in systemd.
    MachineId
);

impl MachineId {
    /// A machine id that was validated at the boundary.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self::unchecked(id)
    }
}
