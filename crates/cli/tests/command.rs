//! The command as it is typed: what it prints, where, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use wherefore_graph::{Input, LoadOptions, load, toy};

const BORN: &str = "Where was the coach of the San Francisco Giants born?";
const PLAY: &str = "Which stadium do the San Francisco Giants play in?";
const WON: &str = "Which World Series did the San Francisco Giants win?";

fn wherefore() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wherefore"));
    command
        .env_remove("NO_COLOR")
        .env_remove("TERM")
        .env("COLUMNS", "100")
        .stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    wherefore().args(args).output().unwrap()
}

fn fed(args: &[&str], input: &[u8]) -> Output {
    let mut child = wherefore()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // a reader that has seen enough closes its end
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Exit status, standard output and standard error in one text, times left out.
fn shown(output: &Output) -> String {
    format!(
        "status: {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap(),
        String::from_utf8(output.stdout.clone()).unwrap(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

macro_rules! assert_shown {
    ($name:expr, $output:expr) => {
        insta::with_settings!({
            filters => vec![
                (r"\d+\.\d+ (ms|s)\b", "[time]"),
                // segments of the full-text index depend on the number of cores
                (r"documents, [\d.]+ \w+", "documents, [size]"),
                (r#""(link|retrieve|select|organize|reason|verify|total)": \d[\d.e-]*"#, r#""$1": [ms]"#),
                // times are part of what is sealed
                (r#""digest": "sha256:[0-9a-f]{64}""#, r#""digest": "[digest]""#),
            ],
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, shown(&$output));
        });
    };
}

#[test]
fn help_texts() {
    assert_shown!("help", run(&["--help"]));
    assert_shown!("help_ask", run(&["ask", "--help"]));
    assert_shown!("help_verify", run(&["verify", "--help"]));
    assert_shown!("help_index", run(&["index", "--help"]));
    assert_shown!("help_load", run(&["load", "--help"]));
    assert_shown!("help_sparql", run(&["sparql", "--help"]));
}

#[test]
fn answers_for_people() {
    assert_shown!("ask_one_hop", run(&["ask", "@toy", PLAY]));
    assert_shown!("ask_two_hops", run(&["ask", "@toy", BORN]));
    assert_shown!("ask_several", run(&["ask", "@toy", WON]));
    let unnamed = run(&["ask", "@toy", "What is the capacity of Oracle Park?"]);
    assert_shown!("ask_through_an_unnamed_node", unnamed);
}

#[test]
fn colour_is_used_when_asked_for() {
    let colored = run(&["ask", "@toy", PLAY, "--color", "always"]);
    assert!(String::from_utf8_lossy(&colored.stdout).contains("\x1b[1mOracle Park\x1b[0m"));
    for args in [
        &["ask", "@toy", PLAY][..],
        &["ask", "@toy", PLAY, "--color=never"],
    ] {
        assert!(!run(args).stdout.contains(&0x1b));
    }
}

#[test]
fn answers_as_json() {
    let output = run(&["ask", "@toy", BORN, "--json"]);
    assert_shown!("ask_json", output);
    let answer: wherefore::Answer = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer.answers[0].name, "Landes de Bussac");
}

#[test]
fn no_answer_is_status_one() {
    assert_shown!("ask_unlinked", run(&["ask", "@toy", "Who wrote Hamlet?"]));
    let quiet = run(&["--quiet", "ask", "@toy", "Who wrote Hamlet?"]);
    assert_eq!(quiet.status.code(), Some(1));
    assert!(quiet.stderr.is_empty());
    let unrelated = run(&["ask", "@toy", "Do the San Francisco Giants knit?", "--json"]);
    assert_shown!("ask_abstained_json", unrelated);
}

#[test]
fn a_question_comes_from_standard_input() {
    let output = fed(&["ask", "@toy", "-"], format!("{PLAY}\n").as_bytes());
    assert_eq!(output.stdout[..11], *b"Oracle Park");
    assert_shown!(
        "ask_stdin_not_text",
        fed(&["ask", "@toy", "-"], b"Where \xff?")
    );
}

#[test]
fn topics_and_top_k_and_config() {
    let topic = run(&[
        "ask",
        "@toy",
        "Where do they play?",
        "--topic",
        "san francisco giants",
    ]);
    assert_eq!(topic.stdout[..11], *b"Oracle Park");
    let one = run(&["ask", "@toy", WON, "--top-k", "1", "--json"]);
    let answer: wherefore::Answer = serde_json::from_slice(&one.stdout).unwrap();
    assert_eq!(answer.evidence.len(), 1);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    std::fs::write(&file, "[select]\nkind = \"top-k\"\nk = 2\n").unwrap();
    let two = run(&[
        "ask",
        "@toy",
        WON,
        "--json",
        "--config",
        file.to_str().unwrap(),
    ]);
    let answer: wherefore::Answer = serde_json::from_slice(&two.stdout).unwrap();
    assert_eq!(answer.evidence.len(), 2);
}

#[test]
fn top_k_gives_as_many_triples_as_were_asked_for_or_says_that_there_are_fewer() {
    let folder = tempfile::tempdir().unwrap();
    let (file, graph) = (folder.path().join("hub.txt"), folder.path().join("hub"));
    let lines: Vec<String> = (0..150).map(|i| format!("Hub|supplies|Shop {i}")).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let (file, graph) = (file.to_str().unwrap(), graph.to_str().unwrap());
    let loaded = run(&["load", file, "--format", "pipe", "--out", graph]);
    assert!(loaded.status.success());
    let evidence = |top_k: &str| {
        let asked = run(&[
            "ask",
            graph,
            "What does Hub supply?",
            "--method",
            "similarity",
            "--top-k",
            top_k,
            "--json",
        ]);
        let answer: wherefore::Answer = serde_json::from_slice(&asked.stdout).unwrap();
        let short = answer
            .notes
            .into_iter()
            .find(|n| n.contains("were asked for"));
        (answer.evidence.len(), short)
    };
    assert_eq!(evidence("140"), (140, None));
    let (all, note) = evidence("100000");
    assert_eq!(all, 150);
    assert_eq!(
        note.unwrap(),
        "100000 triples were asked for, and the method found 150"
    );
}

#[test]
fn mistakes_have_three_lines_and_status_two() {
    let near = ["ask", "@toy", "Where?", "--topic", "San Fransisco Giants"];
    assert_shown!("error_unknown_topic", run(&near));
    assert_shown!(
        "error_unknown_topic_json",
        run(&[&near[..], &["--json"]].concat())
    );
    assert_shown!("error_empty_question", run(&["ask", "@toy", " "]));
    assert_shown!(
        "error_no_such_folder",
        run(&["ask", "no-such-folder", "Where?"])
    );
    assert_shown!("error_no_such_sample", run(&["ask", "@tory", "Where?"]));
    assert_shown!("error_missing_argument", run(&["ask", "@toy"]));
    assert_shown!(
        "error_unknown_option",
        run(&["ask", "@toy", "Where?", "--tpic", "x"])
    );
    assert_shown!(
        "error_bad_value_json",
        run(&["ask", "@toy", "Where?", "--top-k", "0", "--json"])
    );
    assert_shown!("error_unknown_command", run(&["aks", "@toy"]));
    assert_shown!(
        "error_no_config",
        run(&["ask", "@toy", "Where?", "--config", "none.toml"])
    );
}

#[test]
fn a_bad_config_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[select]\nkind = \"top-k\"\nkay = 2\n").unwrap();
    let output = wherefore()
        .current_dir(folder.path())
        .args(["ask", "@toy", "Where?", "--config", "bad.toml"])
        .output()
        .unwrap();
    assert_shown!("error_bad_config", output);
}

#[test]
fn a_question_of_any_length_or_letters_is_survived() {
    let long = PLAY.repeat(2000);
    assert_shown!("error_long_question", run(&["ask", "@toy", &long]));
    let longer = fed(&["ask", "@toy", "-"], &vec![b'a'; 3 << 20]);
    assert_eq!(longer.status.code(), Some(2));

    let strange = "🎉\u{7}Which\x1b[2J stadium\u{202e} do the San\tFrancisco\nGiants play in? \u{1F468}\u{200D}";
    assert_shown!("ask_control_characters", run(&["ask", "@toy", strange]));
    let topic = run(&["ask", "@toy", "Where?", "--topic", "\x1b[2JX"]);
    assert!(!topic.stderr.contains(&0x1b));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for args in [&["ask", "@toy", "-"][..], &["ask", "@toy", "-", "--json"]] {
        let mut child = wherefore()
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // gone before the question is even asked
        drop(child.stdout.take());
        child
            .stdin
            .take()
            .unwrap()
            .write_all(PLAY.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stderr.is_empty(), "{}", shown(&output));
    }
}

/// The toy graph without the facts of one relation, as a folder.
fn stored(folder: &Path, without: &str) -> String {
    let table = folder.join("toy.tsv");
    let lines: String = toy::FACTS
        .iter()
        .filter(|(_, relation, _)| *relation != without)
        .map(|(head, relation, tail)| format!("{head}\t{relation}\t{tail}\n"))
        .collect();
    std::fs::write(&table, lines).unwrap();
    let graph = folder.join("graph");
    load(
        &[Input::File(table)],
        &graph,
        &LoadOptions::default(),
        &|_| {},
    )
    .unwrap();
    graph.to_str().unwrap().to_owned()
}

#[test]
fn a_loaded_graph_answers_like_the_built_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let graph = stored(folder.path(), "");
    for question in [PLAY, BORN, WON, "What is the capacity of Oracle Park?"] {
        let names = |graph: &str| {
            let output = run(&["ask", graph, question, "--json"]);
            let answer: wherefore::Answer = serde_json::from_slice(&output.stdout).unwrap();
            let mut names: Vec<_> = answer.answers.into_iter().map(|a| a.name).collect();
            names.sort();
            names
        };
        assert!(!names("@toy").is_empty());
        assert_eq!(names(&graph), names("@toy"), "{question}");
    }
}

#[test]
fn saved_answers_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let graph = stored(folder.path(), "born_in");
    let answer = run(&["ask", "@toy", BORN, "--json"]).stdout;
    assert_shown!(
        "verify_holds",
        fed(&["verify", "-", "--graph", "@toy"], &answer)
    );
    assert_shown!(
        "verify_gone",
        fed(&["verify", "-", "--graph", &graph], &answer)
    );
    let json = fed(&["verify", "-", "--graph", &graph, "--json"], &answer);
    assert_shown!("verify_gone_json", json);
    let nothing = run(&["ask", "@toy", "Who wrote Hamlet?", "--json"]).stdout;
    assert_shown!(
        "verify_abstained",
        fed(&["verify", "-", "--graph", "@toy"], &nothing)
    );
    assert_shown!(
        "verify_no_answer",
        fed(&["verify", "-", "--graph", "@toy"], b"{}")
    );
    assert_shown!(
        "verify_no_file",
        run(&["verify", "none.json", "--graph", "@toy"])
    );
}

