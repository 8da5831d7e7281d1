//! An index from building to answers: what is encoded, what is refused, what is survived.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use wherefore_graph::{EntityId, Graph, Input, LoadOptions, NameMatch, RelationId, load, toy};
use wherefore_model::Embeddings;
use wherefore_model::encode::HashingEncoder;

use super::*;

/// Counts what it encodes, and fails after so many texts.
struct Counting {
    inner: HashingEncoder,
    texts: AtomicUsize,
    most: usize,
}

impl Counting {
    fn new(dim: usize) -> Self {
        Self {
            inner: HashingEncoder::new(dim),
            texts: AtomicUsize::new(0),
            most: usize::MAX,
        }
    }

    fn count(&self) -> usize {
        self.texts.swap(0, Ordering::Relaxed)
    }
}

impl Encoder for Counting {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn encode(&self, texts: &[&str]) -> wherefore_model::Result<Embeddings> {
        let before = self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        if before + texts.len() > self.most {
            return Err(wherefore_model::Error::UnknownModel {
                name: "gone".into(),
            });
        }
        self.inner.encode(texts)
    }
}

fn loaded(folder: &Path, name: &str, text: &str) -> Store {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    let options = LoadOptions {
        replace: true,
        ..LoadOptions::default()
    };
    let graph = folder.join("graph");
    load(&[Input::File(file)], &graph, &options, &|_| {}).unwrap();
    Store::open(&graph).unwrap()
}

fn toy_store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let lines = toy::FACTS.map(|(h, r, t)| format!("{h}\t{r}\t{t}\n"));
    let store = loaded(folder.path(), "toy.tsv", &lines.concat());
    (folder, store)
}

fn everything() -> IndexOptions {
    IndexOptions {
        triples: true,
        ..IndexOptions::default()
    }
}

fn named(store: &Store, name: &str) -> EntityId {
    store.entities_named(name, NameMatch::Exact).unwrap()[0]
}

fn query(encoder: &dyn Encoder, text: &str) -> Vec<f32> {
    encoder.encode(&[text]).unwrap().into_values()
}

#[test]
fn a_label_is_nearest_to_itself() {
    let (_folder, store) = toy_store();
    let encoder = HashingEncoder::default();
    let report = build(&store, &encoder, &everything(), &|_| {}).unwrap();
    let parts: Vec<_> = report.parts.iter().map(|p| (p.part, p.vectors)).collect();
    // all labels differ, and only m.0seat has no name
    let bound = store.counts();
    assert_eq!(
        parts,
        [
            (Part::Relations, bound.relations),
            (Part::Entities, bound.entities - 1),
            (Part::Triples, 20),
            (Part::Text, bound.entities - 1)
        ]
    );
    let entities = Vectors::open(&store, &encoder, Part::Entities).unwrap();
    let park = named(&store, "Oracle Park");
    let found = entities
        .nearest(&query(&encoder, "Oracle Park"), 3)
        .unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(found[0].0, park.0);
    assert!((found[0].1 - 1.0).abs() < 2e-3, "{found:?}"); // f16 keeps three digits
    assert!(found[1].1 < 0.9);

    let mut row = vec![1.0; 256];
    entities.read(named(&store, "m.0seat").0, &mut row).unwrap();
    assert_eq!(row, [0.0; 256]);
    let all = entities
        .nearest(&query(&encoder, "Oracle Park"), 1000)
        .unwrap();
    assert!(all.iter().all(|(id, _)| *id != named(&store, "m.0seat").0));

    let relations = Vectors::open(&store, &encoder, Part::Relations).unwrap();
    let found = relations.nearest(&query(&encoder, "plays in"), 1).unwrap();
    let plays = store.relation_named("plays_in").unwrap().unwrap();
    assert_eq!(found[0].0, plays.0);

    let triples = Vectors::open(&store, &encoder, Part::Triples).unwrap();
    let text = "Bruce Bochy born in Landes de Bussac";
    let (id, score) = triples.nearest(&query(&encoder, text), 1).unwrap()[0];
    let triple = store.triples().nth(id as usize).unwrap().unwrap();
    assert_eq!(store.entity_label(triple.head).unwrap(), "Bruce Bochy");
    assert!(score > 0.99);
}

