//! Keys that sign, as an issuer has them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RsaEncoding, RsaPublicKeyComponents,
};
use serde_json::{Value, json};

/// The fixture, as its file has it.
pub(super) const RSA_PEM: &str = include_str!("../../fixtures/rsa-2048.pem");

pub(super) fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key with a name.
pub(super) struct Signer {
    pub(super) kid: String,
    /// The algorithm that is published with it, if one is.
    only: Option<&'static str>,
    key: Key,
}

enum Key {
    Rsa(RsaKeyPair),
    /// PKCS#8, to be read for one form of signatures or the other.
    P256(Vec<u8>),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    /// The fixture.
    pub(super) fn rsa(kid: &str) -> Self {
        let base64: String = RSA_PEM.lines().filter(|l| !l.starts_with('-')).collect();
        let der = STANDARD.decode(base64).unwrap();
        Self::new(kid, Key::Rsa(RsaKeyPair::from_pkcs8(&der).unwrap()))
    }

    /// A new one.
    pub(super) fn p256(kid: &str) -> Self {
        let scheme = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(scheme, &SystemRandom::new()).unwrap();
        Self::new(kid, Key::P256(key.as_ref().to_vec()))
    }

    /// A new one.
    pub(super) fn ed25519(kid: &str) -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::new(
            kid,
            Key::Ed25519(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap()),
        )
    }

    fn new(kid: &str, key: Key) -> Self {
        Self {
            kid: kid.to_owned(),
            only: None,
            key,
        }
    }

    /// The same, published for only one algorithm.
    pub(super) fn only(mut self, algorithm: &'static str) -> Self {
        self.only = Some(algorithm);
        self
    }

    /// The algorithm that it is for, if it is for only one.
    pub(super) fn algorithm(&self) -> &'static str {
        match self.key {
            Key::Rsa(_) => "RS256",
            Key::P256(_) => "ES256",
            Key::Ed25519(_) => "EdDSA",
        }
    }

    /// The public key, as it is published.
    pub(super) fn jwk(&self) -> Value {
        let kid = &self.kid;
        let mut jwk = match &self.key {
            Key::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                let (n, e) = (base64(public.n), base64(public.e));
                json!({"kty": "RSA", "kid": kid, "use": "sig", "n": n, "e": e})
            }
            Key::P256(_) => {
                let pair = self.pair(&ECDSA_P256_SHA256_FIXED_SIGNING);
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "kid": kid, "x": base64(x), "y": base64(y)})
            }
            Key::Ed25519(pair) => {
                let x = base64(pair.public_key());
                json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": kid, "x": x})
            }
        };
        if let Some(algorithm) = self.only {
            jwk["alg"] = json!(algorithm);
        }
        jwk
    }

    fn pair(&self, scheme: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
        let Key::P256(key) = &self.key else {
            panic!("no key of that curve")
        };
        EcdsaKeyPair::from_pkcs8(scheme, key, &SystemRandom::new()).unwrap()
    }

    /// The signature of a message by an algorithm of RFC 7518; `ES256-DER` is one that it forbids.
    pub(super) fn signature(&self, algorithm: &str, message: &str) -> Vec<u8> {
        let (random, message) = (SystemRandom::new(), message.as_bytes());
        match (&self.key, algorithm) {
            (Key::Rsa(pair), _) => {
                let scheme: &'static dyn RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(scheme, &random, message, &mut signature).unwrap();
                signature
            }
            (Key::P256(_), "ES256-DER") => {
                let pair = self.pair(&ECDSA_P256_SHA256_ASN1_SIGNING);
                pair.sign(&random, message).unwrap().as_ref().to_vec()
            }
            (Key::P256(_), _) => {
                let pair = self.pair(&ECDSA_P256_SHA256_FIXED_SIGNING);
                pair.sign(&random, message).unwrap().as_ref().to_vec()
            }
            (Key::Ed25519(pair), _) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// A token of header and payload as they stand.
    pub(super) fn sign_text(&self, algorithm: &str, header: &str, payload: &str) -> String {
        let message = format!("{}.{}", base64(header), base64(payload));
        let signature = base64(self.signature(algorithm, &message));
        format!("{message}.{signature}")
    }

    /// A token that says what it is signed with.
    pub(super) fn sign(&self, claims: &Value) -> String {
        self.sign_with(self.algorithm(), claims)
    }

    /// A token by one of its algorithms.
    pub(super) fn sign_with(&self, algorithm: &str, claims: &Value) -> String {
        let header = json!({"alg": algorithm, "kid": self.kid, "typ": "JWT"});
        self.sign_text(algorithm, &header.to_string(), &claims.to_string())
    }
}

/// A token whose "secret" is something that everybody knows.
pub(super) fn sign_by_secret(secret: &[u8], kid: &str, claims: &Value) -> String {
    let header = json!({"alg": "HS256", "kid": kid, "typ": "JWT"});
    let message = format!(
        "{}.{}",
        base64(header.to_string()),
        base64(claims.to_string())
    );
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let signature = base64(hmac::sign(&key, message.as_bytes()));
    format!("{message}.{signature}")
}

pub(super) fn unbase64(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}
