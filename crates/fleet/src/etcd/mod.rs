//! The key store on etcd v3.
//!
//! The client connects and logs in when it is first needed, and again when it must. Every call ends after
//! [`Settings::request_timeout`] at the latest.

mod error;
mod settings;
mod watch;

use std::future::Future;
use std::sync::Arc;

use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, DeleteOptions, GetOptions, KeyValue, KvClient,
    LeaseClient, PutOptions, Txn, TxnOp, TxnOpResponse, WatchClient,
};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use self::error::{classify, is_unsent};
pub use self::settings::{Credentials, EtcdTls, Identity, InvalidSettings, Settings};
pub use self::watch::EtcdWatch;
use crate::keys::{
    Entry, Error, Guard, KeyOperation, KeyStore, Lease, Range, RangePart, ReadPosition, Renewal,
    Revision, Transaction, TransactionOutcome,
};

/// Largest response, in bytes: a chunk of the largest values (`registry`), with a margin.
const ANSWER_BYTES_MAX: usize = 96 << 20;
/// Attempts of a call for each server of the cluster.
const ATTEMPTS_PER_SERVER: usize = 2;
const CONNECTING: &str = "connect to etcd";

/// A connection to a cluster of etcd servers. Clones share it.
#[derive(Clone)]
pub struct EtcdKeys {
    settings: Settings,
    options: ConnectOptions,
    clients: Arc<OnceCell<Clients>>,
    /// Connections live on this runtime. The runtime of the thread that first asks may end before them.
    runtime: Handle,
}

/// The clients of an authenticated connection.
#[derive(Clone)]
struct Clients {
    kv: KvClient,
    leases: LeaseClient,
    watches: WatchClient,
}

impl std::fmt::Debug for EtcdKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EtcdKeys").field(&self.settings).finish()
    }
}

impl EtcdKeys {
    /// Prepares a connection without contacting the cluster. With a user and password the first call logs in,
    /// and later calls try again until that succeeds.
    ///
    /// Connections live on the runtime that this is called on.
    ///
    /// # Errors
    /// Invalid settings.
    pub fn prepare(settings: Settings) -> Result<Self, InvalidSettings> {
        Ok(Self {
            options: settings.options()?,
            settings,
            clients: Arc::default(),
            runtime: Handle::current(),
        })
    }

    /// Prepares a connection and logs in.
    ///
    /// # Errors
    /// [`Error::Failed`] for invalid settings, [`Error::Refused`] if the user is refused.
    pub async fn connect(settings: Settings) -> Result<Self, Error> {
        let keys = Self::prepare(settings).map_err(|source| Error::Failed {
            doing: CONNECTING,
            source: Box::new(source),
        })?;
        keys.clients().await?;
        Ok(keys)
    }

    /// The clients. Of several callers before the log-in, one logs in and the others wait.
    async fn clients(&self) -> Result<Clients, Error> {
        let connected = self.clients.get_or_try_init(|| {
            let (settings, options) = (self.settings.clone(), self.options.clone());
            let connecting = self.runtime.spawn(async move {
                let connect = || Client::connect(&settings.endpoints, Some(options.clone()));
                within(&settings, CONNECTING, connect).await
            });
            async {
                let client = connecting.await.map_err(|source| Error::Failed {
                    doing: CONNECTING,
                    source: Box::new(source),
                })??;
                Ok(Clients {
                    kv: client
                        .kv_client()
                        .max_decoding_message_size(ANSWER_BYTES_MAX),
                    leases: client.lease_client(),
                    watches: client
                        .watch_client()
                        .max_decoding_message_size(ANSWER_BYTES_MAX),
                })
            }
        });
        // Waiting behind others that fail would take too long.
        match tokio::time::timeout(self.settings.request_timeout, connected).await {
            Ok(connected) => connected.cloned(),
            Err(elapsed) => Err(Error::Unavailable {
                doing: CONNECTING,
                source: Box::new(elapsed),
            }),
        }
    }
}

