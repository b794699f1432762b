use serde_json::json;

use super::*;
use crate::plan::tests::workload;

fn render(resource: &Value, format: OutputFormat) -> Result<String, String> {
    let workloads = Workloads::compile("fleet", &[workload()]).unwrap();
    let owner = json!({"name": "cluster"});
    rendered(&workloads, resource, &owner, format).map_err(|error| error.to_string())
}

#[test]
fn units_of_a_resource_are_printed_with_their_names() {
    let resource = json!({"kind": "NodePool", "name": "np", "spec": {"replicas": 2}});
    let text = render(&resource, OutputFormat::Text).unwrap();
    assert!(text.starts_with("# np-1.service\n[Service]\n"), "{text}");
    assert!(text.contains("\n\n# np-2.service\n"), "{text}");
    assert_eq!(
        text.matches("ExecStart=/usr/bin/node --of=cluster\n")
            .count(),
        2
    );
    let json: Value =
        serde_json::from_str(&render(&resource, OutputFormat::Json).unwrap()).unwrap();
    assert_eq!(json["units"][1]["name"], "np-2.service");
}

#[test]
fn a_resource_without_units_and_one_that_cannot_have_them_differ() {
    let cluster = json!({"kind": "Cluster", "name": "c", "spec": {}});
    let text = render(&cluster, OutputFormat::Text);
    assert_eq!(text.as_deref(), Ok("# no units for this Cluster\n"));
    let pool = json!({"kind": "NodePool", "name": "np", "spec": {}});
    let said = render(&pool, OutputFormat::Text).unwrap_err();
    assert!(
        said.contains("TemplateFailed") && said.contains("replicas"),
        "{said}"
    );
    assert_eq!(
        render(&json!({}), OutputFormat::Text).unwrap_err(),
        "the resource has no kind"
    );
}
