//! Traces over TLS, to a collector with a certificate of a private authority.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustix::process::Signal;
use rustls::{ServerConfig, ServerConnection, Stream};

use super::program::Program;
use super::traces::{Collector, request};
use crate::support::{Authority, TestDatabase};

/// What a collector proves itself with, and the file of who signed it.
struct Identity {
    tls: Arc<ServerConfig>,
    authority: Authority,
}

impl Identity {
    fn new(protocol: &str) -> Self {
        let authority = Authority::new();
        let mut tls = authority.server("localhost");
        // gRPC is HTTP/2, and nothing else.
        tls.alpn_protocols = vec![if protocol == "grpc" { "h2" } else { "http/1.1" }.into()];
        Self {
            tls: Arc::new(tls),
            authority,
        }
    }

    fn authority(&self) -> String {
        self.authority.file().display().to_string()
    }

    /// A collector by HTTP or, for the first bytes, by gRPC. A client that does not trust it sends
    /// nothing that it could keep.
    fn collector(&self, protocol: &str) -> Collector {
        let (tls, is_grpc) = (Arc::clone(&self.tls), protocol == "grpc");
        let mut collector = Collector::listen(move |mut socket, received| {
            let mut connection = ServerConnection::new(Arc::clone(&tls)).unwrap();
            let mut stream = Stream::new(&mut connection, &mut socket);
            let mut part = [0; 4096];
            if is_grpc {
                while let Ok(count @ 1..) = stream.read(&mut part) {
                    received.lock().unwrap().push(part[..count].to_vec());
                }
                return;
            }
            while let Some(body) = request(&mut stream) {
                received.lock().unwrap().push(body);
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let address = collector
            .address
            .replace("http://127.0.0.1", "https://localhost");
        collector.address = address;
        collector
    }
}

/// What a collector gets of a program with these variables, and what the program says.
async fn sent(collector: &Collector, protocol: &str, more: &[(&str, &str)]) -> String {
    let database = TestDatabase::create().await;
    let mut variables = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
    ];
    variables.extend(more);
    let mut program = Program::serve_by_flags(&database, &[], &variables);
    let api = program.serving(database).await;
    api.cluster("abc").await;
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
    program.output()
}

#[tokio::test]
async fn a_collector_with_a_configured_authority_gets_spans() {
    let identity = Identity::new("http/protobuf");
    let collector = identity.collector("http/protobuf");
    let authority = identity.authority();
    let named = [("OTEL_EXPORTER_OTLP_CERTIFICATE", authority.as_str())];
    let said = sent(&collector, "http/protobuf", &named).await;
    let spans = collector.spans();
    let name = "POST /api/hyperfleet/v1/clusters";
    assert!(
        spans.iter().any(|span| span.name == name),
        "{spans:?}: {said}"
    );
    assert!(!said.contains("spans lost"), "{said}");
}

#[tokio::test]
async fn grpc_over_tls_trusts_the_authority_that_is_named() {
    let identity = Identity::new("grpc");
    let collector = identity.collector("grpc");
    let authority = identity.authority();
    let named = [("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", authority.as_str())];
    sent(&collector, "grpc", &named).await;
    let received = collector.received.lock().unwrap().concat();
    assert!(received.starts_with(b"PRI * HTTP/2.0"), "{received:?}");
}

#[tokio::test]
async fn an_untrusted_collector_gets_nothing_and_is_logged() {
    for protocol in ["http/protobuf", "grpc"] {
        let identity = Identity::new(protocol);
        let collector = identity.collector(protocol);
        // A file that is gone with its folder; and another authority of the same name.
        let other = Identity::new(protocol).authority();
        let crossed = Identity::new(protocol);
        let authority = crossed.authority();
        let named = [("OTEL_EXPORTER_OTLP_CERTIFICATE", authority.as_str())];
        let said = sent(&collector, protocol, &named).await;
        assert!(said.contains("spans lost"), "{said}");
        let gone = [("OTEL_EXPORTER_OTLP_CERTIFICATE", other.as_str())];
        let said = sent(&collector, protocol, &gone).await;
        assert!(
            said.contains("no traces: OTEL_EXPORTER_OTLP_CERTIFICATE"),
            "{said}"
        );
        assert!(collector.received.lock().unwrap().is_empty(), "{protocol}");
    }
}

#[tokio::test]
async fn a_client_certificate_for_the_collector_is_refused() {
    let identity = Identity::new("http/protobuf");
    let collector = identity.collector("http/protobuf");
    let key = [("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/a/key.pem")];
    let said = sent(&collector, "http/protobuf", &key).await;
    let note = "OTEL_EXPORTER_OTLP_CLIENT_KEY is not supported";
    assert!(said.contains(note), "{said}");
}