#[test]
fn indexes_are_built_shown_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path(), "born_in");
    let inside = |args: &[&str]| {
        let mut command = wherefore();
        command.current_dir(folder.path()).args(args);
        command.output().unwrap()
    };
    let index = ["index", "graph", "--encoder", "hashing"];
    assert_shown!("index_built", inside(&index));
    assert_shown!("index_up_to_date", inside(&index));
    assert_shown!("index_shown", inside(&["info", "graph"]));
    assert_shown!("index_of_no_graph", inside(&["index", "none"]));
    assert_shown!(
        "index_of_no_encoder",
        inside(&["index", "graph", "--encoder", "no-such-model"])
    );
    // the graph is loaded again with one fact more: what was encoded is kept
    let more = folder.path().join("more.tsv");
    std::fs::write(&more, "Bruce Bochy\tborn_in\tLandes de Bussac\n").unwrap();
    let files = ["load", "toy.tsv", "more.tsv", "--replace", "--out", "graph"];
    assert_eq!(inside(&files).status.code(), Some(0));
    let info = String::from_utf8(inside(&["info", "graph"]).stdout).unwrap();
    let mend = "of another graph, mended by `wherefore index graph --encoder hashing`";
    assert!(info.contains(mend), "{info}");
    let json = inside(&[&index[..], &["--json", "--no-text"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let numbers = |i: usize, name: &str| report["parts"][i][name].as_u64().unwrap();
    assert_eq!(report["parts"].as_array().unwrap().len(), 2);
    assert_eq!((numbers(0, "encoded"), numbers(1, "encoded")), (1, 0));
}

#[test]
fn a_password_in_an_address_is_not_told() {
    let address = "http://me:hunter2@127.0.0.1:9/sparql";
    let bare = "http://me:hunter2@127.0.0.1:9";
    for args in [
        &["ask", address, "who?"][..],
        &["ask", "HTTP://me:hunter2@127.0.0.1:9/", "who?"],
        &["ask", "@toy", "who?", "--llm", bare],
        &["link", address, "who?"],
        &["sparql", address, "ASK {}"],
        &["index", address, "--out", "no/such/folder"],
        &["info", address],
        &["compact", address],
        &["add", "--graph", address, "Cargo.toml"],
        &["logic", address, "(COUNT x)"],
        &["questions", address],
        &["serve", "--graph", bare],
    ] {
        for json in [&[][..], &["--json"]] {
            let output = wherefore().args(args).args(json).output().unwrap();
            let text = shown(&output);
            assert_eq!(output.status.code(), Some(2), "{args:?} {text}");
            assert!(!text.contains("hunter2"), "{args:?} {text}");
        }
    }
}

#[test]
fn times_that_are_none_are_the_users_mistake() {
    let form = "(JOIN (R won) [San Francisco Giants])";
    for time in ["nan", "inf", "-1", "soon"] {
        let time = format!("--timeout={time}");
        for args in [
            ["logic", "@toy", form, &time],
            ["sparql", "@toy", "ASK {}", &time],
        ] {
            let output = run(&args);
            assert_eq!(output.status.code(), Some(2), "{args:?} {}", shown(&output));
        }
    }
    assert_eq!(
        run(&["logic", "@toy", form, "--timeout", "1e300"])
            .status
            .code(),
        Some(0)
    );
    let required = "--require=lenient.hit@1=nan";
    let args = ["eval", "--questions", "q", "--out", "o", required];
    assert_eq!(run(&args).status.code(), Some(2));
}

#[test]
fn built_in_graphs_are_read_by_every_command_and_changed_by_none() {
    let cache = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = wherefore();
        command.env("XDG_CACHE_HOME", cache.path());
        command.args(args).output().unwrap()
    };
    let count = "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }";
    for args in [
        &["info", "@toy"][..],
        &["info", "@toy", "--check"],
        &["info", "@world"],
        &["sparql", "@toy", count],
        &["sparql", "@world", "ASK { ?s ?p ?o }"],
        &["index", "@world", "--encoder", "hashing", "--no-text"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?} {}", shown(&output));
    }
    assert!(shown(&run(&["sparql", "@toy", count])).contains("20"));
    let file = cache.path().join("more.tsv");
    std::fs::write(&file, "a\tb\tc\n").unwrap();
    let file = file.to_str().unwrap();
    for args in [
        &["add", "--graph", "@toy", file][..],
        &["remove", "--graph", "@world", file],
        &["compact", "@world"],
        &["index", "@toy"],
        &["info", "@no-such"],
    ] {
        let output = run(args);
        let text = shown(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?} {text}");
        assert!(text.contains("built-in"), "{args:?} {text}");
    }
}

#[test]
fn standard_output_is_json_where_json_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (drafts, pages) = (place("drafts.jsonl"), place("pages"));
    for (args, input) in [
        (&["demo"][..], ":help\n:why\n:method\n:no\n"),
        (&["questions", "@toy", "--count", "3"], ""),
        (&["questions", "@toy", "--count", "3", "--out", &drafts], ""),
        (&["man"], ""),
        (&["man", "--out", &pages], ""),
        (&["completions", "bash"], ""),
    ] {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let output = fed(&args, input.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{args:?} {}", shown(&output));
        let values = serde_json::Deserializer::from_slice(&output.stdout)
            .into_iter::<serde_json::Value>()
            .collect::<Result<Vec<_>, _>>()
            .unwrap_or_else(|e| panic!("{args:?} {e}: {}", shown(&output)));
        assert!(!values.is_empty(), "{args:?}");
    }
}

/// What `load` says of a file.
fn loaded(name: &str, content: &[u8], options: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), content).unwrap();
    let output = wherefore()
        .current_dir(folder.path())
        .args(["load", name, "--out", "graph"])
        .args(options)
        .output()
        .unwrap();
    shown(&output)
}

