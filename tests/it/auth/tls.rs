//! Keys over HTTPS: who answers has to prove who it is.

use std::sync::Arc;

use actix_web::{App, HttpResponse, HttpServer, web};
use hyperfleet_auth::IssuerConfig;

use super::signer::Signer;
use super::world::{ISSUER, claims, config, key_set, read, service, slow};
use crate::support::Authority;

/// An issuer that answers over TLS, by an authority of its own.
pub(crate) struct Secure {
    pub(crate) url: String,
    pub(crate) authority: Authority,
}

impl Secure {
    fn start(keys: String) -> Self {
        Self::start_as("localhost", keys)
    }

    /// As the machine of this name, on this one.
    pub(crate) fn start_as(name: &str, keys: String) -> Self {
        let authority = Authority::new();
        let tls = authority.server(name);
        let keys = Arc::new(keys);
        let app = move || {
            let keys = keys.clone();
            App::new().default_service(web::to(move || {
                let keys = keys.clone();
                async move { HttpResponse::Ok().body(keys.to_string()) }
            }))
        };
        let server = HttpServer::new(app).workers(1).disable_signals();
        let server = server.bind_rustls_0_23(("127.0.0.1", 0), tls).unwrap();
        let url = format!("https://{name}:{}/keys", server.addrs()[0].port());
        tokio::spawn(server.run());
        Self { url, authority }
    }

    fn config(&self) -> IssuerConfig {
        IssuerConfig {
            jwk_cert_url: self.url.clone(),
            ..config(ISSUER)
        }
    }
}

#[tokio::test]
async fn a_private_authority_is_trusted_only_where_it_is_named() {
    let key = Signer::p256("key");
    let issuer = Secure::start(key_set(&[&key]));
    let token = key.sign(&claims());
    let named = IssuerConfig {
        jwk_cert_ca_file: issuer.authority.file(),
        ..issuer.config()
    };
    let api = service(std::slice::from_ref(&named), slow()).await;
    assert_eq!(read(&api, &token).await.status, 200);
    let api = service(&[issuer.config()], slow()).await;
    assert_eq!(read(&api, &token).await.status, 401);
    // Of another authority of the same name.
    let other = Secure::start(key_set(&[&key]));
    let crossed = IssuerConfig {
        jwk_cert_ca_file: other.authority.file(),
        ..issuer.config()
    };
    let api = service(&[crossed], slow()).await;
    assert_eq!(read(&api, &token).await.status, 401);
    // Of the right authority, for another name.
    let by_address = IssuerConfig {
        jwk_cert_url: named.jwk_cert_url.replace("localhost", "127.0.0.1"),
        ..named
    };
    let api = service(&[by_address], slow()).await;
    assert_eq!(read(&api, &token).await.status, 401);
}
