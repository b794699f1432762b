//! Tenants of requests.

use std::collections::BTreeMap;

use crate::tenancy::{Config, Dimension, TenancyRules, Tenant, TenantRefusal, TenantScope};

fn dimension(header: &str, key: &str, required: bool) -> Dimension {
    Dimension {
        header: header.to_owned(),
        key: key.to_owned(),
        required,
    }
}

/// An organisation, and a project if there is one.
fn config() -> Config {
    Config {
        enabled: true,
        enforce: true,
        system_header: "X-System".to_owned(),
        dimensions: vec![
            dimension("X-Org", "org", true),
            dimension("X-Project", "project", false),
        ],
    }
}

fn rules() -> TenancyRules {
    TenancyRules::new(config()).unwrap()
}

/// The tenant of a request with these headers.
fn resolve(rules: &TenancyRules, headers: &[(&str, &[u8])]) -> Result<Tenant, TenantRefusal> {
    rules.resolve(|name| {
        let named = |header: &(&str, &[u8])| header.0.eq_ignore_ascii_case(name);
        let found: Vec<&[u8]> = headers
            .iter()
            .filter(|h| named(h))
            .map(|&(_, value)| value)
            .collect();
        found.into_iter()
    })
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[test]
fn headers_say_for_whom_a_request_is_made() {
    let rules = rules();
    let longest = "a".repeat(63);
    for (headers, expected) in [
        (vec![("x-org", "acme")], vec![("org", "acme")]),
        (vec![("X-ORG", " \tacme\t ")], vec![("org", "acme")]),
        (
            vec![("x-org", "acme"), ("x-project", "A.b_c-9")],
            vec![("org", "acme"), ("project", "A.b_c-9")],
        ),
        (
            vec![("x-org", "acme"), ("x-project", "  ")],
            vec![("org", "acme")],
        ),
        (vec![("x-org", longest.as_str())], vec![("org", &longest)]),
        (
            vec![("x-org", "acme"), ("x-system", "yes")],
            vec![("org", "acme")],
        ),
        (
            vec![("x-org", "acme"), ("x-other", "b/d")],
            vec![("org", "acme")],
        ),
    ] {
        let bytes: Vec<_> = headers.iter().map(|(n, v)| (*n, v.as_bytes())).collect();
        let tenant = resolve(&rules, &bytes).unwrap();
        let expected = texts(&expected);
        assert_eq!(*tenant.tenancy(), expected, "{headers:?}");
        assert_eq!(tenant.tenants().tenancy(), Some(&expected), "{headers:?}");
        assert!(!tenant.is_system());
        assert_eq!(tenant.require_author(), Ok(()));
    }
}

#[test]
fn what_is_missing_or_garbled_is_refused() {
    let rules = rules();
    let missing = "required tenant header \"X-Org\" is missing";
    let org = "tenant header \"X-Org\" has an invalid value";
    let project = "tenant header \"X-Project\" has an invalid value";
    let long = [b'a'; 64];
    for (headers, text) in [
        (vec![], missing),
        (vec![("x-org", &b""[..])], missing),
        (vec![("x-org", b" \t ")], missing),
        (vec![("x-project", b"p")], missing),
        (vec![("x-system", b"false")], missing),
        (vec![("x-org", &long[..])], org),
        (vec![("x-org", b"a b")], org),
        (vec![("x-org", b"a,b")], org),
        (vec![("x-org", b"a/b")], org),
        (vec![("x-org", b"*")], org),
        (vec![("x-org", b"\xff")], org),
        (vec![("x-org", "\u{e9}".as_bytes())], org),
        (vec![("x-org", "\u{a0}".as_bytes())], org),
        (vec![("x-org", b"a'--")], org),
        (vec![("x-org", b"a"), ("X-Org", b"a")], org),
        (vec![("x-org", b"a"), ("X-Org", b"")], org),
        (vec![("x-org", b"a"), ("x-project", b"p q")], project),
        (
            vec![("x-org", b"a"), ("x-project", b"p"), ("x-project", b"p")],
            project,
        ),
        (
            vec![
                ("x-org", b"a"),
                ("x-system", b"true"),
                ("x-system", b"false"),
            ],
            "tenant header \"X-System\" has an invalid value",
        ),
    ] {
        let refusal = resolve(&rules, &headers).unwrap_err();
        assert_eq!(refusal.to_string(), text, "{headers:?}");
    }
}

#[test]
fn system_identities_see_everything_and_are_no_authors() {
    let rules = rules();
    for value in [&b"true"[..], b"TRUE", b" True "] {
        let tenant = resolve(&rules, &[("x-system", value), ("x-org", b"a/b")]).unwrap();
        assert!(tenant.is_system());
        assert!(tenant.tenancy().is_empty());
        assert_eq!(*tenant.tenants(), TenantScope::ALL);
        assert_eq!(tenant.require_author(), Err(TenantRefusal::OnlyReports));
    }
    for value in [&b"1"[..], b"yes", b"truee", b"", b"\xff", b"t rue"] {
        let tenant = resolve(&rules, &[("x-system", value), ("x-org", b"a")]).unwrap();
        assert!(!tenant.is_system(), "{value:?}");
    }
}

#[test]
fn without_enforcement_everybody_sees_everything() {
    let config = Config {
        enforce: false,
        ..config()
    };
    let rules = TenancyRules::new(config).unwrap();
    let tenant = resolve(&rules, &[("x-org", b"a")]).unwrap();
    assert_eq!(*tenant.tenancy(), texts(&[("org", "a")]));
    assert_eq!(*tenant.tenants(), TenantScope::ALL);
}

#[test]
fn without_tenancy_headers_mean_nothing() {
    let off = TenancyRules::new(Config::default()).unwrap();
    assert_eq!(off, TenancyRules::default());
    assert_eq!(off.headers().count(), 0);
    let headers: [(&str, &[u8]); 2] = [("x-system", b"true"), ("x-org", b"a b")];
    assert_eq!(resolve(&off, &headers), Ok(Tenant::default()));
    assert_eq!(Tenant::default().require_author(), Ok(()));
    // Parts that are switched off are not checked.
    let config = Config {
        enabled: false,
        enforce: false,
        system_header: "Cookie".to_owned(),
        dimensions: Vec::new(),
    };
    assert_eq!(TenancyRules::new(config), Ok(off));
    let names: Vec<_> = rules().headers().map(ToOwned::to_owned).collect();
    assert_eq!(names, ["X-System", "X-Org", "X-Project"]);
}

/// The errors of a changed configuration, setting by setting.
fn errors(change: impl FnOnce(&mut Config)) -> Vec<String> {
    let mut config = config();
    change(&mut config);
    let errors = TenancyRules::new(config).err().unwrap_or_default();
    let named = errors.iter().map(|error| {
        let (setting, _) = error.split_once(": ").unwrap();
        setting.strip_prefix("server.tenant.").unwrap().to_owned()
    });
    named.collect()
}

#[test]
fn every_error_is_named_with_its_setting() {
    assert!(errors(|_| ()).is_empty());
    let none: Vec<String> = Vec::new();
    assert_eq!(errors(|c| c.dimensions[1].required = true), none);
    assert_eq!(errors(|c| c.enabled = false), ["enforce"]);
    assert_eq!(errors(|c| c.system_header.clear()), ["system_header"]);
    assert_eq!(errors(|c| c.dimensions.clear()), ["dimensions"]);
    assert_eq!(errors(|c| c.dimensions[0].required = false), ["dimensions"]);
    for name in ["", "a b", "a:b", "\u{e9}", "a\n", "cookie", "X-API-Key"] {
        let name = || name.to_owned();
        assert_eq!(errors(|c| c.system_header = name()), ["system_header"]);
        let found = errors(|c| c.dimensions[1].header = name());
        assert_eq!(found, ["dimensions[1].header"], "{}", name());
    }
    for header in ["x-system", "X-ORG"] {
        let found = errors(|c| c.dimensions[1].header = header.to_owned());
        assert_eq!(found, ["dimensions[1].header"], "{header}");
    }
    for key in ["", "a b", "a/b", "org", &"k".repeat(64)] {
        let found = errors(|c| c.dimensions[1].key = key.to_owned());
        assert_eq!(found, ["dimensions[1].key"], "{key}");
    }
    assert_eq!(errors(|c| c.dimensions[1].key = "k".repeat(63)), none);
    let more = |count: usize| {
        move |c: &mut Config| {
            let made = (0..count).map(|n| dimension(&format!("X-{n}"), &format!("k{n}"), true));
            c.dimensions = made.collect();
        }
    };
    assert_eq!(errors(more(8)), none);
    assert_eq!(errors(more(9)), ["dimensions"]);
    let many = errors(|c| {
        c.system_header = "Cookie".to_owned();
        c.dimensions[0] = dimension("x y", "", false);
        c.dimensions[1] = dimension("Authorization", "\u{e9}", false);
    });
    assert_eq!(
        many,
        [
            "system_header",
            "dimensions[0].header",
            "dimensions[0].key",
            "dimensions[1].header",
            "dimensions[1].key",
            "dimensions",
        ]
    );
}

#[test]
fn errors_say_what_to_mend() {
    let mut config = config();
    config.system_header = "Cookie".to_owned();
    config.dimensions[1].header = "X-Org".to_owned();
    let errors = TenancyRules::new(config).unwrap_err();
    assert_eq!(
        errors,
        [
            "server.tenant.system_header: must not be Cookie: its value is secret, but tenancies are shown",
            "server.tenant.dimensions[1].header: is also the header of another dimension (upper and lower case are equal)",
        ]
    );
}
