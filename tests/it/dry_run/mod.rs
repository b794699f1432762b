//! Requests with `?dryRun=true`: they change nothing, and say exactly what the same request does afterwards.

mod cases;
mod concurrent;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use hyperfleet_domain::entity_config::EntityConfig;
use serde_json::{Value, json};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::sync::Mutex;

use crate::support::{Answer, TestApi, assert_sound};

const NONE: Value = Value::Null;
/// Makes the statement that returns each table with all of its rows as one text.
const ALL_TABLES: &str = "SELECT string_agg(format(
         'SELECT %L, coalesce(string_agg(t::text, chr(10) ORDER BY t::text), '''') FROM %I t', relname, relname),
         ' UNION ALL ')
     FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";

/// A resource as it is stored.
#[derive(Debug, Clone, PartialEq)]
struct Stored {
    kind: String,
    name: String,
    generation: i64,
    is_active: bool,
    conditions: BTreeMap<String, String>,
    /// The adapters that have reported on its generation.
    reporters: BTreeSet<String>,
}

/// A server whose writes are each preceded by a dry run.
struct Rehearsal {
    api: TestApi,
    kinds: Vec<EntityConfig>,
    /// Looks at what is stored.
    observer: Mutex<PgConnection>,
    /// A statement that reads every table.
    all_tables: String,
}

/// A request: its headers, method, path and body.
type Sent<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str, &'a Value);

impl Rehearsal {
    async fn of(kinds: Vec<EntityConfig>) -> Self {
        Self::with(TestApi::spawn_with(&kinds).await, kinds).await
    }

    async fn with(api: TestApi, kinds: Vec<EntityConfig>) -> Self {
        let mut observer = api.database.connect().await;
        let all_tables = sqlx::query_scalar(ALL_TABLES).fetch_one(&mut observer);
        Self {
            all_tables: all_tables.await.unwrap(),
            api,
            kinds,
            observer: Mutex::new(observer),
        }
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> (Answer, Answer) {
        self.both(&self.api, (&[], method, path, &body)).await
    }

    /// Sends a request as a dry run and then itself, and compares what the first says with what the second does.
    async fn both(&self, caller: &TestApi, sent: Sent<'_>) -> (Answer, Answer) {
        let before = self.tables().await;
        let dry = dry_run(caller, sent).await;
        let after = self.tables().await;
        let at = format!("{sent:?}: {}", dry.body);
        assert_eq!(before, after, "{at}");
        let stored = self.stored().await;
        let entries = self.entries(0).await.len();
        let (headers, method, path, body) = sent;
        let real = caller.send_with(headers, method, path, body).await;
        if real.status >= 400 {
            assert_eq!(refusal(&dry), refusal(&real), "{at}");
            assert_eq!(self.tables().await, before, "{at}");
            return (dry, real);
        }
        let expected = if real.status == 204 { 200 } else { real.status };
        assert_eq!(dry.status, expected, "{at}");
        assert_eq!(dry.header("etag"), None, "{at}");
        let said = said(&dry, &real, &at);
        assert_eq!(said["status"], real.status, "{at}");
        let done = Done {
            before: stored,
            after: self.stored().await,
            entries: self.entries(entries).await,
            kinds: &self.kinds,
        };
        done.assert_said(&said, &at);
        (dry, real)
    }

    /// Every row of every table.
    async fn tables(&self) -> BTreeMap<String, String> {
        let mut observer = self.observer.lock().await;
        let rows = sqlx::query_as(AssertSqlSafe(&*self.all_tables));
        let rows: Vec<(String, String)> = rows.fetch_all(&mut *observer).await.unwrap();
        assert!(rows.len() >= 8, "{rows:?}");
        rows.into_iter().collect()
    }

    async fn stored(&self) -> BTreeMap<String, Stored> {
        let mut observer = self.observer.lock().await;
        let rows = sqlx::query(
            "SELECT id::text, kind, name, generation::bigint, deleted_at IS NULL AS is_active,
                    (SELECT coalesce(jsonb_object_agg(c->>'type', c->>'status'), '{}')
                     FROM jsonb_array_elements(conditions) c) AS conditions,
                    ARRAY(SELECT adapter FROM adapter_reports e
                          WHERE e.resource_id = r.id AND e.observed_generation = r.generation) AS reporters
             FROM resources r",
        )
        .fetch_all(&mut *observer)
        .await
        .unwrap();
        let rows = rows.into_iter().map(|row| {
            let conditions: Value = row.get("conditions");
            let stored = Stored {
                kind: row.get("kind"),
                name: row.get("name"),
                generation: row.get("generation"),
                is_active: row.get("is_active"),
                conditions: serde_json::from_value(conditions).unwrap(),
                reporters: row.get::<Vec<String>, _>("reporters").into_iter().collect(),
            };
            (row.get("id"), stored)
        });
        rows.collect()
    }

    /// The entries of the audit trail after the first ones, in the form of effects.
    async fn entries(&self, skipped: usize) -> Vec<Value> {
        let mut observer = self.observer.lock().await;
        let entries: Vec<Value> = sqlx::query_scalar(
            "SELECT jsonb_strip_nulls(jsonb_build_object(
                 'action', action, 'kind', kind, 'resource_id', resource_id, 'name', name,
                 'generation_before', generation_before, 'generation_after', generation_after))
             FROM audit_entries ORDER BY sequence OFFSET $1",
        )
        .bind(i64::try_from(skipped).unwrap())
        .fetch_all(&mut *observer)
        .await
        .unwrap();
        entries
    }

    async fn assert_sound(&self) {
        let mut observer = self.observer.lock().await;
        assert_sound(&mut observer, &self.kinds).await;
    }
}

/// What a request did.
struct Done<'a> {
    before: BTreeMap<String, Stored>,
    after: BTreeMap<String, Stored>,
    entries: Vec<Value>,
    kinds: &'a [EntityConfig],
}

impl Done<'_> {
    fn assert_said(&self, said: &Value, at: &str) {
        let effects = said["effects"].as_array().unwrap();
        let entries: Vec<_> = effects.iter().map(entry_of).collect();
        assert_eq!(entries, self.entries, "{at}");
        let freed = effects.iter().filter(|e| e["frees_name"] == true);
        let freed: Vec<_> = freed.map(id_of).collect();
        let unique: BTreeSet<_> = freed.iter().copied().collect();
        assert_eq!(freed.len(), unique.len(), "{at}");
        assert_eq!(unique, self.freed(), "{at}");
        let working = effects.iter().flat_map(|effect| {
            let adapters = effect["adapters"].as_array().unwrap().iter();
            adapters.map(|adapter| (id_of(effect), adapter.as_str().unwrap()))
        });
        assert_eq!(working.collect::<BTreeSet<_>>(), self.work(), "{at}");
        let conditions = said["conditions"].as_array().unwrap().iter().cloned();
        let mut conditions: Vec<_> = conditions.map(|c| c.to_string()).collect();
        conditions.sort();
        assert_eq!(conditions, self.conditions(), "{at}");
    }

    /// Resources that were active and are not any more.
    fn freed(&self) -> BTreeSet<&str> {
        let active = |all: &BTreeMap<String, Stored>, id: &str| {
            all.get(id).is_some_and(|stored| stored.is_active)
        };
        let ids = self.before.keys().map(String::as_str);
        ids.filter(|id| active(&self.before, id) && !active(&self.after, id))
            .collect()
    }

    /// The required adapters that have to report on resources whose generation is new.
    fn work(&self) -> BTreeSet<(&str, &str)> {
        let generation = |id: &str| self.before.get(id).map(|stored| stored.generation);
        let moved = self.after.iter().filter(|(id, stored)| {
            let before = generation(id);
            before != Some(stored.generation)
        });
        let work = moved.flat_map(|(id, stored)| {
            let kind = self.kinds.iter().find(|k| k.kind == stored.kind).unwrap();
            let required = kind.required_adapters.iter();
            let idle = required.filter(|adapter| !stored.reporters.contains(*adapter));
            idle.map(|adapter| (id.as_str(), adapter.as_str()))
        });
        work.collect()
    }

    /// The conditions whose status is another one, as a dry run lists them.
    fn conditions(&self) -> Vec<String> {
        let mut moved = Vec::new();
        for (id, after) in &self.after {
            let none = BTreeMap::new();
            let before = self.before.get(id).map_or(&none, |b| &b.conditions);
            let types: BTreeSet<_> = before.keys().chain(after.conditions.keys()).collect();
            for condition in types {
                let (was, is) = (before.get(condition), after.conditions.get(condition));
                if was == is {
                    continue;
                }
                let mut condition = json!({
                    "kind": after.kind, "name": after.name, "resource_id": id, "type": condition,
                });
                if let Some(was) = was {
                    condition["status_before"] = json!(was);
                }
                if let Some(is) = is {
                    condition["status_after"] = json!(is);
                }
                moved.push(condition.to_string());
            }
        }
        moved.sort();
        moved
    }
}

/// Sends a request as a dry run.
async fn dry_run(caller: &TestApi, (headers, method, path, body): Sent<'_>) -> Answer {
    let mark = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{mark}dryRun=true");
    caller.send_with(headers, method, &path, body).await
}

/// What a refusal says, but for what says which request it answers.
fn refusal(answer: &Answer) -> (u16, Option<&str>, Value) {
    let mut body = answer.body.clone();
    if let Some(members) = body.as_object_mut() {
        members.remove("trace_id");
    }
    (answer.status, answer.header("etag"), body)
}

/// The member `dry_run` of an answer whose other members are the real ones, with the id of a created resource
/// replaced by that of the real one.
fn said(dry: &Answer, real: &Answer, at: &str) -> Value {
    let mut text = String::from_utf8(dry.bytes.clone()).unwrap();
    let is_new = dry.body["id"].is_string() && dry.body["id"] != real.body["id"];
    if is_new {
        text = text.replace(dry.id(), real.id());
    }
    if !real.body.is_null() {
        let real = std::str::from_utf8(&real.bytes).unwrap();
        let members = real.strip_suffix('}').unwrap();
        assert!(text.starts_with(members), "{at}\n{real}");
    }
    let mut body: Value = serde_json::from_str(&text).unwrap();
    let said = body.as_object_mut().unwrap().remove("dry_run").unwrap();
    let rest = if real.body.is_null() {
        json!({})
    } else {
        real.body.clone()
    };
    assert_eq!(body, rest, "{at}");
    said
}

fn entry_of(effect: &Value) -> Value {
    let mut entry = effect.clone();
    for member in ["adapters", "frees_name"] {
        entry.as_object_mut().unwrap().remove(member).unwrap();
    }
    entry
}

fn id_of(effect: &Value) -> &str {
    effect["resource_id"].as_str().unwrap()
}

/// The actions of an answer's effects with the names of their resources.
fn effects(answer: &Answer) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let effects = answer.body["dry_run"]["effects"].as_array().unwrap().iter();
    effects
        .map(|effect| (text(&effect["action"]), text(&effect["name"])))
        .collect()
}