#[test]
fn equal_labels_share_a_vector_and_names_are_no_entities() {
    let folder = tempfile::tempdir().unwrap();
    let store = loaded(
        folder.path(),
        "g.nt",
        "<http://x/a> <http://www.w3.org/2000/01/rdf-schema#label> \"Paris\" .\n\
         <http://x/b> <http://www.w3.org/2000/01/rdf-schema#label> \"Paris\" .\n\
         <http://x/a> <http://x/twinOf> <http://x/b> .\n\
         <http://x/a> <http://x/near> <http://x/c> .\n",
    );
    let encoder = HashingEncoder::default();
    build(&store, &encoder, &IndexOptions::default(), &|_| {}).unwrap();
    let entities = Vectors::open(&store, &encoder, Part::Entities).unwrap();
    assert_eq!(entities.distinct(), 2, "Paris and c");
    let found = entities.nearest(&query(&encoder, "Paris"), 2).unwrap();
    let mut ids: Vec<u32> = found.iter().map(|f| f.0).collect();
    ids.sort_unstable();
    assert_eq!(
        ids,
        [named(&store, "http://x/a").0, named(&store, "http://x/b").0]
    );
    assert_eq!(
        entities
            .nearest(&query(&encoder, "Paris"), 1)
            .unwrap()
            .len(),
        1
    );
    let text = TextIndex::open(&store).unwrap();
    assert_eq!(text.len(), 3);
    assert_eq!(text.labels("paris", 5).unwrap().len(), 2);
}

#[test]
fn only_what_is_new_is_encoded() {
    let folder = tempfile::tempdir().unwrap();
    let table = |names: &[&str]| -> String {
        names
            .iter()
            .map(|n| format!("{n}\tknows\tAnna\n"))
            .collect()
    };
    let store = loaded(folder.path(), "a.tsv", &table(&["Ben", "Cleo", "Dora"]));
    let encoder = Counting::new(256);
    build(&store, &encoder, &IndexOptions::default(), &|_| {}).unwrap();
    encoder.count();
    let again = build(&store, &encoder, &IndexOptions::default(), &|_| {}).unwrap();
    assert!(again.parts.iter().all(|part| !part.built));
    encoder.count();

    // ids shift: Berta comes before Cleo
    let store = loaded(folder.path(), "b.tsv", &table(&["Ben", "Berta", "Cleo"]));
    let error = Vectors::open(&store, &encoder, Part::Entities).unwrap_err();
    assert_eq!(error.code(), "index-of-another-graph");
    assert!(error.to_string().contains(store.checksum()));
    let hint = error.hint().unwrap();
    let mend = format!(
        "`wherefore index {} --encoder hashing`",
        store.path().display()
    );
    assert!(hint.contains(&mend), "{hint}");
    assert_eq!(
        TextIndex::open(&store).unwrap_err().code(),
        "index-of-another-graph"
    );

    encoder.count();
    let report = build(&store, &encoder, &IndexOptions::default(), &|_| {}).unwrap();
    let entities = &report.parts[1];
    assert_eq!((entities.encoded, entities.kept), (1, 3));
    assert_eq!((report.parts[0].encoded, report.parts[0].kept), (0, 1));
    let probes = 1; // of the whole build
    assert_eq!(encoder.count(), 1 + probes);
    let vectors = Vectors::open(&store, &encoder, Part::Entities).unwrap();
    for name in ["Anna", "Ben", "Berta", "Cleo"] {
        let found = vectors.nearest(&query(&encoder, name), 1).unwrap();
        assert_eq!(found[0].0, named(&store, name).0, "{name}");
    }
    let kept = std::fs::read_dir(store.path().join("index")).unwrap();
    // the lock, three manifests and their folders: nothing old is left
    assert_eq!(kept.count(), 7);
}

