//! Answer files that somebody changed: every change of any field is caught by the digest, and
//! changes of what the graph can tell are caught without it too.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::path::Path;

use serde_json::{Value, json};
use wherefore::graph::{Input, LoadOptions, Store, load};
use wherefore::verify::{CheckOutcome, Saved, SigningKey, Subject, seal, verify_saved};
use wherefore::{Method, PipelineConfig, Question};

/// Methods and questions over the sample graph: entities, counts, extremes, comparisons, choices.
const ASKED: [(&str, &str); 8] = [
    ("similarity", "What is the capital of Peru?"),
    ("read", "Which countries border both France and Germany?"),
    ("read", "How many countries are there in Africa?"),
    ("read", "What is the longest river in the world?"),
    ("read", "Which is longer, the Rhine or the Elbe?"),
    ("read", "Does Peru border Chile?"),
    ("read", "What is the highest mountain in Africa?"),
    ("read", "Which rivers flow through Hungary?"),
];

struct World {
    store: Store,
    /// Sealed, as `wherefore ask --json` writes them.
    answers: Vec<Value>,
    _folder: tempfile::TempDir,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/sample/world.ttl.xz");
    let graph = folder.path().join("world");
    load(
        &[Input::File(sample)],
        &graph,
        &LoadOptions::default(),
        &|_| {},
    )
    .unwrap();
    let store = Store::open(&graph).unwrap();
    let [similarity, read] =
        [Method::Similarity, Method::Read].map(|m| PipelineConfig::of(m).build().unwrap());
    let answers = ASKED.map(|(method, text)| {
        let pipeline = match method {
            "similarity" => &similarity,
            _ => &read,
        };
        let mut answer = pipeline
            .answer(&Question::new(text), &store, &mut ())
            .unwrap();
        assert!(!answer.answers.is_empty(), "{method}: {text}");
        answer.seal = Some(seal(&answer, &store, None));
        let text = serde_json::to_string(&answer).unwrap();
        serde_json::from_str(&text).unwrap()
    });
    World {
        store,
        answers: answers.into(),
        _folder: folder,
    }
}

/// Whether the file holds, and if not, why: what a reader of its verification sees first.
fn objection(file: &Value, store: &Store) -> Option<String> {
    let saved = match Saved::from_json(&file.to_string()) {
        Ok(saved) => saved,
        Err(error) => return Some(format!("no answer: {error}")),
    };
    let verification = verify_saved(&saved, store, None).unwrap();
    let answer = verification.answers.iter().find_map(|a| a.reason.clone());
    let check = verification.checks.iter().find(|c| !c.holds());
    let check = check.map(|c| format!("{:?}: {}", c.subject, c.detail));
    assert_eq!(verification.holds, answer.is_none() && check.is_none());
    answer.or(check)
}

/// Puts a fresh digest into the file, as a forger would.
fn resealed(mut file: Value, store: &Store) -> Value {
    let fields = file.as_object_mut().unwrap();
    fields.remove("seal");
    let fresh = seal(&file, store, None);
    file["seal"] = serde_json::to_value(fresh).unwrap();
    file
}

/// splitmix64
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

/// JSON pointers to every value: leaves, and arrays with something in them.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            if !items.is_empty() {
                found.push(at.to_owned());
            }
            for (i, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{i}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

/// Changes one value; what was done, in words.
fn tamper(value: &mut Value, random: &mut Random) -> &'static str {
    match value {
        Value::String(text) => match random.below(4) {
            0 => {
                text.push('x');
                "longer"
            }
            1 if !text.is_empty() => {
                text.remove(0);
                "shorter"
            }
            2 => {
                "Atlantis".clone_into(text);
                "another text"
            }
            _ => {
                let turned: String = text.chars().rev().collect();
                *text = match turned == *text {
                    true => format!("{text} "),
                    false => turned,
                };
                "turned around"
            }
        },
        Value::Number(number) => {
            let new = match (number.as_u64(), random.below(3)) {
                (Some(n), 0) => json!(n + 1),
                (Some(n), 1) => json!(n * 7 + 3),
                (Some(n), _) => json!(n as f64 + 0.5),
                (None, 0) => json!(number.as_f64().unwrap() * 0.5 + 0.7),
                (None, _) => json!(number.as_f64().unwrap() + 0.001),
            };
            *value = new;
            "another number"
        }
        Value::Bool(flag) => {
            *flag = !*flag;
            "the opposite"
        }
        Value::Array(items) => {
            let i = random.below(items.len());
            let j = random.below(items.len());
            match random.below(3) {
                0 => {
                    items.remove(i);
                    "one less"
                }
                1 if items[i] != items[j] => {
                    items.swap(i, j);
                    "swapped"
                }
                _ => {
                    items.insert(j, items[i].clone());
                    "one twice"
                }
            }
        }
        Value::Object(_) | Value::Null => panic!("neither is chosen"),
    }
}

