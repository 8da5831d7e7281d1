//! `wherefore logic` as a command, and `ask --method forms`.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::process::{Command, Output};

fn wherefore(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wherefore"))
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_form_is_told_translated_and_run() {
    let done = wherefore(&[
        "logic",
        "@toy",
        "(JOIN (R won) (JOIN (R mascot_of) [Sluggerrr]))",
    ]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(
        text(&done.stdout),
        "form     (JOIN (R won) (JOIN (R mascot_of) Sluggerrr))\n\
         english  things that (things that Sluggerrr is a mascot of) have as won\n\
         sparql   SELECT DISTINCT ?x WHERE {\n           \
           ?y1 <name:won> ?x .\n           \
           <name:Sluggerrr> <name:mascot_of> ?y1 .\n         \
         }\n\n\
         World Series 2015\n  \
         Sluggerrr — mascot of → Kansas City Royals\n  \
         Kansas City Royals — won → World Series 2015\n"
    );
    let done = wherefore(&[
        "logic",
        "@toy",
        "(COUNT (JOIN (R won) [San Francisco Giants]))",
        "--json",
    ]);
    let told: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(told["count"], 3);
    assert_eq!(told["answers"][0]["evidence"][0]["verified"], true);
    assert_eq!(
        told["bracketed"],
        "( COUNT ( JOIN ( R [ won ] ) [ San Francisco Giants ] ) )"
    );
}

#[test]
fn numbers_yes_and_no_and_tables_are_shown() {
    let after = |form: &str| {
        let done = wherefore(&["logic", "@toy", form]);
        let shown = text(&done.stdout);
        let value = shown.split_once("\n\n").map(|(_, value)| value.to_owned());
        (value.unwrap_or_default(), done.status.code())
    };
    let (shown, code) = after("(DIV (COUNT (JOIN (R won) [San Francisco Giants])) 2)");
    assert!(
        shown.starts_with("1.5\n  San Francisco Giants — won → "),
        "{shown}"
    );
    assert_eq!(code, Some(0));
    let park = "(ANY (AND (OR [Oracle Park]) (JOIN (R plays_in) [San Francisco Giants])))";
    let fact = "  San Francisco Giants — plays in → Oracle Park\n";
    assert_eq!(after(park), (format!("yes\n{fact}"), Some(0)));
    // a no says what the graph has instead
    let seal = park.replace("Oracle Park", "Lou Seal");
    assert_eq!(after(&seal), (format!("no\n{fact}"), Some(1)));
    let (shown, code) = after("(SUM (JOIN (R won) [San Francisco Giants]) capacity)");
    assert!(shown.starts_with("There is no such number"), "{shown}");
    assert_eq!(code, Some(1));
    let table = "(TABLE (JOIN mascot_of (JOIN (R mascot_of) (OR [Lou Seal] Sluggerrr))) mascot_of \
                 (HOW_MANY (JOIN mascot_of won)) (ORDER (HOW_MANY (JOIN mascot_of won)) desc))";
    assert_eq!(
        after(table),
        (
            "thing      mascot of             number of things the mascot of has as won\n\
             Lou Seal   San Francisco Giants  3\n\
             Sluggerrr  Kansas City Royals    1\n"
                .to_owned(),
            Some(0)
        )
    );
    let json = |form: &str| -> serde_json::Value {
        let done = wherefore(&["logic", "@toy", form, "--json"]);
        serde_json::from_slice(&done.stdout).unwrap()
    };
    assert_eq!(
        json("(MAX (JOIN venue_record x) capacity)")["missing"][0],
        "entity `x`"
    );
    assert_eq!(json(&seal)["truth"], false);
    assert_eq!(json(&seal)["evidence"][0]["verified"], true);
    assert_eq!(json("(DIV 1 4)")["number"], 0.25);
    assert_eq!(json(table)["table"]["rows"][0][2][0], "3");
}

#[test]
fn forms_that_cannot_be_run_end_with_a_reason() {
    let done = wherefore(&["logic", "@toy", "(JOIN r"]);
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(
        said.contains("does not parse at character 8: it ends where a form should stand"),
        "{said}"
    );
    assert!(said.contains("hint:"), "{said}");
    let done = wherefore(&["logic", "@toy", "(JOIN r [Lou Seal])"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stdout).contains("The graph has no relation `r`."));
    let done = wherefore(&["logic", "@toy", "(JOIN (R lost) [Lou Seal])"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stdout).contains("Nothing in the graph matches."));
    assert_eq!(wherefore(&["logic", "@toy"]).status.code(), Some(2));
    let done = wherefore(&["logic", "@toy", "x", "--now", "soon"]);
    assert!(text(&done.stderr).contains("`soon` is no date"));
}

#[test]
fn a_former_name_of_the_reader_tells_what_it_ran() {
    let asked = "How many World Series did the San Francisco Giants win?";
    let done = wherefore(&["ask", "@toy", asked, "--method", "forms", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(answer["answers"][0]["name"], "3", "{answer}");
    assert_eq!(
        answer["logical_form"],
        "(COUNT (JOIN (R won) [San Francisco Giants]))"
    );
    assert!(
        answer["sparql"]
            .as_str()
            .unwrap()
            .contains("COUNT(DISTINCT ?x)")
    );
    assert_eq!(
        answer["answers"][0]["rationale"].as_array().unwrap().len(),
        3
    );
}

#[test]
fn aspects_are_shown() {
    let done = wherefore(&[
        "logic",
        "@toy",
        "--aspects",
        "Who is the mascot of the San Francisco Giants?",
        "--json",
    ]);
    let told: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(told["entities"][0]["text"], "San Francisco Giants");
    assert_eq!(told["relations"][0]["text"], "mascot of");
}
