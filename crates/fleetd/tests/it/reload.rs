//! SIGHUP and SIGUSR1.

use rustix::process::Signal;
use serde_json::Value;

use super::program::{Fleetd, Place};
use hyperfleet_testkit::until;

/// fleetd with a settings file that the test may rewrite.
fn by_file(place: &Place, text: &str) -> Fleetd {
    let file = place.write("fleet.conf", text);
    let mut command = place.command("m1", &[]);
    command.args(["--config", &file]);
    Fleetd::start(command, place.socket("m1"))
}

/// Tells it to read the settings again, and waits until it says something new that has these words.
async fn reload(fleetd: &mut Fleetd, words: &str) {
    let before = fleetd.output().matches(words).count();
    fleetd.signal(Signal::HUP);
    until(&format!("it says {words:?}"), async || {
        fleetd.output().matches(words).count() > before
    })
    .await;
}

const READ: &str = "settings reloaded";

#[tokio::test]
async fn a_reload_applies_what_it_can_and_names_the_rest() {
    let place = Place::new().await;
    let mut fleetd = by_file(&place, "");
    fleetd.until_serving().await;
    let api = fleetd.api();
    let ask = async || {
        let (status, _) = api.get("/fleet/v1/units?x=1").await.unwrap();
        assert_eq!(status, 200);
    };
    ask().await;
    assert!(!fleetd.output().contains("DEBUG"), "{}", fleetd.output());

    place.write("fleet.conf", "log_level = debug\ntoken_limit = 7\n");
    reload(&mut fleetd, READ).await;
    fleetd
        .until_output("changed settings need a restart keys=token_limit")
        .await;
    // Over the same connection.
    ask().await;
    fleetd.until_output("DEBUG").await;

    place.write("fleet.conf", "log_level = error\n");
    reload(&mut fleetd, "taken=").await;
    let before = fleetd.output();
    ask().await;
    assert_eq!(
        fleetd.output(),
        before,
        "at level error successful requests are not logged"
    );
    fleetd.stop().await;
}

#[tokio::test]
async fn unusable_settings_change_nothing_and_lose_no_signal() {
    let place = Place::new().await;
    let mut fleetd = by_file(&place, "");
    fleetd.until_serving().await;
    let kept = "settings unchanged";
    place.write("fleet.conf", "log_level = loud\nlisten = unix:relative\n");
    reload(&mut fleetd, kept).await;
    std::fs::remove_file(place.file("fleet.conf")).unwrap();
    reload(&mut fleetd, kept).await;
    place.write("fleet.conf", "");
    reload(&mut fleetd, READ).await;
    // A crowd of them, and then the end: the older fleetd did not survive the first.
    for _ in 0..50 {
        fleetd.signal(Signal::HUP);
    }
    fleetd.until_serving().await;
    fleetd.stop().await;
}

#[tokio::test]
async fn a_file_that_never_ends_wedges_nothing() {
    let place = Place::new().await;
    let mut fleetd = by_file(&place, "");
    fleetd.until_serving().await;
    let file = place.file("fleet.conf");
    std::fs::remove_file(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    assert!(made.unwrap().success());
    // A pipe without a writer: opening it for reading blocks.
    fleetd.signal(Signal::HUP);
    fleetd.until_serving().await;
    fleetd.stop().await;
}

#[tokio::test]
async fn usr1_prints_one_line_of_json_each_time() {
    let place = Place::new().await;
    let mut fleetd = place.start();
    fleetd.until_serving().await;
    for count in 1..=2 {
        // One that comes while the line before is being written is left out: so it is sent again.
        until("it prints a line", async || {
            fleetd.signal(Signal::USR1);
            fleetd.stdout().lines().count() >= count
        })
        .await;
    }
    let output = fleetd.stdout();
    let state: Value = serde_json::from_str(output.lines().next().unwrap()).unwrap();
    assert_eq!(state["machineID"], "m1");
    assert_eq!(state["etcd"]["connected"], true);
    assert_eq!(state["etcd"]["servers"][0], place.etcd);
    let listener = format!("unix:{}", fleetd.socket.display());
    assert_eq!(state["listeners"][0], listener);
    fleetd.stop().await;
}
