//! Units are stored, loaded, started, stopped and destroyed.

use hyperfleet_testkit::until;

use crate::cluster::{Cluster, FIRST, SECOND, SHORT};

const UNSUITABLE: &str = "[Service]\nExecStart=/bin/true\n[X-Fleet]\nMachineMetadata=disk=ssd\n";

#[tokio::test]
async fn a_unit_goes_through_its_whole_life() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("hello.service");
    let submitted = cluster.run(&["submit", "hello.service"]).await;
    submitted.is(0, "Unit hello.service inactive\n", "");
    cluster
        .run(&["submit", "hello.service"])
        .await
        .is(0, "", "");
    let cat = cluster.run(&["cat", "hello"]).await;
    cat.is(0, "[Service]\nExecStart=/bin/sleep 3000\n", "");
    let loaded = cluster.run(&["load", "hello.service"]).await;
    loaded.is(0, &format!("Unit hello.service loaded on {SHORT}\n"), "");
    assert!(cluster.running().is_empty());
    let started = cluster.run(&["start", "hello.service"]).await;
    started.is(0, &format!("Unit hello.service launched on {SHORT}\n"), "");
    assert_eq!(cluster.running(), ["hello.service"]);
    // It is as it should be.
    cluster.run(&["start", "hello.service"]).await.is(0, "", "");
    let listed = cluster.run(&["list-units"]).await;
    listed.is(
        0,
        &format!("UNIT\t\tMACHINE\t\t\tACTIVE\tSUB\nhello.service\t{SHORT}\tactive\trunning\n"),
        "",
    );
    let stopped = cluster.run(&["stop", "hello.service"]).await;
    stopped.is(
        0,
        &format!("Unit hello.service loaded on {SHORT}\n"),
        "Successfully stopped units [hello.service].\n",
    );
    let again = cluster.run(&["stop", "hello.service"]).await;
    again.is(0, "", "Successfully stopped units [hello.service].\n");
    let unloaded = cluster.run(&["unload", "hello.service"]).await;
    unloaded.is(
        0,
        "Unit hello.service inactive\n",
        "Successfully unloaded units [hello.service].\n",
    );
    let refused = cluster.run(&["stop", "hello.service"]).await;
    refused.is(
        1,
        "",
        "Unable to stop unit hello.service in state inactive\n",
    );
    cluster.run(&["start", "hello.service"]).await.succeeded();
    let destroyed = cluster.run(&["destroy", "hello.service"]).await;
    destroyed.is(0, "Destroyed hello.service\n", "");
    assert!(cluster.running().is_empty());
}

#[tokio::test]
async fn the_unix_socket_serves_as_well() {
    let cluster = Cluster::of(&[FIRST]).await;
    let path = cluster.file("units/hello.service", "[Service]\nExecStart=/bin/true\n");
    // A path without the type.
    let path = path.with_extension("");
    let started = cluster
        .run_locally(&["start", path.to_str().unwrap()])
        .await;
    let lines = format!("Unit hello.service launched on {SHORT}\n");
    started.is(0, &lines, "");
    cluster
        .run_locally(&["destroy", "hello"])
        .await
        .is(0, "Destroyed hello.service\n", "");
}

