//! Events of a journal that a script prints in place of `journalctl`.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::*;

/// Entry n has the cursor `s=n` and the text that `text n` prints.
const SCRIPT: &str = r#"
first=1 most=$count
for option; do
    case $option in
        --cursor=s=*) first=${option#*=s=} ;;
        --after-cursor=s=*) first=$((${option#*=s=} + 1)) ;;
        --lines=all) ;;
        --lines=*) most=${option#*=} ;;
        --output=json) as_json=1 ;;
        --follow) follows=1 ;;
        --after-cursor=bad) echo "Failed to seek to cursor: Invalid argument" >&2; exit 1 ;;
        --after-cursor=broken) echo "Failed to open files: Permission denied" >&2; exit 1 ;;
    esac
done
last=$((first + most - 1))
[ $last -le $count ] || last=$count
for n in $(seq $first $last); do
    if [ -n "$as_json" ]; then echo "{\"__CURSOR\":\"s=$n\"}"; else text $n; fi
done
[ -n "$as_json" ] || echo "-- cursor: s=$last"
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

/// The texts of events up to the one with this id.
async fn texts_until(events: &mut JournalEvents, id: &str) -> Vec<String> {
    let end = format!("\nid: {id}\n\n");
    let mut texts = Vec::new();
    loop {
        let event = String::from_utf8(events.next().await.unwrap()).unwrap();
        assert!(event.len() <= EVENT_BYTES_MAX, "{}", event.len());
        let Some(data) = event.strip_prefix("event: lines\ndata: ") else {
            continue;
        };
        let data = data.lines().next().unwrap();
        texts.push(serde_json::from_str(data).unwrap());
        if event.ends_with(&end) {
            return texts;
        }
    }
}

#[tokio::test]
async fn many_entries_make_few_events_and_none_is_lost_or_repeated() {
    let journal = FakeJournal::new(5_000, "echo line $1");
    let begun = JournalEvents::begin(journal.journal(), 10_000).await;
    let texts = texts_until(&mut begun.unwrap(), "s=5000").await;
    // 64, 128, 256, …
    assert_eq!(texts.len(), 7);
    let all = texts.concat();
    let expected = (1..=5_000).map(|n| format!("line {n}"));
    assert!(all.lines().eq(expected));
    let after = "s=4998".parse().unwrap();
    let resumed = JournalEvents::resume(journal.journal(), &after).await;
    let texts = texts_until(&mut resumed.unwrap(), "s=5000").await;
    assert_eq!(texts, ["line 4999\nline 5000\n"]);
}

#[tokio::test]
async fn long_entries_come_a_few_at_a_time_and_the_longest_are_shortened() {
    // journald accepts at most 48 KiB from a service. Entry 10 is longer than any event.
    let text = "head -c $(($1 == 10 ? 1000000 : 49152)) /dev/zero | tr '\\0' x; echo $1";
    let journal = FakeJournal::new(12, text);
    let begun = JournalEvents::begin(journal.journal(), 12).await;
    let texts = texts_until(&mut begun.unwrap(), "s=12").await;
    let all = texts.concat();
    let lines: Vec<&str> = all.lines().collect();
    let long = lines.iter().filter(|line| line.len() > 49_152).count();
    assert_eq!(long, 12, "{texts:?}");
    assert!(lines.contains(&"[867923 bytes left out]"));
    for entry in 1..=12 {
        let of_entry = lines
            .iter()
            .filter(|line| line.ends_with(&format!("x{entry}")));
        assert_eq!(of_entry.count(), 1, "{entry}");
    }
}

#[tokio::test]
async fn an_entry_whose_event_would_be_too_long_is_shortened() {
    let journal = FakeJournal::new(2, "head -c 100000 /dev/zero; echo $1");
    let begun = JournalEvents::begin(journal.journal(), 2).await;
    let texts = texts_until(&mut begun.unwrap(), "s=2").await;
    let left_out = format!("\n[{} bytes left out]\n", 100_002 - SHORTENED_BYTES);
    assert_eq!(texts.len(), 2);
    for text in texts {
        assert!(text.ends_with(&left_out), "{}", text.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_journal_is_awaited_by_one_program_over_heartbeats() {
    let journal = FakeJournal::new(0, "true");
    let begun = JournalEvents::begin(journal.journal(), 10).await;
    let mut events = begun.unwrap();
    let opening = events.next().await.unwrap();
    assert!(opening.ends_with(b"id: start\n\n"));
    for _ in 0..3 {
        assert_eq!(events.next().await.unwrap(), wire::heartbeat().as_bytes());
        assert!(matches!(events.next, Next::Awaited(_)), "it was not kept");
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
    let missing = JournalEvents::begin(missing, 1).await.unwrap_err();
    assert!(matches!(missing, Failure::NotStarted(_)), "{missing}");
}
