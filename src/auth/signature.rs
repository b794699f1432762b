//! The algorithms of `jsonwebtoken`, by `ring`: the library is built without any of its own.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature as ring;

static PROVIDER: CryptoProvider = CryptoProvider {
    // The service signs nothing.
    signer_factory: |_, _| Err(Error::from(ErrorKind::InvalidAlgorithm)),
    verifier_factory: |algorithm, key| verifier(*algorithm, key),
    key_utils: KeyUtils::new_unimplemented(),
};

/// Chooses it for the process, once; needed before a signature is verified.
pub(super) fn install() {
    // Fails only if it was chosen before.
    let _ = PROVIDER.install_default();
}

/// Whether a signature, as it is written in a token, is the key's of this message.
pub(super) fn is_by(
    key: &DecodingKey,
    algorithm: Algorithm,
    message: &str,
    signature: &str,
) -> bool {
    jsonwebtoken::crypto::verify(signature, message.as_bytes(), key, algorithm).unwrap_or(false)
}

enum Scheme {
    Rsa(&'static ring::RsaParameters),
    Raw(&'static dyn ring::VerificationAlgorithm),
}

struct RingVerifier {
    algorithm: Algorithm,
    scheme: Scheme,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match (&self.scheme, self.key.kind()) {
            (Scheme::Rsa(scheme), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                ring::RsaPublicKeyComponents { n, e }.verify(scheme, message, signature)
            }
            (Scheme::Raw(scheme), DecodingKeyKind::SecretOrDer(point)) => {
                ring::UnparsedPublicKey::new(*scheme, point).verify(message, signature)
            }
            _ => return Err(signature::Error::new()),
        };
        verified.map_err(|_| signature::Error::new())
    }
}

fn verifier(
    algorithm: Algorithm,
    key: &DecodingKey,
) -> jsonwebtoken::errors::Result<Box<dyn JwtVerifier>> {
    let (family, scheme) = match algorithm {
        Algorithm::RS256 => (
            AlgorithmFamily::Rsa,
            Scheme::Rsa(&ring::RSA_PKCS1_2048_8192_SHA256),
        ),
        Algorithm::RS384 => (
            AlgorithmFamily::Rsa,
            Scheme::Rsa(&ring::RSA_PKCS1_2048_8192_SHA384),
        ),
        Algorithm::RS512 => (
            AlgorithmFamily::Rsa,
            Scheme::Rsa(&ring::RSA_PKCS1_2048_8192_SHA512),
        ),
        Algorithm::ES256 => (
            AlgorithmFamily::Ec,
            Scheme::Raw(&ring::ECDSA_P256_SHA256_FIXED),
        ),
        Algorithm::EdDSA => (AlgorithmFamily::Ed, Scheme::Raw(&ring::ED25519)),
        _ => return Err(Error::from(ErrorKind::InvalidAlgorithm)),
    };
    if key.family() != family {
        return Err(Error::from(ErrorKind::InvalidKeyFormat));
    }
    Ok(Box::new(RingVerifier {
        algorithm,
        scheme,
        key: key.clone(),
    }))
}
