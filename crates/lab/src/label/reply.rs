//! Reads which paths a language model picked: lines like `ans: Path 3`.

/// The numbers of the picked paths, each once, in order; those that were not offered are left out.
pub(super) fn picked(text: &str, offered: usize) -> Vec<usize> {
    let mut picked = Vec::new();
    for line in text.lines() {
        let line = line.trim_start_matches(|c: char| !c.is_alphabetic());
        let Some(head) = line.get(..3).filter(|h| h.eq_ignore_ascii_case("ans")) else {
            continue;
        };
        let rest = line[head.len()..].trim_start_matches(|c: char| c.is_alphabetic());
        let rest = rest.trim_start_matches(['*', '`', '_', '"', ' ']);
        let Some(rest) = rest.strip_prefix([':', '：']) else {
            continue;
        };
        // a path that is written out behind its number has numbers of its own
        let rest = rest.split("->").next().unwrap_or(rest);
        let numbers = rest.split(|c: char| !c.is_ascii_digit());
        for number in numbers.filter_map(|n| n.parse::<usize>().ok()) {
            if number < offered && !picked.contains(&number) {
                picked.push(number);
            }
        }
    }
    picked.sort_unstable();
    picked
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_behind_ans_are_read_however_they_are_dressed() {
        let said = "Path 1 is about something else.\nans: Path 3\n- **Ans:** path 0.\nAnswers: Path 2, Path 5";
        assert_eq!(picked(said, 6), [0, 2, 3, 5]);
        assert_eq!(picked(said, 3), [0, 2]);
        assert_eq!(picked("ans: 1\nans: Path 1", 4), [1]);
        assert_eq!(picked("ans: none", 4), [0usize; 0]);
        assert_eq!(picked("ans: Path 2. Seal -> [born] -> 1", 4), [2]);
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "\\PC*|(ans|:|[0-9]|\\n| |é|Path){0,40}", offered in 0usize..9) {
            prop_assert!(picked(&text, offered).iter().all(|n| *n < offered));
        }
    }
}
