//! Keys of an issuer, as published (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde::Deserialize;
use serde_json::Value;

use super::token::{Token, algorithm};

/// Accepted sizes of RSA keys, in bits (RFC 7518 §3.3 for the least).
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

const RSA: &[Algorithm] = &[Algorithm::RS256, Algorithm::RS384, Algorithm::RS512];
const P256: &[Algorithm] = &[Algorithm::ES256];
const ED25519: &[Algorithm] = &[Algorithm::EdDSA];

/// A public key and the algorithms that it may be used with.
#[derive(Debug)]
pub(super) struct Key {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    public: DecodingKey,
}

/// Members of a key. Those that describe the same property must agree.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    r#use: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    d: Option<Value>,
}

impl Key {
    /// The key of a JWK, or why it is unusable.
    pub(super) fn new(value: Value) -> Result<Self, &'static str> {
        let jwk: Jwk = serde_json::from_value(value).map_err(|_| "it is not a JWK")?;
        if jwk.r#use.as_deref().is_some_and(|usage| usage != "sig") {
            return Err("`use` is not `sig`");
        }
        if let Some(operations) = &jwk.key_ops
            && !operations.iter().any(|operation| operation == "verify")
        {
            return Err("`key_ops` lacks `verify`");
        }
        let (key, fitting) = jwk.key()?;
        // A published private key is no secret: anyone can sign with it.
        if jwk.d.is_some() {
            return Err("it is private, and not to be published");
        }
        let algorithms = match jwk.alg.as_deref() {
            None => fitting.to_vec(),
            Some(name) => {
                let only = algorithm(name).filter(|only| fitting.contains(only));
                vec![only.ok_or("`alg` is not accepted for a key of this kind")?]
            }
        };
        Ok(Self {
            kid: jwk.kid,
            algorithms,
            public: key,
        })
    }

    /// Whether a token may mean this key: by its name if it has one, and by its algorithm.
    pub(super) fn fits(&self, token: &Token<'_>) -> bool {
        let is_meant = token.kid.is_none() || token.kid == self.kid;
        is_meant && self.algorithms.contains(&token.algorithm)
    }

    pub(super) fn is_called(&self, kid: &str) -> bool {
        self.kid.as_deref() == Some(kid)
    }

    /// Whether the token has a valid signature of this key.
    pub(super) fn signed(&self, token: &Token<'_>) -> bool {
        let (message, algorithm) = (token.message.as_bytes(), token.algorithm);
        let verified = crypto::verify(token.signature, message, &self.public, algorithm);
        verified.unwrap_or(false)
    }
}

impl Jwk {
    /// The key, and the algorithms of its kind. The kind decides, not the token.
    fn key(&self) -> Result<(DecodingKey, &'static [Algorithm]), &'static str> {
        fn coordinate(text: Option<&str>) -> Option<&str> {
            let bytes = URL_SAFE_NO_PAD.decode(text?).ok()?;
            text.filter(|_| bytes.len() == 32)
        }
        let (x, y) = (self.x.as_deref(), self.y.as_deref());
        let (key, algorithms) = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => {
                let both = self.n.as_deref().zip(self.e.as_deref());
                let (n, e) = both.ok_or("`n` or `e` is missing")?;
                return Ok((rsa(n, e)?, RSA));
            }
            ("EC", Some("P-256")) => {
                let both = coordinate(x).zip(coordinate(y));
                let (x, y) = both.ok_or("`x` and `y` are not coordinates")?;
                (DecodingKey::from_ec_components(x, y), P256)
            }
            ("OKP", Some("Ed25519")) => {
                let x = coordinate(x).ok_or("`x` is not a public key")?;
                (DecodingKey::from_ed_components(x), ED25519)
            }
            ("oct", _) => return Err("it is symmetric"),
            _ => return Err("its kind is not supported"),
        };
        Ok((key.map_err(|_| "it cannot be read")?, algorithms))
    }
}