#[test]
fn untouched_answers_hold() {
    let world = world();
    for (file, (method, text)) in world.answers.iter().zip(ASKED) {
        assert_eq!(objection(file, &world.store), None, "{method}: {text}");
        // as programs write it that know only doubles
        let saved = serde_json::from_value::<wherefore::Answer>(file.clone()).unwrap();
        let doubles = serde_json::to_value(saved).unwrap();
        assert_eq!(objection(&doubles, &world.store), None, "{method}: {text}");
        assert_eq!(
            objection(&resealed(file.clone(), &world.store), &world.store),
            None
        );
    }
}

#[test]
fn two_hundred_of_two_hundred_changes_are_caught() {
    let world = world();
    let mut random = Random(1);
    let mut caught = 0;
    for round in 0..200 {
        let original = &world.answers[round % world.answers.len()];
        let mut all = Vec::new();
        places(original, "", &mut all);
        let mut changed = original.clone();
        let place = &all[random.below(all.len())];
        let how = tamper(changed.pointer_mut(place).unwrap(), &mut random);
        assert_ne!(changed, *original);
        match objection(&changed, &world.store) {
            Some(_) => caught += 1,
            None => println!("not caught: {place}, {how}"),
        }
    }
    assert_eq!(caught, 200);
}

/// The parts of a file that the graph can tell, digest or not.
fn is_told_by_the_graph(place: &str) -> bool {
    let last = place.rsplit('/').next().unwrap_or_default();
    let part = |names: &[&str]| names.iter().any(|name| place.starts_with(name));
    match last {
        // how sure, how relevant, how fast: nobody can know
        "confidence" | "score" | "mention" => false,
        // another limit may give the same things
        "bound" | "many" => false,
        _ if place.ends_with("/ids") || place == "/answers" => false,
        _ => part(&[
            "/answers/",
            "/evidence/",
            "/links/",
            "/logical_form",
            "/reading",
            "/sparql",
            "/status",
        ]),
    }
}

