//! Verifies signatures for `jsonwebtoken` with `ring`: the library is built without algorithms of its own.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature as ring;

static PROVIDER: CryptoProvider = CryptoProvider {
    // The service signs nothing.
    signer_factory: |_, _| Err(Error::from(ErrorKind::InvalidAlgorithm)),
    verifier_factory: |algorithm, key| {
        Ok(Box::new(RingVerifier {
            algorithm: *algorithm,
            key: key.clone(),
        }))
    },
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs it for the process, once; needed before a signature is verified.
pub(super) fn install() {
    // Fails only if one is installed already.
    let _ = PROVIDER.install_default();
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let rsa = |scheme| match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                let key = ring::RsaPublicKeyComponents { n, e };
                key.verify(scheme, message, signature).is_ok()
            }
            DecodingKeyKind::SecretOrDer(_) => false,
        };
        let curve = |scheme: &'static dyn ring::VerificationAlgorithm| match self.key.kind() {
            DecodingKeyKind::SecretOrDer(point) => {
                let key = ring::UnparsedPublicKey::new(scheme, point);
                key.verify(message, signature).is_ok()
            }
            DecodingKeyKind::RsaModulusExponent { .. } => false,
        };
        let is_by_key = match (self.algorithm, self.key.family()) {
            (Algorithm::RS256, AlgorithmFamily::Rsa) => rsa(&ring::RSA_PKCS1_2048_8192_SHA256),
            (Algorithm::RS384, AlgorithmFamily::Rsa) => rsa(&ring::RSA_PKCS1_2048_8192_SHA384),
            (Algorithm::RS512, AlgorithmFamily::Rsa) => rsa(&ring::RSA_PKCS1_2048_8192_SHA512),
            (Algorithm::ES256, AlgorithmFamily::Ec) => curve(&ring::ECDSA_P256_SHA256_FIXED),
            (Algorithm::EdDSA, AlgorithmFamily::Ed) => curve(&ring::ED25519),
            _ => false,
        };
        is_by_key.then_some(()).ok_or_else(signature::Error::new)
    }
}
