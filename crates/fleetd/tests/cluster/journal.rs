//! A followed journal over breaking connections: of the asked machine and, through it, of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyperfleet_testkit::{PrivateMachine, until};
use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::cluster::Cluster;
use super::followers::Follower;

/// Lines that a unit logs once it may.
const LINES: usize = 600;
/// Bytes of a response after which a journal's connection is cut, in turn. The first ones carry the beginning.
const CUTS: [usize; 7] = [100_000, 100_000, 150, 70_000, 120_000, 4_000, 200_000];

/// Logs `ready` when systemd has logged its start, waits for a file, and logs its lines.
fn chatter() -> String {
    format!(
        "Service ExecStart=/bin/sh -c 'sleep 1; echo ready; until [ -e /run/go ]; do sleep 0.1; done; i=0; \
         while [ $$i -lt {LINES} ]; do i=$$((i+1)); echo line $$i; sleep 0.01; done; echo end; exec sleep 1000'"
    )
}

/// A proxy to the API of a machine that cuts connections with a journal.
struct BrokenWay {
    address: String,
    journals: Arc<Journals>,
}

/// Connections with a journal.
#[derive(Default)]
struct Journals {
    asked: AtomicUsize,
    /// Those that have carried an id.
    begun: AtomicUsize,
    cut: AtomicUsize,
}

impl BrokenWay {
    async fn to(machine: &PrivateMachine) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (socket, journals) = (machine.socket(), Arc::<Journals>::default());
        let counts = journals.clone();
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = UnixStream::connect(&socket).await.unwrap();
                let counts = counts.clone();
                tokio::spawn(async move { pass_on(client, server, &counts).await });
            }
        });
        Self { address, journals }
    }

    fn begun(&self) -> usize {
        self.journals.begun.load(Ordering::Relaxed)
    }
}

/// Forwards bytes both ways; of a response with a journal only as many as its turn allows.
async fn pass_on(client: TcpStream, server: UnixStream, journals: &Journals) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (mut left, mut has_begun) = (None, false);
    let (mut asked, mut answered) = (vec![0; 4096], vec![0; 4096]);
    loop {
        tokio::select! {
            read = from_client.read(&mut asked) => {
                let Ok(count @ 1..) = read else { return };
                let asked = &asked[..count];
                if String::from_utf8_lossy(asked).contains("/journal?") {
                    let turn = journals.asked.fetch_add(1, Ordering::Relaxed);
                    left = Some(CUTS[turn % CUTS.len()]);
                }
                to_server.write_all(asked).await.unwrap();
            }
            read = from_server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                let count = left.map_or(count, |left| count.min(left));
                let answered = &answered[..count];
                if to_client.write_all(answered).await.is_err() {
                    return;
                }
                let has_id = left.is_some() && String::from_utf8_lossy(answered).contains("\nid: ");
                if has_id && !std::mem::replace(&mut has_begun, true) {
                    journals.begun.fetch_add(1, Ordering::Relaxed);
                }
                left = left.map(|left| left - count);
                if left == Some(0) {
                    journals.cut.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_followed_journal_survives_broken_connections_line_by_line() {
    let Some(cluster) = Cluster::boot_with_peers(2).await else {
        return;
    };
    let [first, second] = &cluster.machines[..] else {
        panic!("two machines");
    };
    let folder = tempfile::tempdir().unwrap();
    let unit = "chatter.service";
    let place = [chatter(), "X-Fleet MachineMetadata=host=m1".to_owned()];
    let place = place.each_ref().map(String::as_str);
    cluster.api().put(unit, &place, "launched").await;
    cluster.until_active_on(unit).await;
    for (name, endpoint) in [("the machine itself", first), ("another machine", second)] {
        let way = BrokenWay::to(endpoint).await;
        until(&format!("the journal begins over {name}"), async || {
            let path = format!("/fleet/v1/units/{unit}/journal");
            let answer = Cluster::api_of(endpoint).request(Method::GET, &path).await;
            answer.text().await.unwrap().contains("\"ready\"")
        })
        .await;
        let endpoint_of = format!("http://{}", way.address);
        let recent = Follower::start(&endpoint_of, "1", unit, folder.path());
        until("the last line is there", async || {
            recent.printed() == ["ready"]
        })
        .await;
        let new = Follower::start(&endpoint_of, "0", unit, folder.path());
        // It prints nothing when its stream begins.
        until("both streams have begun", async || way.begun() == 2).await;
        first.run(&["touch", "/run/go"]);
        let mut expected: Vec<_> = (1..=LINES).map(|n| format!("line {n}")).collect();
        expected.push("end".to_owned());
        for follower in [&new, &recent] {
            until(&format!("all is printed over {name}"), async || {
                follower.printed().last().is_some_and(|line| line == "end")
            })
            .await;
        }
        assert_eq!(new.printed(), expected, "new lines over {name}");
        expected.insert(0, "ready".to_owned());
        assert_eq!(
            recent.printed(),
            expected,
            "the last line and new ones over {name}"
        );
        // journalctl does not accept it.
        let nowhere = format!("/fleet/v1/units/{unit}/journal?watch=true&after=x");
        let refused = Cluster::api_of(endpoint)
            .request(Method::GET, &nowhere)
            .await;
        assert_eq!(refused.status().as_u16(), 400);
        let said = refused.text().await.unwrap();
        assert!(said.contains("leave out `after`"), "{said}");
        let cut = way.journals.cut.load(Ordering::Relaxed);
        assert!(cut >= 6, "{cut} connections were cut over {name}");
        println!("{cut} connections were cut over {name}");
        first.run(&["rm", "/run/go"]);
        first.systemctl(&["restart", unit]);
    }
    cluster.destroy(&[unit]).await;
    cluster.until_empty().await;
}