/// Makes a call with a timeout.
///
/// The client distributes calls over all servers, also those that it cannot connect to. Such a call is repeated
/// and reaches another server, so a server that is down fails no call.
async fn within<T, F>(
    settings: &Settings,
    doing: &'static str,
    call: impl Fn() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, etcd_client::Error>>,
{
    let answered = async {
        for _ in 1..settings.endpoints.len() * ATTEMPTS_PER_SERVER {
            match call().await {
                Err(error) if is_unsent(&error) => {}
                answer => return answer,
            }
        }
        call().await
    };
    match tokio::time::timeout(settings.request_timeout, answered).await {
        Ok(answer) => answer.map_err(|source| classify(source, doing)),
        Err(elapsed) => Err(Error::Unavailable {
            doing,
            source: Box::new(elapsed),
        }),
    }
}

impl KeyStore for EtcdKeys {
    type Watch = EtcdWatch;

    async fn commit(&self, transaction: Transaction) -> Result<TransactionOutcome, Error> {
        let doing = "commit a transaction";
        let (kv, txn) = (self.clients().await?.kv, txn(transaction));
        let committed = || {
            let (mut kv, txn) = (kv.clone(), txn.clone());
            async move { kv.txn(txn).await }
        };
        let answer = within(&self.settings, doing, committed).await?;
        let mut found = Vec::new();
        for response in answer.op_responses() {
            if let TxnOpResponse::Get(mut get) = response {
                found.extend(get.take_kvs().into_iter().map(entry));
            }
        }
        Ok(TransactionOutcome {
            succeeded: answer.succeeded(),
            revision: revision(answer.header(), doing)?,
            found,
        })
    }

    async fn list(
        &self,
        range: Range,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<RangePart, Error> {
        let doing = "read a range";
        let mut options = GetOptions::new()
            .with_range(range.to)
            .with_limit(i64::try_from(limit).unwrap_or(i64::MAX));
        if let Some(at) = at {
            options = options.with_revision(at);
        }
        let kv = self.clients().await?.kv;
        let read = || {
            let (mut kv, from, options) = (kv.clone(), range.from.clone(), options.clone());
            async move { kv.get(from, Some(options)).await }
        };
        let mut answer = within(&self.settings, doing, read).await?;
        Ok(RangePart {
            more: answer.more(),
            revision: at.map_or_else(|| revision(answer.header(), doing), Ok)?,
            entries: answer.take_kvs().into_iter().map(entry).collect(),
        })
    }

    async fn identity(&self) -> Result<u64, Error> {
        let doing = "ask which cluster it is";
        let kv = self.clients().await?.kv;
        let counted = || {
            let (mut kv, count) = (kv.clone(), GetOptions::new().with_count_only());
            async move { kv.get("/", Some(count)).await }
        };
        let answer = within(&self.settings, doing, counted).await?;
        let header = answer.header().ok_or_else(|| headless(doing))?;
        Ok(header.cluster_id())
    }

    async fn grant(&self, seconds: u32) -> Result<Lease, Error> {
        let leases = self.clients().await?.leases;
        let granted = || {
            let mut leases = leases.clone();
            async move { leases.grant(i64::from(seconds), None).await }
        };
        let answer = within(&self.settings, "grant a lease", granted).await?;
        Ok(Lease(answer.id()))
    }

    async fn renew(&self, lease: Lease) -> Result<Renewal, Error> {
        let leases = self.clients().await?.leases;
        // The first message of the stream confirms the renewal. The stream ends with this call.
        let kept = || {
            let mut leases = leases.clone();
            async move {
                match leases.keep_alive(lease.0).await {
                    Ok(_) => Ok(Renewal::Renewed),
                    Err(etcd_client::Error::LeaseKeepAliveError(_)) => Ok(Renewal::Expired),
                    Err(error) => Err(error),
                }
            }
        };
        within(&self.settings, "keep a lease", kept).await
    }

    async fn revoke(&self, lease: Lease) -> Result<(), Error> {
        let leases = self.clients().await?.leases;
        let revoked = || {
            let mut leases = leases.clone();
            async move { leases.revoke(lease.0).await }
        };
        match within(&self.settings, "revoke a lease", revoked).await {
            Ok(_) | Err(Error::LeaseGone { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn watch(&self, range: Range, after: ReadPosition) -> EtcdWatch {
        EtcdWatch::new(self.clone(), range, after)
    }
}

fn txn(transaction: Transaction) -> Txn {
    let mut then: Vec<_> = transaction.then.into_iter().map(operation).collect();
    let otherwise: Vec<_> = transaction.otherwise.into_iter().map(operation).collect();
    // A server answers a transaction without operations from its own memory, even when it is cut off from the
    // others. A read makes it ask the others first; a count returns no keys.
    if let (Some(guard), true) = (
        transaction.guards.first(),
        then.is_empty() && otherwise.is_empty(),
    ) {
        let count = GetOptions::new().with_count_only();
        then.push(TxnOp::get(guard.key(), Some(count)));
    }
    let guards: Vec<_> = transaction.guards.into_iter().map(compare).collect();
    Txn::new().when(guards).and_then(then).or_else(otherwise)
}

fn compare(guard: Guard) -> Compare {
    match guard {
        Guard::Absent(key) => Compare::create_revision(key, CompareOp::Equal, 0),
        Guard::Created(key, at) => Compare::create_revision(key, CompareOp::Equal, at),
        Guard::Modified(key, at) => Compare::mod_revision(key, CompareOp::Equal, at),
    }
}

fn operation(operation: KeyOperation) -> TxnOp {
    match operation {
        KeyOperation::Get(key) => TxnOp::get(key, None),
        KeyOperation::Put(key, value, lease) => {
            let options = lease.map(|lease| PutOptions::new().with_lease(lease.0));
            TxnOp::put(key, value, options)
        }
        KeyOperation::Delete(key) => TxnOp::delete(key, None::<DeleteOptions>),
    }
}

fn entry(pair: KeyValue) -> Entry {
    let (created, modified) = (pair.create_revision(), pair.mod_revision());
    let (key, value) = pair.into_key_value();
    Entry {
        key,
        value,
        created,
        modified,
    }
}

fn revision(
    header: Option<&etcd_client::ResponseHeader>,
    doing: &'static str,
) -> Result<Revision, Error> {
    Ok(header.ok_or_else(|| headless(doing))?.revision())
}

fn headless(doing: &'static str) -> Error {
    Error::Failed {
        doing,
        source: "an answer without a header".into(),
    }
}
