//! Links between resources that do not own each other.

use std::collections::BTreeSet;

use hyperfleet_domain::ListFilterKind;
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

use crate::support::{Answer, TestApi, child, linked, root};

const NOBODY: &str = "019b7654-0000-7000-8000-000000000000";

/// Apps need one or two sites and may know friends, which are apps, too; sites may name apps, so
/// that links may go in circles. Services hang below apps and may use many sites.
async fn spawn() -> TestApi {
    let apps = [
        ("site", "Site", 1, 2),
        ("friend", "App", 0, 0),
        ("spare", "Site", 0, 1),
    ];
    let sites = [("favourite", "App", 0, 1)];
    let services = [("site", "Site", 1, 0)];
    TestApi::spawn_with(&[
        linked(&sites, root("Site", "sites", &["map"])),
        linked(&apps, root("App", "apps", &["deploy"])),
        child(
            "App",
            "cascade",
            linked(&services, root("Service", "services", &["run"])),
        ),
    ])
    .await
}

/// Creates a site; gives its id.
async fn site(api: &TestApi, name: &str) -> String {
    api.made("/sites", "Site", name).await.id().to_owned()
}

fn to(kind: &str, id: &str) -> Value {
    json!({"kind": kind, "id": id})
}

async fn post_app(api: &TestApi, name: &str, references: Value) -> Answer {
    let body = json!({"kind": "App", "name": name, "spec": {}, "references": references});
    api.post("/apps", body).await
}

