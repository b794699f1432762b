//! Two instances behind a real proxy, restarted in turn while clients go on: nobody notices.

use std::path::Path;
use std::sync::Arc;

use hyperfleet_domain::entity_config;

use super::balancer::{Balanced, haproxy};
use super::load::Load;
use super::program::CURRENT;
use crate::support::{TestDatabase, assert_sound};

/// How often each instance is restarted.
const RESTARTS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_lost_while_instances_are_restarted_in_turn() {
    let Some(haproxy) = haproxy() else { return };
    let database = TestDatabase::create().await;
    let mut direct = database.connect().await;
    let current = Path::new(CURRENT);
    let mut balanced = Balanced::start(&haproxy, current, database).await;
    let load = Arc::new(Load::on(balanced.api()));
    let clients = load.start_with_readers();
    for _ in 0..RESTARTS {
        for number in 0..2 {
            load.until_acknowledged(30).await;
            balanced.replace(number, current).await;
        }
    }
    let known = load.end(clients).await;
    assert_eq!(load.refused(), 0);
    assert!(
        load.reads() > 100 && known.len() > 20,
        "{} and {}",
        load.reads(),
        known.len()
    );
    for known in known {
        known.assert_there(&load.api).await;
    }
    assert_sound(&mut direct, &entity_config::built_in()).await;
}
