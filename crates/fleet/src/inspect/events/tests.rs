//! Events of a journal that a script prints in place of `journalctl`.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::*;

/// Entry n has the cursor `s=n` and the message that `text n` prints, which is null without `--all`.
const SCRIPT: &str = r#"
first=1 most=$count
for option; do
    case $option in
        --cursor=s=*) first=${option#*=s=} ;;
        --after-cursor=s=*) first=$((${option#*=s=} + 1)) ;;
        --lines=all) ;;
        --lines=*) newest=${option#*=} ;;
        --all) all=1 ;;
        --follow) follows=1 ;;
        --after-cursor=bad) echo "Failed to seek to cursor: Invalid argument" >&2; exit 1 ;;
        --after-cursor=broken) echo "Failed to open files: Permission denied" >&2; exit 1 ;;
    esac
done
[ -z "$newest" ] || [ $newest -ge $count ] || first=$((count - newest + 1))
for n in $(seq $first $count); do
    if [ -n "$all" ]; then message="\"$(text $n)\""; else message=null; fi
    echo "{\"MESSAGE\":$message,\"__CURSOR\":\"s=$n\"}"
done
[ -z "$follows" ] || exec sleep 1000
"#;

/// A journal in its own folder.
struct FakeJournal {
    folder: TempDir,
}

impl FakeJournal {
    /// With `count` entries. `text` is the body of a shell function.
    fn new(count: usize, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("#!/bin/bash\ncount={count}\ntext() {{ {text}; }}\n{SCRIPT}");
        let plain = folder.path().join("plain");
        std::fs::write(&plain, script).unwrap();
        let journal = Self { folder };
        // Another process writes the script: a file that this process has open while another thread forks
        // cannot be executed.
        let mut install = Command::new("install");
        install
            .args(["-m", "755"])
            .arg(plain)
            .arg(journal.program());
        assert!(install.status().unwrap().success());
        journal
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("journalctl")
    }

    fn journal(&self) -> Journal {
        Journal::printed_by(&self.program())
    }
}

/// The messages of events up to the one with this id.
async fn messages_until(events: &mut JournalEvents, id: &str) -> Vec<serde_json::Value> {
    let mut messages = Vec::new();
    loop {
        let piece = events.next().await.unwrap().expect("it has ended");
        assert!(
            piece.len() <= PIECE_BYTES + ENTRY_BYTES_MAX + 100,
            "{}",
            piece.len()
        );
        for event in String::from_utf8(piece).unwrap().split_terminator("\n\n") {
            let Some(event) = event.strip_prefix("event: entry\ndata: ") else {
                continue;
            };
            let (data, of_event) = event.split_once("\nid: ").unwrap();
            let entry: serde_json::Value = serde_json::from_str(data).unwrap();
            assert_eq!(entry["__CURSOR"], of_event);
            messages.push(entry["MESSAGE"].clone());
            if of_event == id {
                return messages;
            }
        }
    }
}

#[tokio::test]
async fn a_followed_journal_loses_and_repeats_no_entry() {
    let journal = FakeJournal::new(1_000, "echo line $1");
    let begun = JournalEvents::follow(journal.journal(), 600).await;
    let messages = messages_until(&mut begun.unwrap(), "s=1000").await;
    assert!(
        messages.iter().eq(&(401..=1_000)
            .map(|n| format!("line {n}"))
            .collect::<Vec<_>>())
    );
    let after = "s=998".parse().unwrap();
    let resumed = JournalEvents::resume(journal.journal(), &after).await;
    let messages = messages_until(&mut resumed.unwrap(), "s=1000").await;
    assert_eq!(messages, ["line 999", "line 1000"]);
}

#[tokio::test]
async fn newest_entries_end() {
    let journal = FakeJournal::new(5, "echo line $1");
    let mut newest = JournalEvents::newest(journal.journal(), 2).unwrap();
    assert_eq!(
        messages_until(&mut newest, "s=5").await,
        ["line 4", "line 5"]
    );
    assert_eq!(newest.next().await.unwrap(), None);
}

#[tokio::test]
async fn the_fields_of_an_entry_that_is_too_long_are_null() {
    // Entry 2 is too long, entry 3 is not.
    let text = "head -c $(($1 == 2 ? 200000 : 100000)) /dev/zero | tr '\\0' x";
    let journal = FakeJournal::new(3, text);
    let mut newest = JournalEvents::newest(journal.journal(), 3).unwrap();
    let messages = messages_until(&mut newest, "s=3").await;
    let lengths: Vec<_> = messages
        .iter()
        .map(|text| text.as_str().map(str::len))
        .collect();
    assert_eq!(lengths, [Some(100_000), None, Some(100_000)]);
}

#[tokio::test]
async fn without_an_entry_the_position_comes_first() {
    let followed = FakeJournal::new(3, "true");
    let begun = JournalEvents::follow(followed.journal(), 0).await;
    let opening = begun.unwrap().next().await.unwrap().unwrap();
    assert!(opening.ends_with(b"\nid: s=3\n\n"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_journal_has_heartbeats() {
    let journal = FakeJournal::new(0, "true");
    let begun = JournalEvents::follow(journal.journal(), 10).await;
    let mut events = begun.unwrap();
    let opening = events.next().await.unwrap().unwrap();
    assert!(opening.ends_with(b"id: start\n\n"));
    for _ in 0..3 {
        let beat = events.next().await.unwrap().unwrap();
        assert_eq!(beat, wire::heartbeat().as_bytes());
    }
}

#[tokio::test]
async fn a_refused_cursor_differs_from_other_failures() {
    let journal = FakeJournal::new(1, "true");
    let resume = async |after: &str| {
        let after = after.parse().unwrap();
        JournalEvents::resume(journal.journal(), &after).await
    };
    let refused = resume("bad").await.unwrap_err();
    assert!(matches!(&refused, Failure::RefusedCursor(words) if words.ends_with("argument")));
    let failed = resume("broken").await.unwrap_err();
    let words = "journalctl failed: exit status: 1: Failed to open files: Permission denied";
    assert!(matches!(&failed, Failure::Failed(_)) && failed.to_string() == words);
    let missing = Journal::printed_by(&journal.folder.path().join("missing"));
    let missing = JournalEvents::follow(missing, 1).await.unwrap_err();
    assert!(matches!(missing, Failure::NotStarted(_)), "{missing}");
}