/// Creates an app at one site; gives its id.
async fn app_at(api: &TestApi, name: &str, site: &str) -> String {
    let made = post_app(api, name, json!({"site": [to("Site", site)]})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.id().to_owned()
}

#[tokio::test]
async fn responses_include_references_of_every_source() {
    let api = spawn().await;
    let mut sites = [site(&api, "one").await, site(&api, "two").await];
    sites.sort();
    let friend = app_at(&api, "friend", &sites[0]).await;
    let sent = json!({
        "site": [to("Site", &sites[1]), {"kind": "Site", "id": sites[0], "href": "/ignored"}],
        "friend": [to("App", &friend)],
        "spare": [],
    });
    let made = post_app(&api, "app", sent).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let view = |kind: &str, plural: &str, id: &str| json!({"kind": kind, "id": id, "href": format!("/api/hyperfleet/v1/{plural}/{id}")});
    let expected = json!({
        "site": [view("Site", "sites", &sites[0]), view("Site", "sites", &sites[1])],
        "friend": [view("App", "apps", &friend)],
    });
    let path = format!("/apps/{}", made.id());
    let read = api.get(&path).await;
    let patched = api.patch(&path, json!({"spec": {"a": 1}})).await;
    let listed = api.get("/apps?order=name").await;
    let deleted = api.deleted(&path).await;
    for body in [
        &made.body,
        &read.body,
        &patched.body,
        &listed.items()[0],
        &deleted.body,
    ] {
        assert_eq!(body["references"], expected);
    }
}

#[tokio::test]
async fn a_resource_without_links_shows_none() {
    let api = spawn().await;
    let id = site(&api, "alone").await;
    let path = format!("/sites/{id}");
    let patched = api
        .patch(&path, json!({"references": {"favourite": []}}))
        .await;
    for body in [patched.body, api.get(&path).await.body] {
        assert_eq!(body.get("references"), None);
    }
}

#[tokio::test]
async fn links_that_break_rules_are_explained() {
    let api = spawn().await;
    let here = site(&api, "here").await;
    let app = app_at(&api, "app", &here).await;
    let going = site(&api, "going").await;
    api.deleted(&format!("/sites/{going}")).await;
    let missing = "required reference type \"site\" missing for App (min 1)".to_owned();
    let unknown = |t: &str| format!("unknown reference type \"{t}\" for App");
    let good = to("Site", &here);
    let many: Vec<_> = (0..3).map(|n| to("Site", &format!("{n}"))).collect();
    let friends = |targets: Value| json!({"site": [good], "friend": targets});
    for (references, detail) in [
        (json!({}), missing.clone()),
        (json!({"site": []}), missing.clone()),
        (json!({"friend": [to("App", &app)]}), missing.clone()),
        (json!({"nonsense": [good]}), missing.clone()),
        (json!({"site": [good], "nonsense": []}), unknown("nonsense")),
        (json!({"site": [good], "Site": [good]}), unknown("Site")),
        (
            json!({"site": many}),
            "reference type \"site\" for App exceeds max count 2 (got 3)".to_owned(),
        ),
        (
            friends(json!([{"kind": "App"}])),
            "reference type \"friend\": id is required".to_owned(),
        ),
        (
            friends(json!([to("App", "")])),
            "reference type \"friend\": id is required".to_owned(),
        ),
        (
            friends(json!([to("App", &app), to("App", &app)])),
            format!("reference type \"friend\": duplicate target id \"{app}\""),
        ),
        (
            friends(json!([to("Site", &here)])),
            "reference type \"friend\": kind \"Site\" does not match expected target kind \"App\""
                .to_owned(),
        ),
        (
            friends(json!([{"id": app}])),
            "reference type \"friend\": kind \"\" does not match expected target kind \"App\""
                .to_owned(),
        ),
        (
            friends(json!([to("App", NOBODY)])),
            format!("reference type \"friend\": target App \"{NOBODY}\" not found"),
        ),
        (
            friends(json!([to("App", "no-uuid")])),
            "reference type \"friend\": target App \"no-uuid\" not found".to_owned(),
        ),
        (
            friends(json!([to("App", &here)])),
            format!("reference type \"friend\": target App \"{here}\" not found"),
        ),
        (
            json!({"site": [to("Site", &going)]}),
            format!("reference type \"site\": target Site \"{going}\" is marked for deletion"),
        ),
        (
            json!({"site": good}),
            "field 'references' must be an array".to_owned(),
        ),
        (
            json!([good]),
            "field 'references' must be an object".to_owned(),
        ),
    ] {
        let created = post_app(&api, "new", references.clone()).await;
        let path = format!("/apps/{app}");
        let patched = api.patch(&path, json!({"references": references})).await;
        for answer in [created, patched] {
            assert_eq!(answer.problem(), (400, "VAL-000"), "{references}");
            assert_eq!(answer.body["title"], "Validation Failed");
            assert_eq!(answer.detail(), detail, "{references}");
        }
    }
    assert_eq!(api.get("/apps").await.body["total"], 1);
    assert_eq!(api.get(&format!("/apps/{app}")).await.body["generation"], 1);
}

#[tokio::test]
async fn a_required_reference_is_required_only_at_creation() {
    let api = spawn().await;
    let body = json!({"kind": "App", "name": "new", "spec": {}});
    let answer = api.post("/apps", body).await;
    assert_eq!(answer.problem(), (400, "VAL-000"));
    assert_eq!(
        answer.detail(),
        "required reference type \"site\" missing for App (min 1)"
    );
    let here = site(&api, "here").await;
    let app = app_at(&api, "app", &here).await;
    let patched = api
        .patch(&format!("/apps/{app}"), json!({"spec": {"a": 1}}))
        .await;
    assert_eq!(patched.status, 200, "{}", patched.body);
}

#[tokio::test]
async fn a_missing_owner_is_reported_before_a_missing_target() {
    let api = spawn().await;
    let here = site(&api, "here").await;
    let body = |references: Value| json!({"kind": "Service", "name": "s", "spec": {}, "references": references});
    let nowhere = format!("/apps/{NOBODY}/services");
    for references in [
        json!({"site": [to("Site", &here)]}),
        json!({"site": [to("Site", NOBODY)]}),
        json!({}),
    ] {
        let answer = api.post(&nowhere, body(references.clone())).await;
        assert_eq!(answer.problem(), (404, "NTF-001"), "{references}");
        assert_eq!(answer.detail(), format!("App with id='{NOBODY}' not found"));
    }
    let app = app_at(&api, "app", &here).await;
    let list = format!("/apps/{app}/services");
    let good = json!({"site": [to("Site", &here)]});
    assert_eq!(api.post(&list, body(good)).await.status, 201);
    api.deleted(&format!("/apps/{app}")).await;
    for references in [json!({"site": [to("Site", NOBODY)]}), json!({})] {
        let answer = api.post(&list, body(references.clone())).await;
        assert_eq!(answer.problem(), (409, "CNF-003"), "{references}");
        assert_eq!(
            answer.detail(),
            format!("App '{app}' is marked for deletion")
        );
    }
}

#[tokio::test]
async fn the_same_target_may_have_two_links_of_different_types() {
    let api = spawn().await;
    let here = site(&api, "here").await;
    let both = json!({"site": [to("Site", &here)], "spare": [to("Site", &here)]});
    let made = post_app(&api, "app", both).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.body["references"]["spare"][0]["id"], here);
    assert_eq!(made.body["references"]["site"][0]["id"], here);
}