#[test]
fn fields_that_are_not_read_are_told() {
    let staff = b"name,team,office,desk,mail\nAda,core,London,4,a@b\nBob,web,Paris,5,\n";
    // it can only be a table of things
    let text = loaded("staff.csv", staff, &[]);
    assert!(
        text.contains("was read as one thing, called by its `name`"),
        "{text}"
    );
    let text = loaded("staff.csv", staff, &["--columns", "name,team,office"]);
    assert!(
        text.contains("2 triples") && !text.contains("warning"),
        "{text}"
    );
    // a name of a column that is a value of it as well
    let staff = b"Ada,core,London,4,a@b\nBob,core,Paris,5,\nEve,web,Rome,6,\n";
    let text = loaded("staff.csv", staff, &[]);
    assert!(
        text.contains("warning: 3 lines have more than three"),
        "{text}"
    );
    let text = loaded("staff.csv", staff, &["--json"]);
    assert!(text.contains("3 lines have more than three"), "{text}");
    let text = loaded("staff.csv", b"From,Rel,To,Source\nAda,knows,Bob,me\n", &[]);
    assert!(
        text.contains("1 triples") && !text.contains("warning"),
        "{text}"
    );
    let text = loaded("staff.csv", b"subject,verb,object\nAda,knows,Bob\n", &[]);
    assert!(text.contains("looks like a header"), "{text}");
    let text = loaded("staff.csv", b"Ada,knows,Bob,,\n", &[]);
    assert!(!text.contains("warning"), "{text}");
}