#[test]
fn vectors_of_another_encoder_are_refused() {
    let (_folder, store) = toy_store();
    let encoder = HashingEncoder::default();
    let missing = Vectors::open(&store, &encoder, Part::Triples).unwrap_err();
    assert_eq!(missing.code(), "no-index");
    assert!(missing.hint().unwrap().contains("--triples`"));
    build(&store, &encoder, &IndexOptions::default(), &|_| {}).unwrap();
    let other = HashingEncoder::new(64);
    let error = Vectors::open(&store, &other, Part::Entities).unwrap_err();
    assert_eq!(error.code(), "index-of-another-encoder");
    let text = error.to_string();
    assert!(text.contains("`hashing` of 256 numbers"), "{text}");
    assert!(text.contains("`hashing-64` of 64 numbers"), "{text}");
    assert!(error.hint().unwrap().contains("--encoder hashing-64`"));
    // built for the other one, the first is refused
    build(&store, &other, &IndexOptions::default(), &|_| {}).unwrap();
    assert!(Vectors::open(&store, &other, Part::Entities).is_ok());
    assert!(Vectors::open(&store, &encoder, Part::Entities).is_err());
}

/// An encoder that changed and kept its name.
struct Renamed(HashingEncoder);

impl Encoder for Renamed {
    fn name(&self) -> &str {
        "hashing"
    }

    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn encode(&self, texts: &[&str]) -> wherefore_model::Result<Embeddings> {
        let rows = self.0.encode(texts)?;
        let dim = rows.dim();
        let values: Vec<f32> = rows
            .rows()
            .flat_map(|row| row.iter().rev().copied())
            .collect();
        Ok(Embeddings::new(values, dim))
    }
}

#[test]
fn an_encoder_that_changed_under_its_name_is_noticed() {
    let (_folder, store) = toy_store();
    let (encoder, changed) = (HashingEncoder::new(16), Renamed(HashingEncoder::new(16)));
    let named = Renamed(HashingEncoder::new(16));
    build(&store, &named, &IndexOptions::default(), &|_| {}).unwrap();
    assert!(Vectors::open(&store, &changed, Part::Entities).is_ok());
    struct Plain(HashingEncoder);
    impl Encoder for Plain {
        fn name(&self) -> &str {
            "hashing"
        }
        fn dim(&self) -> usize {
            self.0.dim()
        }
        fn encode(&self, texts: &[&str]) -> wherefore_model::Result<Embeddings> {
            self.0.encode(texts)
        }
    }
    let error = Vectors::open(&store, &Plain(encoder), Part::Entities).unwrap_err();
    assert!(error.to_string().contains("in another version"), "{error}");
}

fn many_names(folder: &Path, count: usize) -> Store {
    let lines: String = (0..count)
        .map(|i| format!("thing {i} of {}\tis_like\tthing {} of 7\n", i % 7, i / 2))
        .collect();
    loaded(folder, "many.tsv", &lines)
}

#[test]
fn a_build_that_failed_goes_on_and_gives_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = many_names(folder.path(), 9_000);
    let mut encoder = Counting::new(32);
    let options = IndexOptions {
        text: false,
        scanned: 0,
        ..IndexOptions::default()
    };
    encoder.most = 5_000; // two batches of 2,048 and a few more
    let error = build(&store, &encoder, &options, &|_| {}).unwrap_err();
    assert_eq!(error.code(), "unknown-model");
    assert_eq!(
        Vectors::open(&store, &encoder.inner, Part::Entities)
            .unwrap_err()
            .code(),
        "no-index"
    );
    encoder.most = usize::MAX;
    // a half-written batch behind the record is redone
    let part = store.path().join("index/entities.part");
    let mut torn = std::fs::read(part.join("vectors")).unwrap();
    torn.extend([0x11; 77]);
    std::fs::write(part.join("vectors"), torn).unwrap();
    let report = build(&store, &encoder, &options, &|_| {}).unwrap();
    let entities = &report.parts[1];
    assert_eq!(entities.resumed, 4_096);
    assert_eq!(entities.resumed + entities.encoded, entities.vectors);

    let other = tempfile::tempdir().unwrap();
    let fresh = many_names(other.path(), 9_000);
    build(&fresh, &encoder, &options, &|_| {}).unwrap();
    for name in [
        "vectors",
        "hashes",
        "rows",
        "starts",
        "ids",
        "links",
        "upper.links",
    ] {
        let file = PathBuf::from("index/entities-1").join(name);
        let read = |store: &Store| std::fs::read(store.path().join(&file)).unwrap();
        assert!(read(&store) == read(&fresh), "{name}");
    }
}

