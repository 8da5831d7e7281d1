//! Checks of a query before it is parsed: texts that would overflow the stack of parser, optimiser
//! or evaluator, and keywords of unsupported features.
//!
//! Parser and optimiser recurse, by one level for each bracket and each link of a chain
//! (`1 + 1 + …`, `{} UNION {} …`, a triple pattern after another). Their depth is thus bounded by
//! the number of pieces, once the long lists that recurse nowhere are left out: the rows of
//! `VALUES` and the plain terms of `IN (…)`.

use spargebra::Query;
use spargebra::algebra::{AggregateExpression, Expression, GraphPattern, OrderExpression};

use crate::error::{Error, Result};

/// Maximum bytes of a query.
pub const MAX_TEXT: usize = 1 << 20;

/// Maximum nesting of brackets.
pub const MAX_NESTING: usize = 128;

/// Maximum words and signs outside `VALUES` rows and `IN` lists.
pub const MAX_PIECES: usize = 4_000;

/// Maximum operands of a join. Planning time grows with about the fourth power of their number, to
/// some tenths of a second for this many, and no time limit applies to it.
pub const MAX_JOINED: usize = 64;

/// Maximum triples, paths, joins, unions, filters and so on in a query.
pub const MAX_PATTERNS: usize = 512;

/// Refuses queries that would take too long to plan.
pub(super) fn check_plan(query: &Query) -> Result<()> {
    const PATTERNS: [&str; 10] = [
        "(triple ",
        "(path ",
        "(table ",
        "(join ",
        "(leftjoin ",
        "(lateral ",
        "(minus ",
        "(union ",
        "(filter ",
        "(extend ",
    ];
    let plan = query.to_sse();
    let patterns: usize = PATTERNS
        .iter()
        .map(|pattern| plan.matches(pattern).count())
        .sum();
    let (Query::Select { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }
    | Query::Ask { pattern, .. }) = query;
    let mut joined = 0;
    let outermost = operands(pattern, &mut joined);
    joined = joined.max(outermost);
    if joined > MAX_JOINED || patterns > MAX_PATTERNS {
        let reason = if joined > MAX_JOINED {
            format!("it joins {joined} patterns, and the limit is {MAX_JOINED}")
        } else {
            format!("it has {patterns} patterns, and the limit is {MAX_PATTERNS}")
        };
        return Err(refused(
            reason,
            Some("split it into several queries, or put alternatives into `VALUES`"),
        ));
    }
    Ok(())
}

/// How many operands a pattern adds to the join it stands in. `widest` becomes at least the
/// number of operands of the widest join inside.
fn operands(pattern: &GraphPattern, widest: &mut usize) -> usize {
    match pattern {
        GraphPattern::Bgp { patterns } => patterns.len(),
        GraphPattern::Path { .. } | GraphPattern::Values { .. } => 1,
        GraphPattern::Join { left, right } | GraphPattern::Lateral { left, right } => {
            operands(left, widest) + operands(right, widest)
        }
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => {
            asked(expression, widest);
            apart(right, widest) + operands(left, widest)
        }
        GraphPattern::Minus { left, right } => apart(right, widest) + operands(left, widest),
        GraphPattern::Union { left, right } => apart(left, widest).max(apart(right, widest)),
        GraphPattern::Filter {
            expr: expression,
            inner,
        }
        | GraphPattern::Extend {
            expression, inner, ..
        } => {
            asked([expression], widest);
            operands(inner, widest)
        }
        GraphPattern::OrderBy { inner, expression } => {
            asked(
                expression.iter().map(|by| match by {
                    OrderExpression::Asc(e) | OrderExpression::Desc(e) => e,
                }),
                widest,
            );
            apart(inner, widest)
        }
        GraphPattern::Group {
            inner, aggregates, ..
        } => {
            asked(
                aggregates.iter().filter_map(|(_, of)| match of {
                    AggregateExpression::CountSolutions { .. } => None,
                    AggregateExpression::FunctionCall { expr, .. } => Some(expr),
                }),
                widest,
            );
            apart(inner, widest)
        }
        GraphPattern::Graph { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Service { inner, .. } => apart(inner, widest),
    }
}

/// The one operand that a pattern is to the join around it when it is planned by itself.
fn apart(inner: &GraphPattern, widest: &mut usize) -> usize {
    let count = operands(inner, widest);
    *widest = (*widest).max(count);
    1
}

/// Walks through the patterns of `EXISTS` inside of expressions: each is planned by itself.
fn asked<'a>(expressions: impl IntoIterator<Item = &'a Expression>, widest: &mut usize) {
    use Expression as E;
    let mut todo: Vec<&Expression> = expressions.into_iter().collect();
    while let Some(expression) = todo.pop() {
        match expression {
            E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_) => {}
            E::Or(a, b)
            | E::And(a, b)
            | E::Equal(a, b)
            | E::SameTerm(a, b)
            | E::Greater(a, b)
            | E::GreaterOrEqual(a, b)
            | E::Less(a, b)
            | E::LessOrEqual(a, b)
            | E::Add(a, b)
            | E::Subtract(a, b)
            | E::Multiply(a, b)
            | E::Divide(a, b) => todo.extend([&**a, &**b]),
            E::UnaryPlus(a) | E::UnaryMinus(a) | E::Not(a) => todo.push(a),
            E::If(a, b, c) => todo.extend([&**a, &**b, &**c]),
            E::In(a, others) => {
                todo.push(a);
                todo.extend(others);
            }
            E::Coalesce(parts) | E::FunctionCall(_, parts) => todo.extend(parts),
            E::Exists(inner) => {
                apart(inner, widest);
            }
        }
    }
}