#[tokio::test]
async fn units_that_do_not_exist_are_named() {
    let cluster = Cluster::of(&[]).await;
    for (arguments, status, errors) in [
        (&["cat", "x"][..], 1, "Unit x.service not found\n"),
        (&["cat"], 1, "One unit file must be provided\n"),
        (&["destroy", "x"], 0, "Units not found in registry\n"),
        (&["stop", "x"], 0, "Units not found in registry\n"),
        (&["unload", "x"], 0, "Units not found in registry\n"),
        (&["restart", "x"], 1, "Units not found in registry\n"),
        (
            &["destroy", "x@*"],
            1,
            "x@*.service is no unit name: patterns are not expanded; fleetctl list-unit-files --no-legend --fields=unit lists names\n",
        ),
        (&["explain", "x"], 1, "Unit x.service does not exist.\n"),
        (&["status", "x"], 1, "Unit x.service does not exist.\n"),
        (&["journal", "x"], 1, "Unit x.service does not exist.\n"),
        (
            &["ssh", "x"],
            1,
            "Unable to proceed: could not find matching unit or machine\n",
        ),
        (
            &["start", "x"],
            1,
            "Error creating units: unable to find Unit(x.service) in Registry or on filesystem\n",
        ),
        (
            &["submit", "t@1"],
            1,
            "Error creating units: unable to find template Unit(t@.service) in Registry or on filesystem\n",
        ),
    ] {
        cluster.run(arguments).await.is(status, "", errors);
    }
    for command in [
        "submit", "load", "start", "stop", "unload", "destroy", "restart", "status", "explain",
    ] {
        cluster.run(&[command]).await.is(0, "", "No units given\n");
    }
}

#[tokio::test]
async fn instances_are_made_from_templates() {
    let cluster = Cluster::of(&[FIRST]).await;
    let template = cluster.file("t@.service", "[Service]\nExecStart=/bin/old\n");
    // The template file beside the argument.
    cluster.run(&["start", "t@1"]).await.succeeded();
    cluster
        .run(&["submit", "t@.service"])
        .await
        .is(0, "Unit t@.service inactive\n", "");
    std::fs::remove_file(&template).unwrap();
    // The stored template.
    cluster
        .run(&["start", "t@2", "t@3.service"])
        .await
        .succeeded();
    assert_eq!(
        cluster.running(),
        ["t@1.service", "t@2.service", "t@3.service"]
    );
    let refused = cluster.run(&["start", "t@.service"]).await;
    refused.is(
        1,
        "",
        "Error starting units: unable to start unit t@.service: cannot activate template \"t@.service\" (status 400)\n",
    );
}

#[tokio::test]
async fn instances_that_differ_from_their_template_are_said() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.file("t@.service", "[Service]\nExecStart=/bin/old\n");
    cluster.run(&["submit", "t@1", "t@2"]).await.succeeded();
    cluster.file("t@.service", "[Service]\nExecStart=/bin/new\n");
    let submitted = cluster.run(&["submit", "t@3"]).await;
    assert_eq!(
        (submitted.status, submitted.output.as_str()),
        (0, "Unit t@3.service inactive\n")
    );
    let words =
        "WARNING: 2 instances of template t@.service differ from it: t@1.service, t@2.service.";
    assert!(submitted.errors.starts_with(words), "{submitted:?}");
    // The others are compared with their template's file.
    let warned = cluster.run(&["submit", "t@1"]).await;
    warned.is(
        0,
        "",
        "WARNING: Unit t@1.service in registry differs from local unit file t@.service. Add --replace to override.\n",
    );
    let replaced = cluster.run(&["submit", "--replace", "t@1", "t@2"]).await;
    replaced.is(
        0,
        "Unit t@1.service inactive\nUnit t@2.service inactive\n",
        "",
    );
    cluster
        .run(&["submit", "t@4"])
        .await
        .is(0, "Unit t@4.service inactive\n", "");
}

