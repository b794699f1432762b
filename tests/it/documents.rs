//! What clients put into a resource comes back unchanged, although the database writes it in another way.

use serde_json::{Value, json};

use crate::support::TestApi;

/// Names that the database sorts by length, characters that it escapes, numbers that it writes out.
fn odd() -> Value {
    let controls: String = (1..=0x20_u8).chain([0x7f]).map(char::from).collect();
    json!({
        "b": 1, "aa": 2, "a": {"zz": [], "y": {}, "é": "ü", "\"": "\\", "\u{1}": [[], {}, [{"b": 1, "aa": null}]]},
        "": [true, false, null, "", {"": ""}],
        "controls": controls, "text": "a: b, \"c\" \\ / </script> \u{2028}\u{1f600}",
        "numbers": [0, -1, 3, 1.5, 0.1, 1e300, -1e-7, 1.0, 123_456_789.012_345_6, u64::MAX, i64::MIN, 5e-324, 1e21],
    })
}

/// The text of an answer's body.
async fn text(api: &TestApi, path: &str) -> String {
    let request = api.client.get(format!("{}{path}", api.base));
    request.send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn reads_return_what_the_write_returned() {
    let api = TestApi::spawn().await;
    let labels = json!({"b": "1", "aa": "2", "a.b/c": "3"});
    let new = json!({"kind": "Cluster", "name": "odd", "spec": odd(), "labels": labels});
    let made = api.post("/clusters", new).await;
    assert_eq!(made.status, 201);
    let cluster = format!("/clusters/{}", made.body["id"].as_str().unwrap());
    let found = text(&api, &cluster).await;
    assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), made.body);
    // Blanks are those of the database. Numbers that it writes out, with hundreds of zeros, are as short as they were.
    let blanks = found.matches([':', ',']).count();
    assert!(found.len() <= made.body.to_string().len() + blanks);
    let list = text(&api, "/clusters").await;
    assert_eq!(
        list,
        format!(r#"{{"items":[{found}],"kind":"ClusterList","page":1,"size":1,"total":1}}"#)
    );
    let sparse = api.get(&format!("{cluster}?fields=spec,labels")).await;
    let id = &made.body["id"];
    let part = json!({"id": id, "labels": labels, "spec": made.body["spec"]});
    assert_eq!(sparse.body, part);
}
