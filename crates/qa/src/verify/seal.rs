//! A seal shows whether an answer file was changed after it was written.
//!
//! ```text
//! digest    = SHA-256(canonical JSON of the whole file, without `seal.digest` and `seal.signature`)
//! signature = Ed25519(key, "wherefore answer 1\n" ‖ digest)
//! ```
//!
//! Canonical JSON has sorted keys and no spaces. A whole number is written without a point, any other
//! number as the shortest text of the nearest single-precision number: answers pass through
//! programs that read `0.6` and write `0.6000000238418579`, or `1.0` and write `1`. A key that
//! stands twice is refused: readers disagree on which one counts.
//!
//! A digest alone shows accidental and careless change; whoever forges an answer can compute it
//! anew. A signature cannot be made without the key.

use std::collections::btree_map::{BTreeMap, Entry};
use std::fmt;

use ring::digest::{SHA256, digest};
use serde::de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};
use wherefore_graph::Graph;

use super::check::{Check, Subject};
use super::signature::{PublicKey, SigningKey, hex};
use crate::answer::{Answer, Seal};

/// What is signed begins with this, so that no signature of something else can be used.
const SIGNED: &str = "wherefore answer 1\n";

/// An answer as it was saved: read, and letter by letter.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The answer.
    pub answer: Answer,
    /// All that stands in the file.
    file: Value,
}

impl Saved {
    /// Reads an answer out of JSON.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

impl<'de> Deserialize<'de> for Saved {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Strict(file) = Strict::deserialize(deserializer)?;
        let answer = read(&file).map_err(de::Error::custom)?;
        Ok(Self { answer, file })
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> serde_json::Result<T> {
    T::deserialize(value)
}

/// The seal of a complete answer. `answer` is what will be written, as an object of JSON; the seal
/// goes into its field `seal`, and nothing may change afterwards.
pub fn seal(answer: &impl Serialize, graph: &dyn Graph, key: Option<&SigningKey>) -> Seal {
    let text = serde_json::to_string(answer).expect("an answer is JSON");
    // as whoever reads it will see it
    let mut file: Value = serde_json::from_str(&text).expect("what was written can be read");
    let mut seal = Seal {
        graph: checksum(graph).map(str::to_owned),
        signed_by: key.map(|key| key.public().to_string()),
        ..Seal::default()
    };
    if let Value::Object(fields) = &mut file {
        let seal = serde_json::to_value(&seal).expect("texts are JSON");
        fields.insert("seal".into(), seal);
    }
    seal.digest = digest_of(&file);
    seal.signature = key.map(|key| key.sign(&signed(&seal.digest)));
    seal
}

/// The checksum of a graph that lies in a folder; what a service holds has none.
fn checksum(graph: &dyn Graph) -> Option<&str> {
    graph.store().and_then(|store| Graph::identity(store))
}

fn signed(digest: &str) -> Vec<u8> {
    [SIGNED, digest].concat().into_bytes()
}

/// Checks the seal: is the file as it was written, by whom, and from this graph?
pub(super) fn check(saved: &Saved, graph: &dyn Graph, key: Option<&PublicKey>) -> Vec<Check> {
    let Some(seal) = &saved.answer.seal else {
        let detail = "the file has none: a changed question, text or score is not noticed";
        let mut checks = vec![Check::noted(Subject::Digest, detail)];
        if key.is_some() {
            checks.push(Check::failed(Subject::Signature, "the file is not signed"));
        }
        return checks;
    };
    vec![
        check_graph(seal, graph),
        check_digest(seal, &saved.file),
        check_signature(seal, key),
    ]
}

fn check_graph(seal: &Seal, graph: &dyn Graph) -> Check {
    let detail = match (seal.graph.as_deref(), checksum(graph)) {
        (Some(was), Some(is)) if was == is => {
            return Check::passed(Subject::Graph, "it is the graph that was asked");
        }
        (Some(_), _) => "another graph was asked, or this one before it was changed",
        (None, _) => "the file does not say which graph was asked",
    };
    Check::noted(Subject::Graph, detail)
}

fn check_digest(seal: &Seal, file: &Value) -> Check {
    if digest_of(file) == seal.digest {
        Check::passed(Subject::Digest, "the file is as it was written")
    } else {
        let detail = "the file was changed after it was written";
        Check::failed(Subject::Digest, detail)
    }
}

fn check_signature(seal: &Seal, key: Option<&PublicKey>) -> Check {
    let failed = |detail: &str| Check::failed(Subject::Signature, detail);
    let (signature, signer) = match (&seal.signature, &seal.signed_by, key) {
        (Some(signature), Some(signer), _) => (signature, signer),
        (None, None, None) => {
            let detail =
                "digest only: shows accidental or careless change, not forgery (nobody signed it)";
            return Check::noted(Subject::Signature, detail);
        }
        (None, None, Some(_)) => return failed("the file is not signed"),
        _ => return failed("the signature or the key of its signer is missing"),
    };
    let Ok(public) = signer.parse::<PublicKey>() else {
        return failed("the key of its signer cannot be read");
    };
    if let Some(key) = key
        && *key != public
    {
        return failed(&format!("it is signed by {public}, and not by {key}"));
    }
    if !public.verifies(&signed(&seal.digest), signature) {
        return failed(&format!("it is not the signature of {public}"));
    }
    match key {
        Some(_) => Check::passed(
            Subject::Signature,
            &format!("signed by {public}, the given key"),
        ),
        None => Check::noted(
            Subject::Signature,
            &format!("signed by {public}; whose key that is, `--key FILE` tells"),
        ),
    }
}

/// The digest of a file, `sha256:` and 64 hexadecimal digits.
fn digest_of(file: &Value) -> String {
    let mut file = file.clone();
    if let Some(Value::Object(seal)) = file.get_mut("seal") {
        seal.remove("digest");
        seal.remove("signature");
    }
    let mut text = String::new();
    write_canonical(&file, &mut text);
    format!("sha256:{}", hex(digest(&SHA256, text.as_bytes()).as_ref()))
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            out.push('{');
            for (i, (name, value)) in sorted.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Number(number) => out.push_str(&canonical_number(number)),
        other => out.push_str(&other.to_string()),
    }
}

fn canonical_number(number: &Number) -> String {
    /// Above, not every whole number is a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() => {
            if float.fract() == 0.0 && float.abs() < EXACT {
                return format!("{}", float as i64);
            }
            let single = float as f32;
            if single.is_finite() {
                format!("{single:e}")
            } else {
                format!("{float:e}")
            }
        }
        _ => number.to_string(),
    }
}