#[tokio::test]
async fn a_stored_unit_is_replaced_by_the_command_that_fits_its_state() {
    let cluster = Cluster::of(&[FIRST]).await;
    let write =
        |command: &str| cluster.file("a.service", &format!("[Service]\nExecStart={command}\n"));
    write("/bin/1");
    cluster.run(&["submit", "a.service"]).await.succeeded();
    let same = cluster.run(&["submit", "--replace", "a.service"]).await;
    same.is(
        0,
        "",
        "Found same Unit(a.service) in Registry, nothing to do\n",
    );
    write("/bin/2");
    let kept = cluster.run(&["submit", "a.service"]).await;
    kept.is(
        0,
        "",
        "WARNING: Unit a.service in registry differs from local unit file a.service. Add --replace to override.\n",
    );
    let replaced = cluster.run(&["submit", "--replace", "a.service"]).await;
    replaced.is(0, "Unit a.service inactive\n", "");
    cluster.run(&["start", "a.service"]).await.succeeded();
    write("/bin/3");
    for command in ["submit", "load"] {
        let refused = cluster.run(&[command, "--replace", "a.service"]).await;
        let words = "Warning: can not replace Unit(a.service) in state 'launched', use the appropriate command\n";
        assert_eq!(refused.errors, words, "{command}");
        assert_eq!(refused.status, 1, "{command}");
        cluster.run(&["start", "a.service"]).await.succeeded();
    }
    let replaced = cluster.run(&["start", "--replace", "a.service"]).await;
    let lines = format!("Unit a.service launched on {SHORT}\n");
    replaced.is(0, &lines, "");
    assert_eq!(
        cluster.machines[0]
            .systemd
            .with(|state| state.running["a.service"].clone()),
        "[Service]\nExecStart=/bin/3\n"
    );
    let cat = cluster.run(&["cat", "a.service"]).await;
    cat.is(0, "[Service]\nExecStart=/bin/3\n", "");
}

#[tokio::test]
async fn units_that_cannot_be_are_refused_before_they_are_sent() {
    let cluster = Cluster::of(&[]).await;
    for (name, file, words) in [
        (
            "a.service",
            "[Service\n",
            "a.service: unable to find end of section",
        ),
        (
            "b.service",
            "[X-Fleet]\nGlobal=true\nMachineOf=x\n",
            "b.service: Global cannot be used with Peers",
        ),
        (
            "c%.service",
            "[Service]\n",
            "c%.service: invalid character '%' in unit name",
        ),
    ] {
        cluster.file(name, file);
        let refused = cluster.run(&["submit", name]).await;
        assert_eq!(refused.status, 1);
        assert!(
            refused
                .errors
                .starts_with(&format!("Error creating units: {words}")),
            "{refused:?}"
        );
    }
    cluster.file(
        "d.service",
        "[Service]\nExecStart=/bin/true\n[X-Fleet]\nBogus=1\nGlobal=of course\nMachineMetadata=host=%H\n",
    );
    let warned = cluster.run(&["submit", "--sign", "d.service"]).await;
    assert_eq!(warned.status, 0, "{warned:?}");
    for words in [
        "WARNING: Unit d.service: unrecognized requirement in [X-Fleet] section: \"Bogus\"\n",
        "WARNING: Unit d.service: Global=of course in [X-Fleet] section is not a boolean",
        "WARNING: Unit d.service: MachineMetadata=host=%H in [X-Fleet] section: %H is not a specifier",
    ] {
        assert!(warned.errors.contains(words), "{warned:?}");
    }
    assert!(
        warned
            .errors
            .contains("The signed/verified units feature is DEPRECATED"),
        "{warned:?}"
    );
}

#[tokio::test]
async fn global_units_are_triggered_and_not_waited_for() {
    let cluster = Cluster::of(&[FIRST, SECOND]).await;
    cluster.file(
        "g.service",
        "[Unit]\nDescription=All over\n[Service]\nExecStart=/bin/true\n[X-Fleet]\nGlobal=true\n",
    );
    let started = cluster.run(&["start", "g.service"]).await;
    started.is(0, "Triggered global unit g.service start\n", "");
    let listed = cluster
        .run(&[
            "list-unit-files",
            "--fields=unit,dstate,state,target,global,desc",
        ])
        .await;
    listed.is(
        0,
        "UNIT\t\tDSTATE\t\tSTATE\tTARGET\tGLOBAL\tDESC\ng.service\tlaunched\t-\tglobal\ttrue\tAll over\n",
        "",
    );
    until("it runs on both", async || {
        cluster
            .machines
            .iter()
            .all(|machine| machine.running().contains("g.service"))
    })
    .await;
    let stopped = cluster.run(&["stop", "g.service"]).await;
    stopped.is(0, "Triggered global unit g.service stop\n", "");
    let unloaded = cluster.run(&["unload", "g.service"]).await;
    unloaded.is(0, "Triggered global unit g.service unload\n", "");
    cluster
        .run(&["destroy", "g.service"])
        .await
        .is(0, "Destroyed g.service\n", "");
}

