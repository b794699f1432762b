//! What a page of large resources takes in memory.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::program::Program;
use crate::support::TestDatabase;

const CLUSTERS: usize = 100;
/// Nearly a mebibyte, as large as a body may be.
const PARTS: usize = 7_500;

fn large_spec() -> Value {
    let part = |number| {
        json!({
            "name": format!("part-{number}"), "count": number, "is_there": true,
            "address": "2001:db8::1234:5678:9abc:def0", "text": "a \"text\" of no great length",
        })
    };
    json!({"parts": (0..PARTS).map(part).collect::<Vec<_>>()})
}

#[tokio::test]
async fn a_page_of_large_resources_takes_few_times_its_size() {
    let database = TestDatabase::create().await;
    let mut direct = database.connect().await;
    let mut program = Program::serve(&database);
    let api = program.serving(database).await;
    let new = json!({"kind": "Cluster", "name": "c-1", "spec": large_spec()});
    assert_eq!(api.post("/clusters", new).await.status, 201);
    let copies = format!(
        "INSERT INTO resources (id, kind, name, spec, labels, tenancy, conditions, generation, created_at, created_by,
                                updated_at, updated_by)
         SELECT gen_random_uuid(), kind, 'c-' || n, spec, labels, tenancy, conditions, generation, created_at, created_by,
                updated_at, updated_by
         FROM resources, generate_series(2, {CLUSTERS}) n"
    );
    let copies = sqlx::raw_sql(AssertSqlSafe(copies));
    copies.execute(&mut direct).await.unwrap();
    let before = program.memory_peak();

    let mut stream = TcpStream::connect(api.address()).await.unwrap();
    let head = format!(
        "GET /api/hyperfleet/v1/clusters?size={CLUSTERS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut bytes, mut piece) = (0, vec![0; 1024 * 1024]);
    loop {
        let read = stream.read(&mut piece).await.unwrap();
        bytes += read as u64;
        if read == 0 {
            break;
        }
    }

    let size = bytes / 1024;
    assert!(size > 90 * 1024, "{size} KiB were answered");
    let grown = program.memory_peak() - before;
    // What was read makes room for what is answered. As values it would take nine times its size.
    println!("{grown} KiB for {size} KiB");
    assert!(grown < 2 * size, "{grown} KiB for {size} KiB");
}