/// Refuses queries that cannot be run safely or are not supported.
pub(crate) fn check(text: &str) -> Result<()> {
    if text.len() > MAX_TEXT {
        return Err(refused(
            format!(
                "its text has {} bytes, and at most {MAX_TEXT} are read",
                text.len()
            ),
            Some("split it into several queries"),
        ));
    }
    let mut open: Vec<Bracket> = Vec::new();
    let mut pieces = 0;
    // the keyword that says what the next bracket holds
    let mut promised = Bracket::Other;
    for piece in Pieces::of(text) {
        let inside = open.last().copied().unwrap_or(Bracket::Other);
        let is_list_item = match piece {
            Piece::Keyword(_) | Piece::Word(_) | Piece::Text | Piece::Sign(',') => {
                inside != Bracket::Other
            }
            Piece::Sign(_) => inside == Bracket::Values,
        };
        pieces += usize::from(!is_list_item);
        match piece {
            Piece::Keyword(word) if word.eq_ignore_ascii_case("SERVICE") => {
                return Err(refused(
                    "`SERVICE` is not supported".into(),
                    Some("query the other server directly, or load its triples into a graph"),
                ));
            }
            Piece::Sign('(') => open.push(match (inside, promised) {
                (Bracket::Values, _) => Bracket::Values,
                (_, Bracket::In) => Bracket::In,
                _ => Bracket::Other,
            }),
            Piece::Sign('{') if promised == Bracket::Values => open.push(Bracket::Values),
            Piece::Sign('{' | '[') => open.push(Bracket::Other),
            Piece::Sign(')' | '}' | ']') => {
                open.pop();
            }
            _ => {}
        }
        promised = match piece {
            Piece::Keyword(word) if word.eq_ignore_ascii_case("IN") => Bracket::In,
            Piece::Keyword(word) if word.eq_ignore_ascii_case("VALUES") => Bracket::Values,
            // `VALUES ?x {` or `VALUES (?x ?y) {`
            Piece::Word(word) if promised == Bracket::Values && word.starts_with(['?', '$']) => {
                promised
            }
            Piece::Sign('(' | ')') if promised == Bracket::Values => promised,
            _ => Bracket::Other,
        };
        if open.len() > MAX_NESTING {
            return Err(refused(
                format!("its brackets nest deeper than {MAX_NESTING}"),
                Some("reduce the nesting"),
            ));
        }
        if pieces > MAX_PIECES {
            return Err(refused(
                format!("it has more than {MAX_PIECES} words and signs outside `VALUES` and `IN`"),
                Some("put long lists into `VALUES`, or split it into several queries"),
            ));
        }
    }
    Ok(())
}

/// Whether the text is an update instead of a query.
pub(crate) fn is_update(text: &str) -> bool {
    const UPDATES: [&str; 10] = [
        "INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH",
    ];
    first_word(text).is_some_and(|word| UPDATES.iter().any(|u| word.eq_ignore_ascii_case(u)))
}