#[test]
fn what_is_wrong_with_a_file_is_said_rather_than_guessed() {
    let text = loaded("a.csv", b"Ada;knows;Bob\n", &[]);
    assert!(
        text.contains("semicolons") && text.contains("tr ';'"),
        "{text}"
    );
    let text = loaded("a.tsv", b"Ada,knows,Bob\n", &[]);
    assert!(text.contains("`--format csv`"), "{text}");
    let text = loaded("a.csv", b"Andr\xe9,conna\xeet,Ren\xe9\n", &[]);
    assert!(text.contains("iconv -f latin1"), "{text}");
    let remote = br#"{"@context":"https://schema.org","@id":"http://x/a","name":"Ada"}"#;
    let text = loaded("a.jsonld", remote, &[]);
    assert!(text.contains("not fetched"), "{text}");
    assert!(
        !text.contains("line 0") && !text.contains("Callback"),
        "{text}"
    );
}

#[test]
fn answers_that_are_not_shown_are_answers_all_the_same() {
    let won = "(JOIN (R won) [San Francisco Giants])";
    let count = format!("(COUNT {won})");
    for form in [won, &count] {
        let output = run(&["logic", "@toy", form, "--limit", "0"]);
        let text = shown(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(!text.contains("Nothing"), "{text}");
        assert!(text.contains("3 answers, left out"), "{text}");
    }
}

#[test]
fn ask_takes_the_words_of_an_alias_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("aliases.tsv");
    std::fs::write(&file, "the orange and black\tSan Francisco Giants\n").unwrap();
    let question = "Which stadium do the orange and black play in?";
    let file = file.to_str().unwrap();
    let output = run(&["ask", "@toy", question, "--aliases", file]);
    let text = shown(&output);
    assert!(text.contains("Oracle Park"), "{text}");
    let output = run(&["ask", "@toy", question, "--aliases", "no-such.tsv"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_question_is_written_as_a_query_or_run_as_one() {
    let query = run(&["sparql", "@toy", "--question", PLAY]);
    assert_shown!("sparql_question", query);
    assert_shown!(
        "sparql_question_json",
        run(&["sparql", "@toy", "--question", PLAY, "--json"])
    );
    let by_hand = String::from_utf8(query.stdout).unwrap();
    let rows = run(&["sparql", "@toy", &by_hand, "--results", "csv"]);
    assert_eq!(
        String::from_utf8(rows.stdout.clone()).unwrap(),
        "x\r\nname:Oracle%20Park\r\n"
    );
    let at_once = [
        "sparql",
        "@toy",
        "--question",
        PLAY,
        "--run",
        "--results",
        "csv",
    ];
    assert_eq!(run(&at_once).stdout, rows.stdout);
    let refused = ["sparql", "@toy", "--question", "Who wrote Hamlet?"];
    assert_shown!("sparql_question_refused", run(&refused));
    let refused = run(&[&refused[..], &["--json"]].concat());
    let told: serde_json::Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert!(
        told["query"].is_null() && told["refusal"].is_string(),
        "{told}"
    );
    assert_eq!(refused.status.code(), Some(1));
    for wrong in [&["ASK {}", "--question", "x"][..], &["ASK {}", "--run"]] {
        let ended = run(&[&["sparql", "@toy"][..], wrong].concat());
        assert_eq!(ended.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn what_is_served_is_told_apart_by_name_and_method() {
    let told = |args: &[&str]| {
        let ended = run(&[&["serve"][..], args].concat());
        assert_eq!(ended.status.code(), Some(2));
        String::from_utf8(ended.stderr).unwrap()
    };
    let twice = told(&["--graph", "a/films", "--graph", "b/films"]);
    assert!(
        twice.contains("hint: name one of them: `--graph films2=b/films`"),
        "{twice}"
    );
    let unknown = told(&["--graph", "@toy", "--method", "guess"]);
    assert!(unknown.contains("possible values: auto, read"), "{unknown}");
}