fn rsa(n: &str, e: &str) -> Result<DecodingKey, &'static str> {
    let decode = |text: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(text);
        bytes.map_err(|_| "`n` or `e` is not a number")
    };
    let (n, e) = (decode(n)?, decode(e)?);
    // Some issuers write a sign byte, which `ring` refuses.
    let (n, e) = (unsigned(&n), unsigned(&e));
    let leading = n.first().map_or(0, |byte| byte.leading_zeros() as usize);
    let bits = n.len() * 8 - leading;
    if bits < *RSA_BITS.start() {
        return Err("it is RSA of less than 2048 bits");
    }
    if bits > *RSA_BITS.end() {
        return Err("it is RSA of more than 8192 bits");
    }
    if e.is_empty() || e.len() > 4 || e == [1] || e.last().is_some_and(|last| last % 2 == 0) {
        return Err("`e` is not that of a safe RSA key");
    }
    Ok(DecodingKey::from_rsa_raw_components(n, e))
}

fn unsigned(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rsa_key(bytes: usize) -> Value {
        let n = URL_SAFE_NO_PAD.encode(vec![0xff; bytes]);
        json!({"kty": "RSA", "kid": "r", "n": n, "e": "AQAB"})
    }

    fn with(mut key: Value, member: &str, value: Value) -> Value {
        key[member] = value;
        key
    }

    fn algorithms(key: &Value) -> Result<Vec<Algorithm>, &'static str> {
        Key::new(key.clone()).map(|key| key.algorithms)
    }

    #[test]
    fn the_kind_of_a_key_decides_what_it_signs() {
        let x = URL_SAFE_NO_PAD.encode([7; 32]);
        let ec = json!({"kty": "EC", "crv": "P-256", "x": x, "y": x});
        let ed = json!({"kty": "OKP", "crv": "Ed25519", "x": x});
        let rsa = rsa_key(256);
        assert_eq!(algorithms(&rsa), Ok(RSA.to_vec()));
        assert_eq!(algorithms(&ec), Ok(P256.to_vec()));
        assert_eq!(algorithms(&ed), Ok(ED25519.to_vec()));
        let one = with(rsa.clone(), "alg", json!("RS384"));
        assert_eq!(algorithms(&one), Ok(vec![Algorithm::RS384]));
        let signed = with(rsa.clone(), "use", json!("sig"));
        assert!(algorithms(&signed).is_ok());
        let padded = with(rsa.clone(), "e", json!("AAEAAQ"));
        assert!(algorithms(&padded).is_ok());
        for (key, word) in [
            (with(rsa.clone(), "alg", json!("ES256")), "alg"),
            (with(rsa.clone(), "alg", json!("HS256")), "alg"),
            (with(rsa.clone(), "alg", json!("PS256")), "alg"),
            (with(ec.clone(), "alg", json!("EdDSA")), "alg"),
            (with(rsa.clone(), "use", json!("enc")), "use"),
            (with(rsa.clone(), "key_ops", json!(["sign"])), "key_ops"),
            (with(rsa.clone(), "d", json!("AQAB")), "private"),
            (with(rsa.clone(), "e", json!("AQ")), "safe"),
            (with(rsa.clone(), "e", json!("BA")), "safe"),
            (with(rsa.clone(), "n", json!("a b")), "number"),
            (with(rsa.clone(), "kid", json!(1)), "not a JWK"),
            (rsa_key(255), "2048"),
            (rsa_key(1025), "8192"),
            (with(ec.clone(), "crv", json!("P-384")), "kind"),
            (with(ec, "x", json!("AQAB")), "coordinates"),
            (with(ed, "x", json!("AQAB")), "public key"),
            (json!({"kty": "oct", "k": "AQAB"}), "symmetric"),
            (json!({"kty": "new"}), "kind"),
            (json!("RSA"), "not a JWK"),
        ] {
            let why = algorithms(&key).unwrap_err();
            assert!(why.contains(word), "{key}: {why}");
        }
    }
}