#[tokio::test]
async fn a_patch_replaces_all_links() {
    let api = spawn().await;
    let (one, two) = (site(&api, "one").await, site(&api, "two").await);
    let both = json!({"site": [to("Site", &one)], "spare": [to("Site", &one)]});
    let app = post_app(&api, "app", both).await;
    let path = format!("/apps/{}", app.id());
    let links = json!({"references": {"site": [to("Site", &two)]}});
    let patched = api.patch(&path, links).await;
    assert_eq!(patched.status, 200, "{}", patched.body);
    assert_eq!(patched.body["references"]["site"][0]["id"], two);
    assert_eq!(patched.body["references"].get("spare"), None);
    assert_eq!(api.get(&path).await.body, patched.body);
}

#[tokio::test]
async fn sending_links_counts_as_a_change_whatever_they_are() {
    let api = spawn().await;
    let here = site(&api, "here").await;
    let app = app_at(&api, "app", &here).await;
    let links = json!({"references": {"site": [to("Site", &here)]}});
    api.clock.advance(60);
    let patched = api.patch(&format!("/apps/{app}"), links.clone()).await;
    assert_eq!(patched.body["generation"], 2);
    assert_eq!(patched.body["updated_time"], "2026-01-01T10:01:00Z");
    assert_eq!(patched.condition("Reconciled")["observed_generation"], 2);
    // A kind whose links are all optional may be sent none.
    let path = format!("/sites/{here}");
    for generation in [2, 3] {
        let patched = api.patch(&path, json!({"references": {}})).await;
        assert_eq!(patched.body["generation"], generation);
    }
    let both = json!({"references": links["references"], "spec": {"a": 1}});
    let patched = api.patch(&format!("/apps/{app}"), both).await;
    assert_eq!(patched.body["generation"], 3);
}

#[tokio::test]
async fn a_kind_without_links_takes_none() {
    let api = TestApi::spawn().await;
    for (references, status) in [
        (json!({}), 201),
        (json!({"site": []}), 400),
        (json!({"site": [to("Cluster", NOBODY)]}), 400),
    ] {
        let body =
            json!({"kind": "Cluster", "name": "linked", "spec": {}, "references": references});
        let answer = api.post("/clusters", body).await;
        assert_eq!(answer.status, status, "{references}: {}", answer.body);
        if status == 400 {
            assert_eq!(
                answer.detail(),
                "unknown reference type \"site\" for Cluster"
            );
        }
    }
}

#[tokio::test]
async fn a_target_cannot_be_deleted_while_it_is_linked_to() {
    let api = spawn().await;
    let here = site(&api, "here").await;
    let other = site(&api, "other").await;
    app_at(&api, "zoo", &here).await;
    let first = post_app(
        &api,
        "aaa",
        json!({"site": [to("Site", &here)], "spare": [to("Site", &here)]}),
    )
    .await;
    let path = format!("/sites/{here}");
    let before = api.get(&path).await;
    let refused = |names: &str| {
        format!(
            "cannot delete Site \"here\": referenced by {names} — remove the reference(s) before deleting"
        )
    };
    let answer = api.delete(&path).await;
    assert_eq!(answer.problem(), (409, "CNF-003"));
    assert_eq!(answer.detail(), refused("App \"aaa\", App \"zoo\""));
    assert_eq!(api.get(&path).await.body, before.body);
    let moved = json!({"references": {"site": [to("Site", &other)]}});
    api.patch(&format!("/apps/{}", first.id()), moved).await;
    let answer = api.delete(&path).await;
    assert_eq!(answer.detail(), refused("App \"zoo\""));
}

#[tokio::test]
async fn links_are_dropped_when_their_source_is_deleted() {
    let api = spawn().await;
    let here = site(&api, "here").await;
    let app = app_at(&api, "app", &here).await;
    let deleted = api.deleted(&format!("/apps/{app}")).await;
    assert_eq!(deleted.body["references"]["site"][0]["id"], here);
    let found = api.get(&format!("/apps/{app}")).await;
    assert_eq!(found.body.get("references"), None);
    api.deleted(&format!("/sites/{here}")).await;
}

#[tokio::test]
async fn a_referenced_child_blocks_the_deletion_of_its_family() {
    let links = [("zone", "Zone", 1, 0)];
    let api = TestApi::spawn_with(&[
        root("Region", "regions", &["map"]),
        child("Region", "cascade", root("Zone", "zones", &["map"])),
        linked(&links, root("App", "apps", &["deploy"])),
    ])
    .await;
    let region = api.make("/regions", "Region", "region").await;
    let zones = format!("{region}/zones");
    let free = api.make(&zones, "Zone", "free").await;
    let zone = api.made(&zones, "Zone", "used").await;
    let app = post_app(&api, "app", json!({"zone": [to("Zone", zone.id())]})).await;
    assert_eq!(app.status, 201, "{}", app.body);
    let answer = api.delete(&region).await;
    assert_eq!(answer.problem(), (409, "CNF-003"));
    assert_eq!(
        answer.detail(),
        "cannot delete Zone \"used\": referenced by App \"app\" — remove the reference(s) before deleting"
    );
    for path in [&region, &free] {
        assert_eq!(api.get(path).await.body["generation"], 1, "{path}");
    }
}