/// The word after all prefixes: what kind of text it is.
pub(crate) fn first_word(text: &str) -> Option<&str> {
    let prologue = |word: &str| {
        word.eq_ignore_ascii_case("PREFIX")
            || word.eq_ignore_ascii_case("BASE")
            || word.ends_with(':')
    };
    Pieces::of(text).find_map(|piece| match piece {
        Piece::Keyword(word) | Piece::Word(word) if !prologue(word) => Some(word),
        _ => None,
    })
}

pub(crate) fn refused(reason: String, hint: Option<&str>) -> Error {
    Error::SparqlRefused {
        reason,
        hint: hint.map(str::to_owned),
    }
}

/// What a bracket holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    /// The terms of `IN (…)`.
    In,
    /// The rows of `VALUES`.
    Values,
    Other,
}

/// A piece of the text. Comments and space are none.
///
/// The parser knows no words, only letters: what looks like a keyword or an IRI here may be
/// something else to it. Hence the doubts below, each of which only counts too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    /// A word that stands after a space or bracket: `p.IN` is a name, and so is `p-IN`.
    Keyword(&'a str),
    /// Any other word: variable, prefixed name, number.
    Word(&'a str),
    /// String or IRI.
    Text,
    Sign(char),
}

struct Pieces<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Pieces<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            self.at = self.text.len() - self.rest().trim_start().len();
            if !self.rest().starts_with('#') {
                break;
            }
            self.at += self.rest().find(['\n', '\r']).unwrap_or(self.rest().len());
        }
        let rest = self.rest();
        let first = rest.chars().next()?;
        if let Some(length) = string_length(rest).or_else(|| iri_length(rest)) {
            self.at += length;
            return Some(Piece::Text);
        }
        let length = rest.find(|c| !is_word_char(c)).unwrap_or(rest.len());
        if length > 0 {
            let word = &rest[..length];
            let before = self.text[..self.at].chars().next_back();
            self.at += length;
            return Some(match before {
                Some(c) if !c.is_whitespace() && !matches!(c, '{' | '}' | '(' | ')') => {
                    Piece::Word(word)
                }
                _ if word.bytes().all(|b| b.is_ascii_alphabetic()) => Piece::Keyword(word),
                _ => Piece::Word(word),
            });
        }
        self.at += first.len_utf8();
        if first == '\\' {
            // an escaped sign in a name, perhaps a quote that begins no string
            self.at += self.rest().chars().next().map_or(0, char::len_utf8);
        }
        Some(Piece::Sign(first))
    }
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '?' | '$' | '@' | '%') || !c.is_ascii()
}

/// Length of the string in quotes at the beginning. One that never ends is none: the parser will
/// say so.
fn string_length(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let long = if quote == '"' { "\"\"\"" } else { "\'\'\'" };
    let quotes = if text.starts_with(long) { 3 } else { 1 };
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(quotes) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if quotes == 3 && text[i..].starts_with(long) {
            return Some(i + 3);
        } else if quotes == 1 && c == quote {
            return Some(i + 1);
        } else if quotes == 1 && matches!(c, '\n' | '\r') {
            return None;
        }
    }
    None
}

