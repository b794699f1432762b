use chrono::{DateTime, TimeDelta};

use super::*;
use hyperfleet_server_kit::http::Gate;
use hyperfleet_server_kit::program::Build;
use hyperfleet_service::app::Unreconciled;

const BUILD: Build = Build {
    component: "api",
    version: "1.2.3",
    commit: "abc",
    time: "now",
    compiler: "rustc 1.95.0",
};

fn metrics() -> ApiMetrics {
    ApiMetrics::new(Metrics::start(&BUILD, METRIC_TABLES))
}

#[test]
fn unreconciled_resources_have_the_series_of_the_alerts() {
    let metrics = metrics();
    assert!(!metrics.render().contains("_pending_reconciliation{"));
    let now = DateTime::UNIX_EPOCH;
    let counted = |kind: &str, is_deleting, stuck| Unreconciled {
        kind: kind.to_owned(),
        is_deleting,
        count: 3,
        stuck,
        long_finalizing: 0,
        since: Some(now - TimeDelta::milliseconds(90_500)),
    };
    let counted = [counted("Cluster", false, 2), counted("No\"de", true, 0)];
    *lock(&metrics.unreconciled) = unreconciled::families(&counted, now);
    let text = metrics.render();
    for line in [
        "# TYPE hyperfleet_api_resource_pending_reconciliation gauge",
        r#"hyperfleet_api_resource_pending_reconciliation{component="api",version="1.2.3",resource_type="cluster",is_delete="false"} 3"#,
        r#"hyperfleet_api_resource_pending_reconciliation_stuck{component="api",version="1.2.3",resource_type="cluster",is_delete="false"} 2"#,
        r#"hyperfleet_api_resource_pending_reconciliation_stuck_duration_seconds{component="api",version="1.2.3",resource_type="cluster",is_delete="false"} 90.5"#,
        r#"hyperfleet_api_resource_pending_reconciliation_stuck_duration_seconds{component="api",version="1.2.3",resource_type="no\"de",is_delete="true"} 0"#,
    ] {
        assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
    }
}

#[test]
fn metrics_include_the_program_and_its_process() {
    let text = metrics().render();
    let info = text
        .lines()
        .find(|l| l.starts_with("hyperfleet_api_build_info{"));
    let info = info.unwrap_or_else(|| panic!("no build info in\n{text}"));
    for part in ["component=\"api\"", "commit=\"abc\"", "go_version=\"rustc "] {
        assert!(info.contains(part), "{info}");
    }
    assert!(info.ends_with(" 1"), "{info}");
    for name in [
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_open_fds",
        "process_start_time_seconds",
    ] {
        let series = format!("{name}{{component=\"api\"");
        assert!(text.contains(&series), "no {name} in\n{text}");
        assert!(text.contains(&format!("# HELP {name} ")), "{name}");
    }
}

#[test]
fn metrics_and_probes_agree_about_readiness() {
    let (metrics, gate) = (metrics(), Gate::starting());
    metrics.show_readiness(gate.clone());
    let shows = |value: u8| {
        let line = format!("hyperfleet_api_ready{{component=\"api\",version=\"1.2.3\"}} {value}");
        let text = metrics.render();
        assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
    };
    shows(0);
    gate.open();
    shows(1);
    gate.set_unready_reason(Some("database unavailable".to_owned()));
    shows(0);
    gate.set_unready_reason(None);
    shows(1);
    gate.stop();
    shows(0);
}