#[test]
fn linked_and_scanned_neighbours_agree() {
    let folder = tempfile::tempdir().unwrap();
    let store = many_names(folder.path(), 3_000);
    let encoder = HashingEncoder::new(64);
    let options = IndexOptions {
        text: false,
        scanned: 0,
        ..IndexOptions::default()
    };
    build(&store, &encoder, &options, &|_| {}).unwrap();
    let vectors = Vectors::open(&store, &encoder, Part::Entities).unwrap();
    assert!(vectors.is_linked());
    let mut hits = 0;
    for i in 0..100 {
        let query = query(&encoder, &format!("thing {} of 7", i * 13));
        let exact = vectors.nearest_exact(&query, 10).unwrap();
        let linked = vectors.nearest(&query, 10).unwrap();
        assert_eq!((exact.len(), linked.len()), (10, 10));
        // many are equally near: scores are compared, not ids
        hits += linked.iter().filter(|l| l.1 >= exact[9].1 - 1e-6).count();
    }
    assert!(hits >= 950, "{hits}");
    let wide = vectors.nearest(&query(&encoder, "thing"), 2_000).unwrap();
    assert_eq!(wide.len(), 2_000);
    let short = vectors.nearest(&[1.0, 2.0], 3).unwrap_err();
    assert_eq!(short.code(), "query-dimension");
    assert!(
        vectors
            .nearest(&query(&encoder, "thing"), 0)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn damaged_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let store = many_names(folder.path(), 300);
    let encoder = HashingEncoder::new(16);
    let options = IndexOptions {
        scanned: 0,
        ..everything()
    };
    build(&store, &encoder, &options, &|_| {}).unwrap();
    let index = store.path().join("index");
    let data = index.join("entities-1");
    let use_it = || -> Result<()> {
        let vectors = Vectors::open(&store, &encoder, Part::Entities)?;
        let query = query(&encoder, "thing 7 of 7");
        vectors.nearest(&query, 5)?;
        vectors.nearest_exact(&query, 5)?;
        let mut row = [0.0; 16];
        (0..vectors.len() as u32).try_for_each(|id| vectors.read(id, &mut row))
    };
    use_it().unwrap();
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == "hashes" {
            continue; // only read when an index is built again
        }
        let good = std::fs::read(&path).unwrap();
        for bad in [&good[..good.len() - 1], &good[..good.len() / 2], &[]] {
            std::fs::write(&path, bad).unwrap();
            let error = use_it().expect_err(name);
            assert_eq!(error.code(), "damaged-index", "{name}: {error}");
            assert!(error.hint().unwrap().contains("--encoder hashing-16"));
        }
        // of the right length, but nonsense: an error or some answer
        std::fs::write(&path, vec![0xfe; good.len()]).unwrap();
        if let Err(error) = use_it() {
            assert_eq!(error.code(), "damaged-index", "{name}: {error}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(use_it().unwrap_err().code(), "damaged-index", "{name}");
        std::fs::write(&path, good).unwrap();
    }
    for bad in ["", "{", "{}", "[1]", "{\"format\": 9}"] {
        for part in Part::ALL {
            std::fs::write(index.join(format!("{part}.json")), bad).unwrap();
        }
        assert_eq!(use_it().unwrap_err().code(), "damaged-index", "{bad}");
        assert_eq!(TextIndex::open(&store).unwrap_err().code(), "damaged-index");
        assert!(list(&store).is_err());
    }
    // and it is mended by the command in the hint
    build(&store, &encoder, &options, &|_| {}).unwrap();
    use_it().unwrap();
    assert_eq!(list(&store).unwrap().len(), 4);
}

#[test]
fn damaged_full_text_is_an_error() {
    let (_folder, store) = toy_store();
    build(
        &store,
        &HashingEncoder::new(8),
        &IndexOptions::default(),
        &|_| {},
    )
    .unwrap();
    let data = store.path().join("index/text-1");
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        let good = std::fs::read(&path).unwrap();
        std::fs::write(&path, &good[..good.len() / 2]).unwrap();
        let error = TextIndex::open(&store).unwrap_err();
        assert_eq!(error.code(), "damaged-index", "{}", path.display());
        std::fs::write(&path, good).unwrap();
    }
    assert!(TextIndex::open(&store).is_ok());
}

/// What an index answers, or what stands against each answer.
fn answers(store: &Store, encoder: &dyn Encoder) -> Vec<Result<String>> {
    let mut found = Vec::new();
    for part in [Part::Entities, Part::Relations, Part::Triples] {
        let query = query(encoder, "who plays in Oracle Park");
        match Vectors::open(store, encoder, part) {
            Ok(vectors) => {
                let mut row = vec![0.0; vectors.dim()];
                found.push(vectors.nearest(&query, 2).map(|n| format!("{n:?}")));
                found.push(vectors.read(1, &mut row).map(|()| format!("{row:?}")));
                let ids = [0, 2, 1];
                let near = vectors.similarities(&query, &ids);
                found.push(near.map(|near| format!("{near:?}")));
            }
            Err(error) => {
                let reason = error.to_string();
                let damaged = || Error::DamagedIndex {
                    path: "".into(),
                    reason: reason.clone(),
                    mend: String::new(),
                };
                assert_eq!(error.code(), "damaged-index", "{reason}");
                found.extend([Err(damaged()), Err(damaged()), Err(damaged())]);
            }
        }
    }
    let text = TextIndex::open(store);
    for asked in ["oracle park", "mascot royals"] {
        let documents = match &text {
            Ok(text) => text.documents(asked, 3).map(|found| format!("{found:?}")),
            Err(error) => Err(Error::DamagedIndex {
                path: "".into(),
                reason: error.to_string(),
                mend: String::new(),
            }),
        };
        found.push(documents);
    }
    found
}

#[test]
fn no_answer_comes_from_a_damaged_block_of_an_index() {
    let (_folder, store) = toy_store();
    let encoder = HashingEncoder::new(16);
    let linked = IndexOptions {
        scanned: 0,
        ..everything()
    };
    build(&store, &encoder, &linked, &|_| {}).unwrap();
    assert!(check(&store).unwrap().is_empty());
    let right: Vec<String> = (answers(&store, &encoder).into_iter())
        .map(Result::unwrap)
        .collect();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(store.path().join("index")).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path())),
            false => files.push(path),
        }
    }
    files.retain(|file| file.metadata().unwrap().len() > 0);
    files.sort();
    assert!(files.len() > 25, "{files:?}");
    let (mut told, mut untouched) = (0, 0);
    let mut state = 17u64;
    for flip in 0..200 {
        state = (state.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(5);
        let file = &files[flip % files.len()];
        let whole = std::fs::read(file).unwrap();
        let mut damaged = whole.clone();
        let place = (state >> 33) as usize % whole.len();
        damaged[place] ^= 1 << (state >> 30 & 7);
        std::fs::write(file, &damaged).unwrap();
        let given = answers(&store, &encoder);
        let mut failed = 0;
        for (given, right) in given.iter().zip(&right) {
            match given {
                Ok(given) => assert_eq!(given, right, "byte {place} of {file:?}"),
                Err(_) => failed += 1,
            }
        }
        // what was not read is found by whoever reads all
        let found = check(&store).is_err();
        let is_manifest = file.extension().is_some_and(|e| e == "json")
            && file.parent().unwrap().ends_with("index");
        assert!(found || is_manifest, "byte {place} of {file:?}");
        told += usize::from(failed > 0);
        untouched += usize::from(failed == 0);
        std::fs::write(file, &whole).unwrap();
    }
    assert!(told > 100 && told + untouched == 200, "{told} {untouched}");
    // a damaged part is built anew by the command of the hint
    let vectors = store.path().join("index/entities-1/vectors");
    let mut damaged = std::fs::read(&vectors).unwrap();
    damaged[9] ^= 64;
    std::fs::write(&vectors, damaged).unwrap();
    let report = build(&store, &encoder, &linked, &|_| {}).unwrap();
    let built = report.parts.iter().filter(|part| part.built);
    assert_eq!(
        built.map(|part| part.part).collect::<Vec<_>>(),
        [Part::Entities]
    );
    let again: Vec<String> = (answers(&store, &encoder).into_iter())
        .map(Result::unwrap)
        .collect();
    assert_eq!(again, right);
}