#[tokio::test]
async fn without_blocking_units_are_triggered() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    for (command, output, errors) in [
        ("load", "Triggered unit a.service load\n", ""),
        ("start", "Triggered unit a.service start\n", ""),
    ] {
        cluster
            .run(&[command, "--no-block", "a.service"])
            .await
            .is(0, output, errors);
    }
    until("it runs", async || !cluster.running().is_empty()).await;
    until("it is reported", async || {
        cluster.get("units/a.service").await["currentState"] == "launched"
    })
    .await;
    let stopped = cluster.run(&["stop", "--no-block", "a.service"]).await;
    stopped.is(0, "Triggered unit a.service stop\n", "");
    let unloaded = cluster.run(&["unload", "--no-block", "a.service"]).await;
    unloaded.is(0, "Triggered unit a.service unload\n", "");
    cluster
        .run(&["destroy", "--no-block", "a.service"])
        .await
        .is(0, "Destroyed a.service\n", "");
}

#[tokio::test]
async fn a_unit_that_is_not_placed_ends_the_wait_with_its_reason() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.file("ssd.service", UNSUITABLE);
    for command in ["load", "start"] {
        let waited = cluster
            .run(&[command, "--block-attempts=1", "ssd.service"])
            .await;
        assert_eq!(waited.status, 1, "{waited:?}");
        let state = if command == "load" {
            "loaded"
        } else {
            "launched"
        };
        let words = format!(
            "Error waiting for units: timed out waiting for unit ssd.service to report state {state}: no machine can run it: MachineMetadata=disk=ssd"
        );
        assert!(waited.errors.starts_with(&words), "{waited:?}");
        let last = "\nError waiting for unit states, exit status: 1\n";
        assert!(waited.errors.ends_with(last), "{waited:?}");
    }
    let explained = cluster.run(&["explain", "ssd.service"]).await;
    let text = explained.succeeded();
    assert!(text.starts_with("Unit:\t\tssd.service\nDesired:\tlaunched\nCurrent:\tinactive\nMachine:\t-\nReason:\t\tno machine can run it"), "{text}");
    assert!(
        text.ends_with(
            "\n\nREQUIREMENT\t\t\tMACHINES\tEXAMPLES\nMachineMetadata=disk=ssd\t1\t\t0f1e2d3c...\n"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn a_file_that_cannot_be_read_does_not_matter_to_a_stored_unit() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    cluster.run(&["submit", "a"]).await.succeeded();
    cluster.file("a.service", "[Service]\nExecStart\n");
    let loaded = cluster.run(&["load", "a"]).await;
    assert_eq!(
        (loaded.status, loaded.output),
        (0, format!("Unit a.service loaded on {SHORT}\n"))
    );
    assert!(
        loaded.errors.starts_with("WARNING: a.service: "),
        "{}",
        loaded.errors
    );
    let replaced = cluster.run(&["load", "--replace", "a"]).await;
    assert_eq!(replaced.status, 1, "{replaced:?}");
    cluster.file("empty.service", "# nothing\n");
    let refused = cluster.run(&["submit", "empty"]).await;
    let words = "Error creating units: empty.service: the unit file is empty\n";
    refused.is(1, "", words);
}

#[tokio::test]
async fn missing_units_among_others_are_named() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    cluster.run(&["start", "a"]).await.succeeded();
    let missing = "Unit x.service not found in registry\n";
    let stopped = cluster.run(&["stop", "a", "x"]).await;
    let done = "Successfully stopped units [a.service].\n";
    stopped.is(
        0,
        &format!("Unit a.service loaded on {SHORT}\n"),
        &format!("{missing}{done}"),
    );
    let restarted = cluster.run(&["restart", "a", "x"]).await;
    restarted.is(1, &format!("Unit a.service launched on {SHORT}\n"), missing);
    let destroyed = cluster.run(&["destroy", "a", "x"]).await;
    destroyed.is(0, "Destroyed a.service\n", missing);
}

