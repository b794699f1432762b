//! The machine's membership of the cluster: its registrations, and the keeper that renews them.

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::Settings;
use super::disk::StateFile;
use super::keeper::{MachineLease, RegistrationKeeper};
use super::kept_registration::KeptRegistration;
use crate::keys::KeyStore;
use crate::registry::{Key, Registration, Registry};
use hyperfleet_server_kit::causes::chain;

pub(super) struct Membership<S> {
    lease: watch::Receiver<MachineLease>,
    /// The last registration of the previous process.
    previous: Option<Registration>,
    /// The last one of this process: it has registered the machine, or has resumed the registration. It may have expired.
    own: Option<Registration>,
    state_file: StateFile,
    /// Unset once it runs.
    keeper: Option<RegistrationKeeper<S>>,
    keeping: JoinSet<()>,
    /// Whether the agent is halted, for the machine's record.
    is_halted: watch::Sender<bool>,
    /// Notifies the keeper that the registration is void.
    is_void: Arc<Notify>,
}

impl<S: KeyStore> Membership<S> {
    /// Continues that of the previous process, if it was under the same key.
    pub(super) fn new(
        registry: &Registry<S>,
        settings: &Settings,
        state_file: StateFile,
        is_halted: bool,
    ) -> Self {
        let key = registry.name(&Key::Machine(settings.id.clone()));
        let saved = state_file.registration();
        let saved = saved.filter(|saved| saved.key == key);
        let (lease_sender, lease) = watch::channel(MachineLease::unknown(settings.lease));
        let is_void = Arc::<Notify>::default();
        let is_halted = watch::Sender::new(is_halted);
        let keeper = RegistrationKeeper {
            registry: registry.clone(),
            id: settings.id.clone(),
            machine: settings.machine.clone(),
            is_halted: is_halted.subscribe(),
            lease: settings.lease,
            // With another lease it cannot be resumed.
            before: (saved.as_ref())
                .filter(|saved| saved.lease == settings.lease)
                .map(|saved| saved.registration.clone()),
            state_file: state_file.clone(),
            kept: (settings.host.clone()).map(|host| KeptRegistration::new(host, key)),
            lease_sender,
            is_void: Arc::clone(&is_void),
        };
        Self {
            lease,
            previous: saved.map(|saved| saved.registration),
            own: None,
            state_file,
            keeper: Some(keeper),
            keeping: JoinSet::new(),
            is_halted,
            is_void,
        }
    }

    /// Starts to register the machine. Call it when systemd was reached: a machine that can run nothing is no member of the
    /// cluster.
    pub(super) fn join(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            self.keeping.spawn(keeper.run());
        }
    }

    pub(super) fn lease(&self) -> watch::Ref<'_, MachineLease> {
        self.lease.borrow()
    }

    /// The registration; `None` while the machine is not registered.
    pub(super) fn registration(&self) -> Option<Registration> {
        self.lease().registration.clone()
    }

    /// The last registration, which may have expired.
    pub(super) fn last(&self) -> Option<&Registration> {
        self.own.as_ref().or(self.previous.as_ref())
    }

    /// Whether this process has registered the machine, or has resumed its registration.
    pub(super) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Waits until the lease changes; an error means that the keeper has ended.
    pub(super) async fn changed(&mut self) -> Result<(), watch::error::RecvError> {
        self.lease.changed().await
    }

    /// Takes the current registration over, and returns it with whether it is the last one.
    pub(super) fn refresh(&mut self) -> (Option<Registration>, bool) {
        let registration = self.lease.borrow_and_update().registration.clone();
        let is_same = registration.as_ref() == self.last();
        self.own = registration.clone().or(self.own.take());
        (registration, is_same)
    }

    /// Publishes whether the agent is halted, also if nothing has changed: the registry may have an older record.
    pub(super) fn show_halted(&self, is_halted: bool) {
        self.is_halted.send_replace(is_halted);
    }

    /// Makes the keeper check the registration, after a write has found it void.
    pub(super) fn check(&self) {
        self.is_void.notify_one();
    }

    /// Stops the keeper, and leaves the registration to expire.
    pub(super) async fn stop_keeping(&mut self) {
        self.keeping.shutdown().await;
    }

    /// Leaves the cluster, instead of waiting for the lease to expire.
    pub(super) async fn leave(&self, registry: &Registry<S>) {
        self.state_file.remember_registration(None);
        // The keeper may have registered the machine since the agent last looked.
        let registration = self.registration().or(self.last().cloned());
        if let Some(registration) = registration
            && let Err(error) = registry.deregister_machine(registration).await
        {
            let error = chain(&error);
            tracing::warn!(error, "revoking the machine's lease failed: it will expire");
        }
    }
}