/// Length of the `<…>` at the beginning, if it can be an IRI. With many signs in it, it might be
/// a comparison too (`1<1+1+1>…`), and then they count.
fn iri_length(text: &str) -> Option<usize> {
    const MOST_SIGNS: usize = 64;
    let rest = text.strip_prefix('<')?;
    let end = rest.find(|c: char| {
        c <= ' ' || matches!(c, '<' | '>' | '"' | '{' | '}' | '|' | '\\' | '^' | '`')
    })?;
    let signs = rest[..end].chars().filter(|c| !is_word_char(*c)).count();
    (rest[end..].starts_with('>') && signs <= MOST_SIGNS).then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        check(text).unwrap_err().to_string()
    }

    #[test]
    fn brackets_and_chains_are_bounded() {
        let nested = |n| format!("ASK {{ FILTER {}1{} }}", "(".repeat(n), ")".repeat(n));
        assert!(check(&nested(100)).is_ok());
        assert!(reason(&nested(50_000)).contains("nest deeper than 128"));
        assert!(reason(&format!("ASK {{{}}}", "{".repeat(50_000))).contains("nest deeper"));
        for link in [
            "!",
            "+1",
            "1 ",
            "&&1",
            ":a/",
            "{} UNION ",
            "[] :p :o.",
            "OPTIONAL {} ",
        ] {
            let text = format!("ASK {{ {} }}", link.repeat(20_000));
            assert!(reason(&text).contains("more than 4000"), "{link}");
        }
        assert!(reason(&" ".repeat(MAX_TEXT + 1)).contains("bytes"));
    }

    #[test]
    fn joins_are_counted_inside_of_expressions_too() {
        let triples = |n: usize| {
            (0..n)
                .map(|i| format!("?a{i} <r:r> ?a{} . ", i + 1))
                .collect::<String>()
        };
        let refused = |text: &str| {
            let query = spargebra::SparqlParser::new().parse_query(text).unwrap();
            check_plan(&query).err().map(|error| error.to_string())
        };
        let (some, many) = (triples(60), triples(70));
        for (before, after) in [
            ("", ""),
            ("?s ?p ?o FILTER EXISTS {", "}"),
            ("?s ?p ?o FILTER NOT EXISTS {", "}"),
            ("?s ?p ?o FILTER(?s = 1 || IF(?o, true, EXISTS {", "}))"),
            ("?s ?p ?o FILTER(-?o IN (1, COALESCE(EXISTS {", "})))"),
            ("?s ?p ?o BIND(STR(EXISTS {", "}) AS ?x)"),
            ("OPTIONAL { ?s ?p ?o FILTER(EXISTS {", "}) }"),
            ("{ SELECT ?s { ?s ?p ?o } ORDER BY EXISTS {", "} }"),
            ("{ SELECT (COUNT(EXISTS {", "}) AS ?n) { ?s ?p ?o } }"),
        ] {
            let ask = |inside: &str| refused(&format!("ASK {{ {before} {inside} {after} }}"));
            assert_eq!(ask(&some), None, "{before}");
            assert!(ask(&many).unwrap().contains("it joins 70"), "{before}");
        }
        // each is planned by itself
        assert_eq!(
            refused(&format!("ASK {{ {some} FILTER EXISTS {{ {some} }} }}")),
            None
        );
    }

    #[test]
    fn long_lists_are_no_chains() {
        let numbers = |between| vec!["1"; 50_000].join(between);
        assert!(check(&format!("ASK {{ VALUES ?x {{ {} }} }}", numbers(" "))).is_ok());
        let rows = "(1 <http://a/b>) ".repeat(20_000);
        assert!(check(&format!("ASK {{ values (?x ?y) {{ {rows} }} }}")).is_ok());
        assert!(check(&format!("ASK {{ FILTER(?x NOT IN ({})) }}", numbers(","))).is_ok());
    }

    #[test]
    fn what_only_looks_like_a_list_is_counted() {
        let many = "1 ".repeat(20_000);
        let sums = "+1".repeat(20_000);
        for text in [
            format!("ASK {{ ?s :p-IN ({many}) }}"),
            format!("ASK {{ ?s ?p :a.VALUES {{ {many} }} }}"),
            format!("ASK {{ FILTER(?x IN (1{sums})) }}"),
            format!("ASK {{ FILTER(1<1{sums}>1) }}"),
            format!("ASK {{ ?s :a\\' 1{sums} ' }}"),
        ] {
            assert!(reason(&text).contains("more than 4000"), "{}", &text[..30]);
        }
    }

    #[test]
    fn signs_in_strings_iris_and_comments_do_not_count() {
        let deep = "(".repeat(1000);
        for text in [
            format!("ASK {{ ?s ?p \"{deep}\" }}"),
            format!("ASK {{ ?s ?p '''{deep}' \n{deep}''' }}"),
            format!("ASK {{ ?s ?p \"\\\"{deep}\" }}"),
            format!("ASK {{ }} # {deep}"),
        ] {
            assert!(check(&text).is_ok(), "{}", &text[..20]);
        }
    }

    #[test]
    fn services_and_updates_are_known() {
        assert!(reason("ASK { service SILENT <http://a/> {} }").contains("`SERVICE`"));
        assert!(check("ASK { ?service :SERVICE \"SERVICE\" }").is_ok());
        assert!(is_update(
            "# x\nPREFIX ex: <http://a/> PREFIX : <b:> insert data {}"
        ));
        assert!(is_update("CLEAR ALL"));
        assert!(!is_update("PREFIX add: <http://a/> SELECT * {}"));
    }
}