/// JSON in which no key stands twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let Strict(value) = map.next_value()?;
            match fields.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(there) => {
                    let name = there.key();
                    return Err(de::Error::custom(format!("`{name}` stands there twice")));
                }
            }
        }
        Ok(Value::Object(fields.into_iter().collect::<Map<_, _>>()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canonical(text: &str) -> String {
        let mut out = String::new();
        write_canonical(&serde_json::from_str(text).unwrap(), &mut out);
        out
    }

    #[test]
    fn the_same_answer_written_by_another_program_has_the_same_digest() {
        let ours =
            r#"{"b": [1.0, 0.6, 12.345678901234567], "a": "ä\n", "n": 18446744073709551615}"#;
        let theirs = r#"{"a":"\u00e4\n","n":18446744073709551615,"b":[1,0.6000000238418579,12.34567890123457]}"#;
        assert_eq!(canonical(ours), canonical(theirs));
        assert_eq!(
            canonical(r#"{"b": 1e-3, "a": null}"#),
            r#"{"a":null,"b":1e-3}"#
        );
        assert_ne!(canonical("[0.6]"), canonical("[0.61]"));
        assert_ne!(canonical("[1]"), canonical("[\"1\"]"));
        assert_eq!(canonical("[1e300, -2.0]"), "[1e300,-2]");
    }

    #[test]
    fn a_key_that_stands_twice_is_refused() {
        let twice = r#"{"question": "a", "question": "b"}"#;
        let error = Saved::from_json(twice).unwrap_err();
        assert!(error.to_string().contains("`question` stands there twice"));
    }

    #[test]
    fn unknown_fields_are_sealed_too() {
        let graph = wherefore_graph::toy::graph();
        let mut file = serde_json::to_value(Answer::default()).unwrap();
        file["explanation"] = json!({ "layers": [0.5] });
        file["seal"] = serde_json::to_value(seal(&file, &graph, None)).unwrap();
        let digest = |file: &Value| {
            let saved = Saved::from_json(&file.to_string()).unwrap();
            check(&saved, &graph, None)[1].clone()
        };
        assert!(digest(&file).holds());
        file["explanation"]["layers"][0] = 0.25.into();
        assert!(!digest(&file).holds());
    }
}