#[test]
#[cfg(unix)]
fn an_index_that_is_cut_below_its_readers_is_an_error() {
    let (_folder, store) = toy_store();
    let encoder = HashingEncoder::new(16);
    build(&store, &encoder, &everything(), &|_| {}).unwrap();
    let vectors = Vectors::open(&store, &encoder, Part::Entities).unwrap();
    let text = TextIndex::open(&store).unwrap();
    text.labels("oracle", 3).unwrap();
    let query = query(&encoder, "Oracle Park");
    vectors.nearest(&query, 3).unwrap();
    let index = store.path().join("index");
    let mut files: Vec<PathBuf> = std::fs::read_dir(index.join("text-1"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.push(index.join("entities-1/vectors"));
    for file in files {
        let file = File::options().write(true).open(file).unwrap();
        file.set_len(1).unwrap();
    }
    let error = vectors.nearest(&query, 3).unwrap_err();
    assert_eq!(error.code(), "damaged-index", "{error}");
    let error = text.labels("oracle", 3).unwrap_err();
    assert_eq!(error.code(), "damaged-index", "{error}");
}

#[test]
fn words_find_labels_and_neighbourhoods() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = toy::FACTS
        .map(|(h, r, t)| format!("{h}\t{r}\t{t}\n"))
        .concat();
    lines += "Café Volpini\tlocated_in\tParis\n";
    let store = loaded(folder.path(), "toy.tsv", &lines);
    build(
        &store,
        &HashingEncoder::new(8),
        &IndexOptions::default(),
        &|_| {},
    )
    .unwrap();
    let text = TextIndex::open(&store).unwrap();
    let first = |found: Vec<(EntityId, f32)>| found[0].0;
    assert_eq!(
        first(text.labels("cafe VOLPINI", 3).unwrap()),
        named(&store, "Café Volpini")
    );
    assert_eq!(
        first(text.labels("oracle park?", 3).unwrap()),
        named(&store, "Oracle Park")
    );
    // the label of the mascot says nothing of the club, its document does
    let mascot = named(&store, "Sluggerrr");
    let found = text
        .documents("mascot of the kansas city royals", 3)
        .unwrap();
    assert!(found.iter().any(|f| f.0 == mascot), "{found:?}");
    assert!(text.labels("mascot", 3).unwrap().is_empty());
    assert!(found.is_sorted_by(|a, b| a.1 >= b.1));
}

#[test]
fn any_text_is_a_query() {
    let (_folder, store) = toy_store();
    build(
        &store,
        &HashingEncoder::new(8),
        &IndexOptions::default(),
        &|_| {},
    )
    .unwrap();
    let text = TextIndex::open(&store).unwrap();
    for query in [
        "",
        " ",
        "\0\u{7}",
        "AND OR NOT (\"",
        "label:giants^2 ~ * ? [a TO b] {x} \\",
        "🎉",
        "شيكاغو \u{202e}עברית",
        &"giants ".repeat(20_000),
        &"x".repeat(100_000),
    ] {
        text.labels(query, 10).unwrap();
        text.documents(query, usize::MAX).unwrap();
    }
    assert!(text.labels("giants", 0).unwrap().is_empty());
    let giants = named(&store, "San Francisco Giants");
    let found = text.labels(&"giants ".repeat(20_000), 10).unwrap();
    assert_eq!(found[0].0, giants);
    let found = text.labels("label:giants^2", 10).unwrap();
    assert_eq!(found[0].0, giants);
}

#[test]
fn one_builder_at_a_time() {
    let (_folder, store) = toy_store();
    let encoder = HashingEncoder::new(8);
    build(&store, &encoder, &IndexOptions::default(), &|_| {}).unwrap();
    let folder = store.path().join("index");
    let _held = lock(store.path(), &folder).unwrap();
    let error = build(&store, &encoder, &IndexOptions::default(), &|_| {}).unwrap_err();
    assert_eq!(error.code(), "index-locked");
}

#[test]
fn a_relation_is_written_as_words() {
    let folder = tempfile::tempdir().unwrap();
    let store = loaded(
        folder.path(),
        "g.tsv",
        "Ann\tpeople.person.place_of_birth\tm.0abc\n",
    );
    let text = labels::relation(&store, RelationId(0)).unwrap();
    assert_eq!(text, "people person place of birth");
    let mut triples = labels::Labels::new(&store, Part::Triples);
    assert_eq!(
        triples.texts(&[0]).unwrap(),
        [Some("Ann people person place of birth".to_owned())]
    );
}
