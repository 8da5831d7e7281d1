//! Reads the `ans:` lines of a language model's reply, however it dresses them up.
//!
//! Case, bullets, numbering, quotation marks, emphasis and what trails behind a name are forgiven:
//!
//! ```text
//! 1. **Ans:** "Lou Seal" [confidence 0.97]
//! ```

/// What a reply says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The names behind `ans:`, in order, each once.
    pub(crate) names: Vec<String>,
    /// Whether it says that there is no answer.
    pub(crate) unavailable: bool,
    /// What it says besides.
    pub(crate) prose: String,
}

/// What stands for no answer.
const NOTHING: [&str; 8] = [
    "not available",
    "none",
    "n/a",
    "na",
    "unknown",
    "not found",
    "no answer",
    "not applicable",
];

pub(crate) fn read(text: &str) -> Reply {
    let mut reply = Reply::default();
    let mut prose = Vec::new();
    for line in text.lines() {
        let Some(rest) = behind_ans(line) else {
            prose.push(line.trim_end());
            continue;
        };
        let name = undressed(rest);
        let plain = name.trim_end_matches(['.', '!']).to_lowercase();
        if NOTHING.contains(&plain.as_str()) {
            reply.unavailable = true;
        } else if !name.is_empty() && !reply.names.iter().any(|n| n == name) {
            reply.names.push(name.to_owned());
        }
    }
    reply.prose = prose.join("\n").trim().to_owned();
    reply
}

/// What follows `ans:` on a line that begins so, whatever stands before it as ornament.
fn behind_ans(line: &str) -> Option<&str> {
    let ornament = |c: char| {
        c.is_whitespace()
            || c.is_ascii_digit()
            || matches!(
                c,
                '.' | ')' | '(' | ']' | '[' | '-' | '*' | '•' | '>' | '#' | '`' | '"' | '_' | '–'
            )
    };
    let line = line.trim_start_matches(ornament);
    let after = ["answers", "answer", "ans"].into_iter().find_map(|word| {
        let head = line.get(..word.len())?;
        head.eq_ignore_ascii_case(word).then(|| &line[word.len()..])
    })?;
    let after = after.trim_start_matches(|c: char| {
        c.is_ascii_digit() || c.is_whitespace() || matches!(c, '*' | '_' | '`' | '"')
    });
    let name = after.strip_prefix([':', '：'])?;
    Some(name)
}

/// A name without what surrounds it.
fn undressed(name: &str) -> &str {
    let mut name = name.trim();
    loop {
        let before = name;
        name = name.trim_matches(|c: char| {
            c.is_whitespace() || matches!(c, '*' | '`' | '_' | '"' | '“' | '”' | '«' | '»')
        });
        name = name
            .strip_prefix('\'')
            .and_then(|n| n.strip_suffix('\''))
            .unwrap_or(name);
        if name == before {
            return name;
        }
    }
}

/// The forms in which a name may be meant, the fullest first: what trails behind it goes, piece
/// by piece.
pub(crate) fn forms(name: &str) -> Vec<&str> {
    const CUTS: [&str; 8] = [" [", " (", " – ", " - ", "; ", ". ", ", ", ": "];
    let cut = CUTS.iter().filter_map(|cut| Some(name.split_once(cut)?.0));
    let shorter = [name.trim_end_matches(['.', ',', ';', '!'])];
    let mut forms = vec![name];
    for form in shorter.into_iter().chain(cut).map(undressed) {
        if !form.is_empty() && !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        read(text).names
    }

    #[test]
    fn plain_lines_are_read_in_order_and_once() {
        let reply = read("It is so.\nans: Lou Seal\nans: 2014 World Series\nans: Lou Seal\n");
        assert_eq!(reply.names, ["Lou Seal", "2014 World Series"]);
        assert_eq!(reply.prose, "It is so.");
        assert!(!reply.unavailable);
    }

    #[test]
    fn ornaments_are_forgiven() {
        for line in [
            "ANS: Lou Seal",
            "  - ans : Lou Seal  ",
            "1. ans: \"Lou Seal\"",
            "2) **ans:** Lou Seal",
            "* **Ans: Lou Seal**",
            "> Answer: 'Lou Seal'",
            "• `ans: Lou Seal`",
            "Ans 1: “Lou Seal”",
            "ans：Lou Seal",
        ] {
            assert_eq!(names(line), ["Lou Seal"], "{line}");
        }
        assert_eq!(
            names("The answer: is near\nanswering: x\nansible: y"),
            [""; 0]
        );
    }

    #[test]
    fn no_answer_is_told_from_an_answer() {
        for line in [
            "ans: not available",
            "ANS: Not available.",
            "ans: None",
            "ans: \"N/A\"",
        ] {
            let reply = read(line);
            assert!(reply.unavailable && reply.names.is_empty(), "{line}");
        }
        assert!(!read("ans:").unavailable);
        assert_eq!(names("ans:\nans: ''"), [""; 0]);
    }

    #[test]
    fn what_trails_behind_a_name_can_be_left_out() {
        assert!(forms("Lou Seal [confidence 0.97]").contains(&"Lou Seal"));
        assert!(forms("Lou Seal (the mascot).").contains(&"Lou Seal"));
        assert!(forms("Lou Seal, because it says so").contains(&"Lou Seal"));
        assert!(forms("\"Lou Seal\" - mascot").contains(&"Lou Seal"));
        assert_eq!(forms("Yahoo! Inc.")[0], "Yahoo! Inc.");
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "\\PC*|(\\s|ans|:|[*\"'\\[(-]|é|\\n){0,40}") {
            let reply = read(&text);
            for name in &reply.names {
                prop_assert!(!name.trim().is_empty());
                prop_assert!(!name.contains('\n'));
                for form in forms(name) {
                    prop_assert!(name.contains(form));
                }
            }
        }

        #[test]
        fn a_name_comes_back_whatever_stands_around_it(
            name in "[A-Za-zÀ-ÿ0-9][A-Za-zÀ-ÿ0-9 .'&-]{0,30}[A-Za-zÀ-ÿ0-9]",
            before in prop::sample::select(vec!["", "- ", "1. ", "  * ", "> "]),
            word in prop::sample::select(vec!["ans:", "Ans: ", "ANS :", "answer: "]),
        ) {
            prop_assume!(!NOTHING.contains(&name.to_lowercase().as_str()));
            let text = format!("So it is.\n{before}{word}\"{name}\"\n");
            prop_assert_eq!(read(&text).names, vec![name]);
        }
    }
}