/// The command that a template's edited file needs.
#[tokio::test]
async fn an_edited_template_is_used_or_reported() {
    let cluster = Cluster::of(&[FIRST]).await;
    let write = |command: &str| {
        let text = format!("[Service]\nExecStart={command}\n");
        cluster.file("units/web@.service", &text);
    };
    let cat = async |unit: &str| cluster.run(&["cat", unit]).await.succeeded();
    write("/bin/1");
    cluster.run(&["submit", "units/web@"]).await.succeeded();
    write("/bin/2");
    let warned = cluster.run(&["start", "units/web@1"]).await;
    let words = "WARNING: Template web@.service in registry differs from local unit file units/web@.service. Add --replace to use the local file.\n";
    assert_eq!((warned.status, warned.errors.as_str()), (0, words));
    assert_eq!(cat("web@1").await, "[Service]\nExecStart=/bin/1\n");
    cluster.run(&["destroy", "web@1"]).await.succeeded();
    let replaced = cluster
        .run(&["start", "--replace", "./units/web@1.service"])
        .await;
    let words = "WARNING: Template web@.service in registry differs from local unit file ./units/web@.service, which is used. Run fleetctl submit --replace ./units/web@.service to replace the template as well.\n";
    assert_eq!((replaced.status, replaced.errors.as_str()), (0, words));
    assert_eq!(cat("web@1").await, "[Service]\nExecStart=/bin/2\n");
    // Instances keep the file that they were created with.
    write("/bin/3");
    let submitted = cluster
        .run(&["submit", "--replace", "units/web@.service"])
        .await;
    let words = "WARNING: 1 instance of template web@.service differ from it: web@1.service. Replace them one after the other, so that a wrong file stops one of them only: fleetctl start --replace web@1.service\n";
    assert_eq!((submitted.status, submitted.errors.as_str()), (0, words));
    // By its name, without a file: from the stored template.
    let replaced = cluster.run(&["start", "--replace", "web@1.service"]).await;
    assert_eq!((replaced.status, replaced.errors.as_str()), (0, ""));
    assert_eq!(cat("web@1").await, "[Service]\nExecStart=/bin/3\n");
    cluster.service("a.service");
    cluster.run(&["start", "a"]).await.succeeded();
    std::fs::remove_file(cluster.file("a.service", "")).unwrap();
    let kept = cluster.run(&["start", "--replace", "a"]).await;
    let words = "WARNING: Unit a.service has no local unit file a.service: it is not replaced\n";
    kept.is(0, "", words);
}

#[tokio::test]
async fn destroy_waits_until_the_machine_has_let_go() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    cluster.run(&["start", "a"]).await.succeeded();
    let systemd = cluster.machines[0].systemd.clone();
    systemd.with(|state| state.stops_slowly.insert("a.service".to_owned()));
    let timed_out = cluster.run(&["destroy", "--block-attempts=1", "a"]).await;
    let words =
        "Error waiting for units: timed out waiting for unit a.service to leave its machines\n";
    timed_out.is(1, "", words);
    cluster.service("b.service");
    cluster.run(&["start", "b"]).await.succeeded();
    systemd.with(|state| state.stops_slowly.insert("b.service".to_owned()));
    let finish = async {
        until("it is stopping", async || {
            cluster.machines[0]
                .stopped()
                .contains(&"b.service".to_owned())
        })
        .await;
        systemd.finish_stopping("b.service");
    };
    let (destroyed, ()) = tokio::join!(cluster.run(&["destroy", "b"]), finish);
    destroyed.is(0, "Destroyed b.service\n", "");
}
