//! Translates errors of etcd and its client into those that callers can act on.

use std::error::Error as _;

use etcd_client::Error as Source;

use crate::keys::Error;

/// Codes of gRPC, by their numbers in its specification.
mod code {
    pub(super) const CANCELLED: i32 = 1;
    pub(super) const UNKNOWN: i32 = 2;
    pub(super) const DEADLINE_EXCEEDED: i32 = 4;
    pub(super) const PERMISSION_DENIED: i32 = 7;
    pub(super) const RESOURCE_EXHAUSTED: i32 = 8;
    pub(super) const UNAVAILABLE: i32 = 14;
    pub(super) const UNAUTHENTICATED: i32 = 16;
}

/// Whether a call failed before it reached a server, because no connection could be made.
pub(super) fn is_unsent(error: &Source) -> bool {
    let mut cause: Option<&dyn std::error::Error> = match error {
        Source::GRpcStatus(status) => status.source(),
        Source::TransportError(error) => Some(error),
        _ => None,
    };
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Classifies an error of etcd. `doing` is a verb and its object.
pub(super) fn classify(source: Source, doing: &'static str) -> Error {
    let (code, message) = match &source {
        Source::GRpcStatus(status) => (status.code() as i32, status.message()),
        Source::TransportError(_) | Source::IoError(_) => (code::UNAVAILABLE, ""),
        _ => (0, ""),
    };
    match judge(code, message) {
        Verdict::Unavailable => Error::Unavailable {
            doing,
            source: Box::new(source),
        },
        Verdict::Refused => Error::Refused {
            doing,
            message: message.to_owned(),
        },
        Verdict::Compacted => Error::Compacted,
        Verdict::TooLarge => Error::TooLarge { doing },
        Verdict::Future => Error::Future,
        Verdict::LeaseGone => Error::LeaseGone { doing },
        Verdict::Other => Error::Failed {
            doing,
            source: Box::new(source),
        },
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Unavailable,
    Refused,
    Compacted,
    TooLarge,
    Future,
    LeaseGone,
    Other,
}

/// Uses etcd's own texts (`api/v3rpc/rpctypes`) where a code has several meanings.
fn judge(code: i32, message: &str) -> Verdict {
    const TEXTS: [(&str, Verdict); 14] = [
        ("required revision has been compacted", Verdict::Compacted),
        ("required revision is a future revision", Verdict::Future),
        ("requested lease not found", Verdict::LeaseGone),
        // From our client, and from a server.
        ("message length too large", Verdict::TooLarge),
        ("message larger than max", Verdict::TooLarge),
        ("permission denied", Verdict::Refused),
        ("authentication failed", Verdict::Refused),
        ("user name is empty", Verdict::Refused),
        ("user name not found", Verdict::Refused),
        ("authentication is not enabled", Verdict::Refused),
        ("database space exceeded", Verdict::Unavailable),
        ("no leader", Verdict::Unavailable),
        ("revision of auth store is old", Verdict::Unavailable),
        ("request timed out", Verdict::Unavailable),
    ];
    for (text, verdict) in TEXTS {
        if message.contains(text) {
            return verdict;
        }
    }
    match code {
        code::PERMISSION_DENIED | code::UNAUTHENTICATED => Verdict::Refused,
        // The client reports a lost connection as cancelled or unknown.
        code::UNAVAILABLE
        | code::DEADLINE_EXCEEDED
        | code::RESOURCE_EXHAUSTED
        | code::CANCELLED
        | code::UNKNOWN => Verdict::Unavailable,
        _ => Verdict::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_etcd_says_is_sorted_by_what_to_do_about_it() {
        for (code, message, verdict) in [
            (
                11,
                "etcdserver: mvcc: required revision has been compacted",
                Verdict::Compacted,
            ),
            (
                11,
                "etcdserver: mvcc: required revision is a future revision",
                Verdict::Future,
            ),
            (
                5,
                "etcdserver: requested lease not found",
                Verdict::LeaseGone,
            ),
            (7, "etcdserver: permission denied", Verdict::Refused),
            (
                3,
                "etcdserver: authentication failed, invalid user ID or password",
                Verdict::Refused,
            ),
            (3, "etcdserver: user name is empty", Verdict::Refused),
            (16, "etcdserver: invalid auth token", Verdict::Refused),
            (
                8,
                "etcdserver: mvcc: database space exceeded",
                Verdict::Unavailable,
            ),
            (14, "etcdserver: leader changed", Verdict::Unavailable),
            (14, "", Verdict::Unavailable),
            (
                3,
                "etcdserver: duplicate key given in txn request",
                Verdict::Other,
            ),
            (
                3,
                "etcdserver: too many operations in txn request",
                Verdict::Other,
            ),
        ] {
            assert_eq!(judge(code, message), verdict, "{message}");
        }
    }
}
