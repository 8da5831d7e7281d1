//! Keys that answers are signed with: Ed25519 (RFC 8032), in the PEM files that other programs
//! read and write.
//!
//! `openssl genpkey -algorithm ed25519` makes such a key too, and `openssl pkey -pubout` gives its
//! public half.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use crate::error::{Error, Result};

/// What stands before the 32 bytes of a private key (RFC 8410, PKCS #8 version 1).
const PRIVATE: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// What stands before the 32 bytes of a public key (RFC 8410).
const PUBLIC: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// The largest key file that is read.
const MAX_KEY_BYTES: usize = 16 << 10;

/// How a public key is told.
const SCHEME: &str = "ed25519:";

/// A key that signs answers. Whoever has it can sign.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// A new key, as the text of its file.
    pub fn generate() -> Result<String> {
        let mut seed = [0; 32];
        SystemRandom::new()
            .fill(&mut seed)
            .map_err(|_| bad_key("a new key", "the system gives no random numbers"))?;
        Ok(pem("PRIVATE KEY", &[&PRIVATE[..], &seed].concat()))
    }

    /// Reads a key from the text of its file.
    pub fn from_pem(text: &str) -> Result<Self> {
        let der = unpem("PRIVATE KEY", text).ok_or_else(|| {
            bad_key(
                "the key",
                "it is no private key in PEM (`-----BEGIN PRIVATE KEY-----`)",
            )
        })?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
            .map_err(|e| bad_key("the key", &format!("it is no Ed25519 key: {e}")))?;
        Ok(Self(pair))
    }

    /// Reads a key file.
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_pem(&read(path)?).map_err(|error| of_file(error, path))
    }

    /// Its public half, which verifies what it signed.
    pub fn public(&self) -> PublicKey {
        let bytes = self.0.public_key().as_ref();
        PublicKey(bytes.try_into().expect("an Ed25519 key has 32 bytes"))
    }

    pub(super) fn sign(&self, message: &[u8]) -> String {
        BASE64_STANDARD.encode(self.0.sign(message))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public())
    }
}

/// The public half of a key: verifies, and cannot sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Reads a key from the text of a file that holds it, or the private key.
    pub fn from_pem(text: &str) -> Result<Self> {
        if let Some(der) = unpem("PUBLIC KEY", text) {
            let key = der
                .strip_prefix(&PUBLIC)
                .and_then(|bytes| bytes.try_into().ok());
            return key
                .map(Self)
                .ok_or_else(|| bad_key("the key", "it is no Ed25519 key"));
        }
        Ok(SigningKey::from_pem(text)?.public())
    }

    /// Reads a key file.
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_pem(&read(path)?).map_err(|error| of_file(error, path))
    }

    /// The text of its file.
    pub fn to_pem(&self) -> String {
        pem("PUBLIC KEY", &[&PUBLIC[..], &self.0].concat())
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &str) -> bool {
        let Ok(signature) = BASE64_STANDARD.decode(signature) else {
            return false;
        };
        let key = UnparsedPublicKey::new(&ED25519, &self.0);
        key.verify(message, &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", hex(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bytes = text.strip_prefix(SCHEME).and_then(unhex);
        let key = bytes.and_then(|bytes| bytes.try_into().ok());
        key.map(Self)
            .ok_or_else(|| bad_key("the key", "it is no `ed25519:` and 64 hexadecimal digits"))
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    let digits = digits?;
    // one key has one text
    let lower = !text.contains(|c: char| c.is_ascii_uppercase());
    (lower && digits.len().is_multiple_of(2)).then(|| {
        let byte = |pair: &[u32]| (pair[0] * 16 + pair[1]) as u8;
        digits.chunks_exact(2).map(byte).collect()
    })
}

fn pem(label: &str, der: &[u8]) -> String {
    let base64 = BASE64_STANDARD.encode(der);
    // all of ours fit into one line of 64 letters
    format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n")
}

fn unpem(label: &str, text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let base64: String = body.split_whitespace().collect();
    BASE64_STANDARD.decode(base64).ok()
}

fn read(path: &Path) -> Result<String> {
    let io = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    let file = std::fs::File::open(path).map_err(io)?;
    let mut text = String::new();
    std::io::Read::read_to_string(
        &mut std::io::Read::take(file, MAX_KEY_BYTES as u64),
        &mut text,
    )
    .map_err(io)?;
    Ok(text)
}

fn bad_key(key: &str, reason: &str) -> Error {
    Error::BadKey {
        key: key.to_owned(),
        reason: reason.to_owned(),
    }
}

fn of_file(error: Error, path: &Path) -> Error {
    match error {
        Error::BadKey { reason, .. } => bad_key(&format!("`{}`", path.display()), &reason),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key and signature of RFC 8032, section 7.1, test 1.
    #[test]
    fn the_example_of_the_standard() {
        let seed =
            unhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
        let text = pem("PRIVATE KEY", &[&PRIVATE[..], &seed].concat());
        let key = SigningKey::from_pem(&text).unwrap();
        assert_eq!(
            key.public().to_string(),
            "ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
        );
        let signature = BASE64_STANDARD.decode(key.sign(b"")).unwrap();
        assert!(
            hex(&signature)
                .starts_with("e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e0652249")
        );
        assert!(key.public().verifies(b"", &key.sign(b"")));
        assert!(!key.public().verifies(b"x", &key.sign(b"")));
        assert!(!key.public().verifies(b"", "no base64"));
    }

    #[test]
    fn keys_go_through_files_and_texts() {
        let text = SigningKey::generate().unwrap();
        let key = SigningKey::from_pem(&text).unwrap();
        let public = key.public();
        assert_eq!(PublicKey::from_pem(&public.to_pem()).unwrap(), public);
        assert_eq!(PublicKey::from_pem(&text).unwrap(), public);
        assert_eq!(public.to_string().parse::<PublicKey>().unwrap(), public);
        for bad in ["", "ed25519:", "ed25519:zz", "ed25519:ä", "rsa:00"] {
            assert!(bad.parse::<PublicKey>().is_err(), "{bad}");
        }
        for bad in [
            "",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        ] {
            let error = SigningKey::from_pem(bad).unwrap_err();
            assert_eq!(error.code(), "bad-key");
            assert!(error.hint().unwrap().contains("wherefore keygen"));
        }
    }
}
