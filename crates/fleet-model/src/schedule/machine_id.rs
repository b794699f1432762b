//! What machines are called.

use std::sync::Arc;

use crate::identity::identity;

identity!(
    /// The id of a machine, as systemd has it.
    MachineId
);

impl MachineId {
    /// The machine of that id, which was checked where it came in.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self::unchecked(id)
    }
}
