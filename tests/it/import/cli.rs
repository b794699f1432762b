//! The command: what it prints, and what it ends with.

use std::process::Command;

use hyperfleet_testkit::RunningProgram;
use rustix::process::Signal;
use serde_json::Value;

use super::world::{World, cluster_id};
use crate::support::TestDatabase;

fn command(world: &World, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
    command.arg("import").args(["--config", "/dev/null"]);
    command.args([
        "--from",
        &world.source.url(),
        "--database-url",
        &world.target.url(),
    ]);
    command.args(more).env_remove("DATABASE_URL");
    command
}

fn start(world: &World, more: &[&str]) -> RunningProgram {
    RunningProgram::start(command(world, more))
}

/// The exit code, standard output, and all that was said.
async fn run(world: &World, more: &[&str]) -> (Option<i32>, String, String) {
    let mut program = start(world, more);
    let code = program.ended().await.code();
    (code, program.stdout(), program.output())
}

#[tokio::test]
async fn it_prints_what_it_did() {
    let world = World::filled(5).await;
    let (code, output, _) = run(&world, &["--dry-run"]).await;
    assert_eq!(code, Some(0));
    assert!(
        output.contains("A dry run, nothing is written: 20 added"),
        "{output}"
    );
    let (code, output, said) = run(&world, &["--batch", "10"]).await;
    assert_eq!(code, Some(0), "{said}");
    let expected = "\
KIND          SOURCE           HERE     REFUSED
Cluster            5              5           0
NodePool          15             15           0
20 added, 0 changed, 0 removed, 0 unchanged; 36 reports, 0 references.
Nothing is refused.
Compared everything: 20 resources are equal, 0 differ.
Digests: ";
    assert!(output.starts_with(expected), "{output}");
    for line in [
        "Listed 20 of 20 resources, 100 %",
        "Imported 20 of 20 resources, 100 %",
        "Compared 20 of 20 resources, 100 %",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[tokio::test]
async fn it_says_what_to_do_about_refused_rows() {
    let world = World::filled(2).await;
    world
        .there("UPDATE resources SET name = 'B A D' WHERE name = 'cluster-1'")
        .await;
    let (code, output, _) = run(&world, &[]).await;
    assert_eq!(code, Some(3), "{output}");
    let id = cluster_id(1);
    for part in [
        "Refused: 1 (name)\n  What to do: names never change",
        &format!("  Cluster {id} (B A D): name must start and end"),
        "Refused: 3 (no_parent)",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
    let (code, output, said) = run(&world, &["-o", "json"]).await;
    assert_eq!(code, Some(3), "{said}");
    assert!(!said.contains("Listed"), "{said}");
    let report: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(report["refused"], 4);
    assert_eq!(report["findings"]["name"], 1);
    assert_eq!(
        report["kinds"]["Cluster"],
        serde_json::json!({"source": 2, "imported": 1, "refused": 1})
    );
    assert_eq!(report["verification"]["equal"], 4);
    let digests = &report["verification"];
    assert_eq!(digests["source_digest"], digests["target_digest"]);
    let listed = report["listed"].as_array().unwrap();
    let name = listed.iter().find(|f| f["reason"] == "name").unwrap();
    assert_eq!(
        (&name["id"], &name["name"], &name["refused"]),
        (&id.into(), &"B A D".into(), &true.into())
    );
}

#[tokio::test]
async fn reports_without_a_resource_are_no_refusals() {
    let world = World::filled(2).await;
    world
        .there("UPDATE adapter_statuses SET resource_id = E'go\\x1bne' WHERE resource_type = 'Cluster' AND adapter = 'validation' AND resource_id LIKE '%1'")
        .await;
    let (code, output, said) = run(&world, &[]).await;
    assert_eq!(code, Some(0), "{said}");
    // What would move the cursor of a terminal is replaced.
    let expected = "Left behind: 1 (orphan_report)\n  What to do: nothing: the older service cannot read it either\n  \
                    Cluster go\u{fffd}ne, report of validation: the resource";
    assert!(output.contains(expected), "{output}");
}

#[tokio::test]
async fn a_url_with_a_password_needs_no_argument() {
    let world = World::filled(2).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{}\n", world.source.url())).unwrap();
    let file = file.path().to_str().unwrap();
    for (variable, value, code, words) in [
        ("HYPERFLEET_IMPORT_FROM", world.source.url().as_str(), 0, ""),
        ("HYPERFLEET_IMPORT_FROM_FILE", file, 0, ""),
        (
            "HYPERFLEET_IMPORT_FROM",
            "secret word",
            2,
            "import.from is not of the form",
        ),
        (
            "UNUSED",
            "",
            2,
            "name the database of the older service: --from URL, HYPERFLEET_IMPORT_FROM,",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
        command.args(["import", "--config", "/dev/null", "--database-url"]);
        command.arg(world.target.url()).env_remove("DATABASE_URL");
        command.env(variable, value);
        let mut program = RunningProgram::start(command);
        assert_eq!(
            program.ended().await.code(),
            Some(code),
            "{}",
            program.output()
        );
        assert!(program.output().contains(words), "{}", program.output());
        assert!(!program.output().contains("secret"), "{}", program.output());
    }
}

#[tokio::test]
async fn it_ends_with_4_where_the_databases_differ() {
    let world = World::filled(2).await;
    world
        .change_target(
            "CREATE FUNCTION alter_author() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN NEW.created_by := 'other'; RETURN NEW; END $$;
             CREATE TRIGGER alter_author BEFORE INSERT ON resources FOR EACH ROW
                 WHEN (NEW.name = 'cluster-1') EXECUTE FUNCTION alter_author()",
        )
        .await;
    let (code, output, _) = run(&world, &[]).await;
    assert_eq!(code, Some(4), "{output}");
    let line = format!(
        "7 resources are equal, 1 differ.\n  Cluster {}\n  What to do: import again.",
        cluster_id(1)
    );
    assert!(output.contains(&line), "{output}");
    world
        .change_target("DROP TRIGGER alter_author ON resources")
        .await;
    assert_eq!(run(&world, &[]).await.0, Some(0));
}

#[tokio::test]
async fn a_signal_ends_it_after_the_batch_and_the_next_run_goes_on() {
    let world = World::filled(300).await;
    let mut program = start(&world, &["--batch", "1"]);
    program.until_output("Imported 1 of 1200 resources").await;
    program.signal(Signal::INT);
    let code = program.ended().await.code();
    let output = program.output();
    assert_eq!(code, Some(130), "{output}");
    assert!(
        output.contains("Stopped before the end: run the same command to continue."),
        "{output}"
    );
    let here = world
        .target_value("SELECT count(*) FROM resources")
        .await
        .as_i64()
        .unwrap();
    assert!((1..1200).contains(&here), "{here}");
    let (code, output, _) = run(&world, &[]).await;
    assert_eq!(code, Some(0), "{output}");
    let rest = format!("{} added", 1200 - here);
    assert!(output.contains(&rest), "{rest}: {output}");
    assert!(
        output.contains("resources are equal, 0 differ."),
        "{output}"
    );
}

#[tokio::test]
async fn a_killed_import_leaves_complete_batches_and_is_resumed() {
    let world = World::filled(300).await;
    let mut program = start(&world, &["--batch", "50"]);
    program.until_output("Imported 30 of 1200 resources").await;
    program.signal(Signal::KILL);
    program.ended().await;
    let (code, output, said) = run(&world, &[]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        output.contains("Compared everything: 1200 resources are equal, 0 differ."),
        "{output}"
    );
}

#[tokio::test]
async fn it_says_what_is_wrong_with_how_it_was_started() {
    let world = World::filled(1).await;
    let bare = TestDatabase::create_empty().await;
    let (from, to) = (world.source.url(), world.target.url());
    let absent = from.replace("/hyperfleet_empty", "/absent_hyperfleet_empty");
    assert_ne!(absent, from);
    for (from, to, code, words) in [
        (
            "nonsense",
            to.as_str(),
            2,
            "--from is not of the form postgres://",
        ),
        (
            from.as_str(),
            &bare.url(),
            1,
            "run `hyperfleet-api migrate` first",
        ),
        (absent.as_str(), &to, 1, "cannot connect to the source"),
        (to.as_str(), &from, 1, "run `hyperfleet-api migrate` first"),
        (
            to.as_str(),
            &to,
            1,
            "is not a database of the older service",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
        command.args([
            "import",
            "--config",
            "/dev/null",
            "--from",
            from,
            "--database-url",
            to,
        ]);
        command.env_remove("DATABASE_URL");
        let mut program = RunningProgram::start(command);
        let status = program.ended().await.code();
        assert_eq!(status, Some(code), "{words}: {}", program.output());
        assert!(
            program.output().contains(words),
            "{words}: {}",
            program.output()
        );
    }
}