#[tokio::test]
async fn links_inside_a_family_do_not_hold_it_back() {
    let links = [("peer", "Zone", 0, 0)];
    let zone = linked(&links, root("Zone", "zones", &[]));
    let api = TestApi::spawn_with(&[
        root("Region", "regions", &[]),
        child("Region", "cascade", zone),
    ])
    .await;
    let region = api.make("/regions", "Region", "region").await;
    let zones = format!("{region}/zones");
    let one = api.made(&zones, "Zone", "one").await.id().to_owned();
    let two = api.made(&zones, "Zone", "two").await.id().to_owned();
    for (from, target) in [(&one, &two), (&two, &one)] {
        let links = json!({"references": {"peer": [to("Zone", target)]}});
        assert_eq!(
            api.patch(&format!("/zones/{from}"), links).await.status,
            200
        );
    }
    api.deleted(&region).await;
    assert_eq!(api.rows().await, 0);
}

#[tokio::test]
async fn optional_links_may_go_in_circles() {
    let api = spawn().await;
    let here = site(&api, "here").await;
    let app = app_at(&api, "app", &here).await;
    let back = json!({"references": {"favourite": [to("App", &app)]}});
    let patched = api.patch(&format!("/sites/{here}"), back).await;
    assert_eq!(patched.status, 200, "{}", patched.body);
    for path in [format!("/sites/{here}"), format!("/apps/{app}")] {
        assert_eq!(
            api.delete(&path).await.problem(),
            (409, "CNF-003"),
            "{path}"
        );
    }
    let none = json!({"references": {}});
    api.patch(&format!("/sites/{here}"), none).await;
    api.deleted(&format!("/apps/{app}")).await;
    api.deleted(&format!("/sites/{here}")).await;
}

#[tokio::test]
async fn circles_can_be_closed_from_both_sides_at_once() {
    let api = spawn().await;
    let here = site(&api, "here").await;
    let app = app_at(&api, "app", &here).await;
    let (site, app_path) = (format!("/sites/{here}"), format!("/apps/{app}"));
    for round in 0..25 {
        let to_app = json!({"references": {"favourite": [to("App", &app)]}});
        let to_site = json!({"references": {"site": [to("Site", &here)]}});
        let (one, two) = tokio::join!(api.patch(&site, to_app), api.patch(&app_path, to_site));
        assert_eq!((one.status, two.status), (200, 200), "round {round}");
    }
}

#[tokio::test]
async fn no_link_ever_leads_to_a_finalizing_resource() {
    let api = spawn().await;
    let mut linked = 0;
    for round in 0..50 {
        let here = site(&api, &format!("site-{round}")).await;
        let path = format!("/sites/{here}");
        let name = format!("app-{round}");
        let create = post_app(&api, &name, json!({"site": [to("Site", &here)]}));
        // The first one wins; both may.
        let (created, deleted) = if round % 2 == 0 {
            tokio::join!(create, api.delete(&path))
        } else {
            let (deleted, created) = tokio::join!(api.delete(&path), create);
            (created, deleted)
        };
        match (created.status, deleted.status) {
            (201, 409) => linked += 1,
            (400, 202) => assert!(
                created.detail().ends_with("is marked for deletion"),
                "{}",
                created.body
            ),
            other => panic!("round {round}: {other:?} {} {}", created.body, deleted.body),
        }
    }
    let to_finalizing =
        "SELECT count(*) FROM resource_references l JOIN resources t ON t.id = l.target_id
                         WHERE t.deleted_at IS NOT NULL";
    assert_eq!(api.count(to_finalizing).await, 0);
    assert_eq!(
        api.count("SELECT count(*) FROM resource_references").await,
        linked
    );
}

