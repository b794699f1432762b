//! Keys of issuers that are reached through a proxy, as the usual variables say, and of those that are
//! never.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::program::Program;
use super::tokens::minted;
use crate::auth::tls::Secure;
use crate::support::{TestApi, TestDatabase, until};

/// A name that leads nowhere by itself.
const ELSEWHERE: &str = "keys.example";

/// A proxy that leads to this machine whatever the name, and remembers what it was asked for.
struct ConnectProxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ConnectProxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let shared = asked.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, shared.clone()));
            }
        });
        Self { port, asked }
    }

    /// The heads of the requests so far.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn pass(mut client: TcpStream, asked: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let (_, rest) = head.split_once(':').unwrap();
    let port: u16 = rest.split(' ').next().unwrap().parse().unwrap();
    asked.lock().unwrap().push(head);
    let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

/// A service that fetches its keys from there, under these variables.
async fn serve(folder: &Path, issuer: &Secure, variables: &[(&str, &str)]) -> (Program, TestApi) {
    let file = folder.join("config.yaml");
    let text = json!({"server": {"jwt": {"configs": [{
        "issuer_url": "http://localhost/dev-token",
        "jwk_cert_url": issuer.url,
        "jwk_cert_ca_file": issuer.authority.file(),
    }]}}, "health": {"port": 0}, "metrics": {"port": 0}});
    std::fs::write(&file, text.to_string()).unwrap();
    let database = TestDatabase::create().await;
    let url = database.url();
    let config = file.to_str().unwrap();
    let args = ["serve", "--database-url", &url, "--config", config];
    let listen = ["--server-host", "127.0.0.1", "--server-port", "0"];
    let mut program = Program::start_with(&[&args[..], &listen].concat(), variables);
    let api = program.serving(database).await;
    (program, api)
}

async fn read(api: &TestApi, token: &str) -> u16 {
    let url = format!("{}/clusters", api.base);
    let answer = api.client.get(url).bearer_auth(token).send().await;
    answer.unwrap().status().as_u16()
}

/// All spellings of the variables, so that those of the environment do not count.
fn variables<'a>(proxy: &'a str, except: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut variables = vec![("NO_PROXY", except), ("no_proxy", except)];
    variables.extend(["HTTPS_PROXY", "https_proxy"].map(|name| (name, proxy)));
    variables.extend(["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"].map(|name| (name, "")));
    variables
}

#[tokio::test]
async fn keys_come_through_the_proxy_except_local_and_excepted() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("token");
    let token = minted(&tokens, &[]).await;
    let keys = std::fs::read_to_string(tokens.join("jwks.json")).unwrap();
    for (name, except, passes, status) in [
        (ELSEWHERE, "", true, 200),
        (ELSEWHERE, "other.example", true, 200),
        (ELSEWHERE, ELSEWHERE, false, 401),
        (ELSEWHERE, ".example", false, 401),
        ("localhost", "", false, 200),
    ] {
        let issuer = Secure::start_as(name, keys.clone());
        let proxy = ConnectProxy::start().await;
        let address = format!("http://user:hush@127.0.0.1:{}", proxy.port);
        let variables = variables(&address, except);
        let (program, api) = serve(folder.path(), &issuer, &variables).await;
        let at = format!("{name} except {except:?}");
        assert_eq!(
            read(&api, &token).await,
            status,
            "{at}: {}",
            program.output()
        );
        let asked = proxy.asked();
        assert_eq!(!asked.is_empty(), passes, "{at}: {asked:?}");
        for head in asked {
            let authority = issuer.url.strip_prefix("https://").unwrap();
            let authority = authority.strip_suffix("/keys").unwrap();
            let begins = format!("CONNECT {authority} HTTP/1.1\r\n");
            assert!(head.starts_with(&begins), "{head}");
            let head = head.to_lowercase();
            assert!(head.contains("proxy-authorization: basic "), "{head}");
        }
    }
}

#[tokio::test]
async fn the_password_of_an_unreachable_proxy_is_not_logged() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let folder = tempfile::tempdir().unwrap();
    let issuer = Secure::start_as(ELSEWHERE, String::new());
    let address = format!("http://user:hush@127.0.0.1:{port}");
    let (program, _api) = serve(folder.path(), &issuer, &variables(&address, "")).await;
    until("it says that it cannot", async || {
        program.output().contains("cannot be reached")
    })
    .await;
    let said = program.output();
    assert!(!said.contains("hush"), "{said}");
}
