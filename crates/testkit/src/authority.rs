//! Test certificates and their authority.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;

/// A certificate authority. Its file lives as long as this.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: TempDir,
}

/// A certificate and its key, as PEM.
pub struct Issued {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        std::fs::write(folder.path().join("ca.pem"), pem).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            folder,
        }
    }

    /// The file of its own certificate, in a folder of its own.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A certificate for the name of a machine or client.
    pub fn issue(&self, name: &str) -> Issued {
        let (certificate, key) = self.signed(name);
        Issued {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// TLS settings of a server with that name.
    pub fn server(&self, name: &str) -> ServerConfig {
        hyperfleet_server_kit::crypto::install();
        let (certificate, key) = self.signed(name);
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .unwrap()
    }

    fn signed(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }
}