#[tokio::test]
async fn lists_hold_what_links_to_a_resource() {
    let api = spawn().await;
    let (here, there) = (site(&api, "here").await, site(&api, "there").await);
    let one = app_at(&api, "one", &here).await;
    api.clock.advance(1);
    app_at(&api, "two", &there).await;
    api.clock.advance(1);
    app_at(&api, "three", &here).await;
    let body = json!({
        "kind": "Service",
        "name": "service",
        "spec": {},
        "references": {"site": [to("Site", &here)]},
    });
    let made = api.post(&format!("/apps/{one}/services"), body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let linked = |list: &str, target: &str| format!("{list}?ref_type=site&ref_target_id={target}");
    for (path, names) in [
        (linked("/apps", &here), vec!["three", "one"]),
        (linked("/apps", &format!("%20{there}%20")), vec!["two"]),
        (linked("/services", &here), vec!["service"]),
        (
            linked(&format!("/apps/{one}/services"), &here),
            vec!["service"],
        ),
        (linked(&format!("/apps/{one}/services"), &there), vec![]),
        (linked("/apps", NOBODY), vec![]),
        (linked("/apps", "no-id"), vec![]),
        (linked("/apps", &here) + "&search=name%3D'one'", vec!["one"]),
        (format!("/apps?ref_type=spare&ref_target_id={here}"), vec![]),
    ] {
        let list = api.get(&path).await;
        assert_eq!(list.column("name"), names, "{path}");
        assert_eq!(list.body["total"], names.len(), "{path}");
    }
    // Of all kinds there is no such filter; it is checked, and that is all.
    let all = api.get(&linked("/resources", &here)).await;
    assert_eq!(all.body["total"], 6);
}

/// How many resources a list holds: those on its pages, which say the same total.
async fn length(api: &TestApi, list: &str) -> usize {
    let mut found = BTreeSet::new();
    for page in 1.. {
        let path = format!("{list}&pageSize=2&page={page}");
        let answer = api.get(&path).await;
        let total = answer.body["total"].as_u64().unwrap();
        let ids = answer.column("id");
        if ids.is_empty() {
            assert_eq!(found.len() as u64, total, "{path}");
            break;
        }
        found.extend(ids.iter().map(ToString::to_string));
        assert!(found.len() as u64 <= total, "{path}");
    }
    found.len()
}

/// A filter that counts for the page and not for the total would give wrong pages in silence.
#[tokio::test]
async fn filters_apply_to_the_total_as_to_the_page() {
    let api = spawn().await;
    let (here, there) = (site(&api, "here").await, site(&api, "there").await);
    for (name, at) in [("one", &here), ("two", &there), ("three", &here)] {
        app_at(&api, name, at).await;
    }
    let going = app_at(&api, "going", &here).await;
    api.deleted(&format!("/apps/{going}")).await;
    let query = |kind| match kind {
        ListFilterKind::Kind => "kind=App".to_owned(),
        ListFilterKind::Search => "search=name+in+['one','two','going','here']".to_owned(),
        ListFilterKind::IncludeDeleted => "includeDeleted=true".to_owned(),
        ListFilterKind::Reference => format!("ref_type=site&ref_target_id={here}"),
    };
    let lists = ["/apps?", "/resources?"];
    let mut unfiltered = Vec::new();
    for list in lists {
        unfiltered.push(length(&api, list).await);
    }
    for one in ListFilterKind::iter() {
        let mut filtered = Vec::new();
        for list in lists {
            filtered.push(length(&api, &format!("{list}&{}", query(one))).await);
            for other in ListFilterKind::iter().filter(|other| *other != one) {
                length(&api, &format!("{list}&{}&{}", query(one), query(other))).await;
            }
        }
        assert_ne!(filtered, unfiltered, "{one:?}");
    }
}

#[tokio::test]
async fn a_reference_filter_has_all_parts_and_a_type_of_the_kind() {
    let api = spawn().await;
    let site = site(&api, "here").await;
    for list in ["/apps", "/resources", &format!("/sites/{site}/statuses")] {
        for (query, field) in [
            ("ref_type=site", "reftargetid"),
            ("ref_target_id=x", "reftype"),
        ] {
            let answer = api.get(&format!("{list}?{query}&size=0")).await;
            assert_eq!(answer.problem(), (400, "VAL-000"), "{list} {query}");
            assert_eq!(answer.detail(), "Invalid query parameters");
            let expected = json!({
                "constraint": "required",
                "field": field,
                "message": "ref_type and ref_target_id must be provided together",
                "value": "",
            });
            assert_eq!(answer.body["errors"][0], expected, "{list} {query}");
            assert_eq!(answer.body["errors"][1]["field"], "size");
        }
        // Only the value that is no number is reported.
        let answer = api.get(&format!("{list}?ref_type=site&size=x")).await;
        assert_eq!(answer.body["errors"].as_array().map(Vec::len), Some(1));
    }
    let answer = api
        .get("/apps?ref_type=nope&ref_target_id=x&order=nmae")
        .await;
    assert_eq!(answer.problem(), (400, "VAL-000"));
    assert_eq!(answer.detail(), "Unknown ref_type \"nope\" for entity App");
}
