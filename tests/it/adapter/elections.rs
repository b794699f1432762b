//! Several copies of an adapter, of which the holder of a lease works.

use std::time::{Duration, Instant};

use hyperfleet_adapter::{Api, Election, Runner, Settings, Token};
use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{Noting, Running, api_of, quick, service, until_reconciled};
use crate::support::{TestApi, until};

const LEASE: &str = "/leases/copies";
const SECONDS: u32 = 2;

fn election() -> Election {
    Election {
        seconds: SECONDS,
        ..Election::new("copies")
    }
}

fn copy_of(api: Api, adapter: &Noting) -> Running {
    Running::start(Runner::elected(
        api,
        quick(&["carts"]),
        adapter.clone(),
        election(),
    ))
}

/// The first of two copies, at work on a cart, and the second one, which waits.
async fn two_copies(api: &TestApi, first_api: Api, adapters: &[Noting; 2]) -> [Running; 2] {
    let first = copy_of(first_api, &adapters[0]);
    let cart = api.make("/carts", "Cart", "first").await;
    until("the first copy works", async || {
        adapters[0].calls_of(&cart) > 0
    })
    .await;
    let second = copy_of(api_of(api), &adapters[1]);
    // Longer than the lease: it is renewed.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert!(adapters[1].calls().is_empty(), "{:?}", adapters[1].calls());
    [first, second]
}

/// A proxy in front of the API that forwards nothing while it is cut, and answers nothing either.
async fn proxy(api: &TestApi) -> (Api, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let host = api.base.split("/api/").next().unwrap();
    let target = host.trim_start_matches("http://").to_owned();
    let (cut, is_cut) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let (target, mut is_cut) = (target.clone(), is_cut.clone());
            tokio::spawn(async move {
                if !*is_cut.borrow() {
                    let mut server = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => return,
                        _ = is_cut.wait_for(|is_cut| *is_cut) => {}
                    }
                }
                // The client waits on an open connection.
                tokio::time::sleep(Duration::from_hours(1)).await;
            });
        }
    });
    (Api::new(&base, Token::None).unwrap(), cut)
}

#[tokio::test]
async fn a_copy_takes_over_from_one_that_has_crashed() {
    let api = service().await;
    let adapters = [Noting::content(), Noting::content()];
    let [first, second] = two_copies(&api, api_of(&api), &adapters).await;
    let holder = api.get(LEASE).await.body["holder"].clone();
    first.task.abort();
    let crashed_at = Instant::now();
    let cart = api.make("/carts", "Cart", "later").await;
    until_reconciled(&api, &cart).await;
    let lasts = Duration::from_secs(SECONDS.into());
    assert!(
        crashed_at.elapsed() < lasts + Duration::from_secs(3),
        "{:?}",
        crashed_at.elapsed()
    );
    assert_eq!(adapters[0].calls_of(&cart), 0);
    assert_ne!(api.get(LEASE).await.body["holder"], holder);
    second.stop().await;
    assert_eq!(api.get(LEASE).await.status, 404, "it was released");
}

#[tokio::test]
async fn a_copy_that_stops_hands_over_immediately() {
    let api = service().await;
    let adapters = [Noting::content(), Noting::content()];
    let start = |adapter: &Noting, holder: &str| {
        let election = Election {
            holder: holder.to_owned(),
            seconds: 600,
            ..election()
        };
        let settings = quick(&["carts"]);
        Running::start(Runner::elected(
            api_of(&api),
            settings,
            adapter.clone(),
            election,
        ))
    };
    let first = start(&adapters[0], "first");
    let cart = api.make("/carts", "Cart", "first").await;
    until_reconciled(&api, &cart).await;
    let second = start(&adapters[1], "second");
    first.stop().await;
    until("the other works", async || adapters[1].calls_of(&cart) > 0).await;
    assert_eq!(api.get(LEASE).await.body["holder"], "second");
    second.stop().await;
}

#[tokio::test]
async fn a_copy_that_is_cut_off_stops_before_another_begins() {
    let api = service().await;
    // Each call takes longer than the test: it is cancelled, or it would overlap with that of the other copy.
    let adapters = [
        Noting::content().slow(Duration::from_hours(1)),
        Noting::content().slow(Duration::from_hours(1)),
    ];
    let (through, cut) = proxy(&api).await;
    let _copies = two_copies(&api, through, &adapters).await;
    cut.send_replace(true);
    until("the first copy has cancelled its work", async || {
        adapters[0].seen(|seen| !seen.dropped.is_empty())
    })
    .await;
    let cancelled_at = adapters[0].seen(|seen| seen.dropped[0]);
    until("the second copy works", async || {
        !adapters[1].calls().is_empty()
    })
    .await;
    let begun_at = adapters[1].seen(|seen| seen.begun_at.unwrap());
    assert!(cancelled_at < begun_at, "{:?}", cancelled_at - begun_at);
}

#[tokio::test]
async fn work_in_progress_ends_before_the_lease_is_released() {
    let api = service().await;
    let slow = Noting::content().slow(Duration::from_millis(700));
    let running = copy_of(api_of(&api), &slow);
    let cart = api.make("/carts", "Cart", "cart").await;
    until("it is worked on", async || slow.calls_of(&cart) == 1).await;
    let stop = tokio::spawn(running.stop());
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(api.get(LEASE).await.status, 200, "it is still held");
    stop.await.unwrap();
    assert!(super::is_reconciled(&api, &cart).await);
    assert_eq!(api.get(LEASE).await.status, 404);
}

#[tokio::test]
async fn a_lease_that_another_holder_has_acquired_is_lost() {
    let api = service().await;
    let adapter = Noting::content();
    let settings = Settings {
        sweep_interval: Duration::from_millis(100),
        ..quick(&["carts"])
    };
    let runner = Runner::elected(api_of(&api), settings, adapter.clone(), election());
    let running = Running::start(runner);
    let cart = api.make("/carts", "Cart", "cart").await;
    until_reconciled(&api, &cart).await;
    // As after a restore of the database.
    let holder = api.get(LEASE).await.body["holder"].clone();
    let holder = holder.as_str().unwrap();
    assert_eq!(
        api.delete(&format!("{LEASE}?holder={holder}")).await.status,
        204
    );
    let body = json!({"holder": "another", "duration_seconds": 60});
    assert_eq!(api.put(LEASE, body).await.status, 200);
    until("it has stopped working", async || {
        let calls = adapter.calls().len();
        tokio::time::sleep(Duration::from_millis(500)).await;
        adapter.calls().len() == calls
    })
    .await;
    running.stop().await;
    assert_eq!(api.get(LEASE).await.body["holder"], "another");
}