#[test]
fn a_fresh_digest_does_not_hide_what_the_graph_tells() {
    let world = world();
    let mut random = Random(2);
    let mut missed = Vec::new();
    let mut tried = 0;
    for original in &world.answers {
        let mut all = Vec::new();
        places(original, "", &mut all);
        // leaves; of the arrays, removing and swapping leaves other proofs whole
        all.retain(|p| is_told_by_the_graph(p) && !original.pointer(p).unwrap().is_array());
        for _ in 0..50 {
            let place = &all[random.below(all.len())];
            // the order and choice of proofs are the writer's: see the digest
            if place.contains("/rationale/") {
                continue;
            }
            let mut changed = original.clone();
            let how = tamper(changed.pointer_mut(place).unwrap(), &mut random);
            tried += 1;
            if objection(&resealed(changed, &world.store), &world.store).is_none() {
                missed.push(format!("{place}: {how}"));
            }
        }
    }
    assert!(tried > 200, "{tried}");
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The forgeries that were found, without any digest.
#[test]
fn known_forgeries_are_caught_without_a_digest() {
    let world = world();
    let forged = |asked: usize, forge: &dyn Fn(&mut Value)| {
        let mut file = world.answers[asked].clone();
        file.as_object_mut().unwrap().remove("seal");
        assert_eq!(objection(&file, &world.store), None);
        forge(&mut file);
        objection(&file, &world.store).unwrap_or_else(|| panic!("holds: {file}"))
    };
    let reason = forged(0, &|file| {
        file["answers"][0]["name"] = "Atlantis".into();
        file["answers"][0]["computed"] = true.into();
    });
    assert_eq!(
        reason,
        "it is marked as computed, and the logical form gives entities"
    );
    let reason = forged(0, &|file| {
        for part in ["logical_form", "reading", "sparql"] {
            file.as_object_mut().unwrap().remove(part);
        }
        file["answers"][0]["name"] = "Atlantis".into();
        file["answers"][0]["computed"] = true.into();
    });
    assert_eq!(
        reason,
        "it is marked as computed, and the file does not say how"
    );
    let as_count = |file: &mut Value, number: &str| {
        file["answers"][0]["name"] = number.into();
        let id = format!("\"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer>");
        file["answers"][0]["id"] = id.into();
    };
    let reason = forged(2, &|file| as_count(file, "99"));
    assert_eq!(reason, "the logical form gives 54");
    let reason = forged(5, &|file| file["answers"][0]["name"] = "no".into());
    assert_eq!(reason, "the logical form gives yes");
    let reason = forged(2, &|file| {
        let fields = file.as_object_mut().unwrap();
        for field in ["logical_form", "sparql", "reading"] {
            fields.remove(field);
        }
    });
    assert_eq!(
        reason,
        "it is marked as computed, and the file does not say how"
    );
    // the shorter one of the two, with its own values as proof
    let reason = forged(4, &|file| {
        let links = file["links"].as_array().unwrap();
        let other = links
            .iter()
            .find(|l| l["name"] != file["answers"][0]["name"]);
        let (name, id) = (other.unwrap()["name"].clone(), other.unwrap()["id"].clone());
        file["answers"][0]["name"] = name;
        file["answers"][0]["id"] = id;
    });
    assert_eq!(reason, "the logical form does not give it");
    let reason = forged(6, &|file| file["sparql"] = "ASK {}".into());
    assert!(reason.starts_with("Sparql: "), "{reason}");
    let reason = forged(6, &|file| file["reading"] = "the best mountain".into());
    assert!(
        reason.starts_with("Reading: the logical form says"),
        "{reason}"
    );
    let reason = forged(6, &|file| file["logical_form"] = "(JOIN".into());
    assert!(
        reason.starts_with("the logical form cannot be run"),
        "{reason}"
    );
    let reason = forged(0, &|file| {
        file.as_object_mut().unwrap().remove("logical_form");
        file["sparql"] = "ASK {}".into();
    });
    assert!(reason.contains("no logical form"), "{reason}");
    let reason = forged(0, &|file| file["status"] = "abstained".into());
    assert!(reason.contains("abstained"), "{reason}");
}

#[test]
fn a_signature_tells_who_wrote_it() {
    let world = world();
    let [ours, theirs] =
        [(); 2].map(|()| SigningKey::from_pem(&SigningKey::generate().unwrap()).unwrap());
    let signed = |mut file: Value, key: &SigningKey| {
        file.as_object_mut().unwrap().remove("seal");
        let fresh = seal(&file, &world.store, Some(key));
        file["seal"] = serde_json::to_value(fresh).unwrap();
        file
    };
    let checked = |file: &Value, key: Option<&SigningKey>| {
        let saved = Saved::from_json(&file.to_string()).unwrap();
        let key = key.map(SigningKey::public);
        let verification = verify_saved(&saved, &world.store, key.as_ref()).unwrap();
        let check = verification
            .checks
            .iter()
            .find(|c| c.subject == Subject::Signature);
        let check = check.unwrap().clone();
        assert_eq!(verification.holds, check.holds(), "{verification:?}");
        (check.outcome, check.detail)
    };
    let file = signed(world.answers[0].clone(), &ours);
    let (outcome, detail) = checked(&file, Some(&ours));
    assert_eq!(outcome, CheckOutcome::Passed);
    assert_eq!(
        detail,
        format!("signed by {}, the given key", ours.public())
    );
    // without a key to compare with, it is only told
    assert_eq!(checked(&file, None).0, CheckOutcome::Noted);
    assert_eq!(checked(&file, Some(&theirs)).0, CheckOutcome::Failed);
    // forged, and signed anew by somebody else
    let mut forged = file.clone();
    forged["question"] = "What is the capital of Atlantis?".into();
    assert_eq!(
        checked(&signed(forged.clone(), &theirs), Some(&ours)).0,
        CheckOutcome::Failed
    );
    // forged, with a fresh digest below the old signature
    let mut below = resealed(forged, &world.store);
    below["seal"]["signed_by"] = file["seal"]["signed_by"].clone();
    below["seal"]["signature"] = file["seal"]["signature"].clone();
    assert_eq!(checked_any(&below, &world.store), CheckOutcome::Failed);
    // not signed at all
    assert_eq!(
        checked(&world.answers[0], Some(&ours)).0,
        CheckOutcome::Failed
    );
    let (outcome, detail) = checked(&world.answers[0], None);
    assert_eq!(outcome, CheckOutcome::Noted);
    assert!(detail.starts_with("digest only"), "{detail}");
}

fn checked_any(file: &Value, store: &Store) -> CheckOutcome {
    let saved = Saved::from_json(&file.to_string()).unwrap();
    let verification = verify_saved(&saved, store, None).unwrap();
    assert!(!verification.holds);
    let check = verification
        .checks
        .iter()
        .find(|c| c.subject == Subject::Signature);
    check.unwrap().outcome
}
