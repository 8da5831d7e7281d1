//! What `CREATE TABLE` says of a table: its columns, its key, and what they refer to.

/// A table of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    /// The column that is another name of the record's number.
    pub(crate) number: Option<usize>,
    pub(crate) key: Vec<usize>,
    pub(crate) references: Vec<Reference>,
    pub(crate) without_rowid: bool,
    /// Columns declared `INTEGER`, and nothing more.
    integers: Vec<usize>,
}

/// Columns whose values are the key of a row of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) columns: Vec<usize>,
    pub(crate) table: String,
    /// The other table's columns; its key if none are named.
    pub(crate) to: Vec<String>,
}

/// One piece of SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A word that is not quoted, which may be a keyword.
    Word(String),
    Quoted(String),
    Sign(char),
}

impl Token {
    fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Word(name) | Self::Quoted(name) => Some(name),
            Self::Sign(_) => None,
        }
    }
}

fn tokens(sql: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut chars = sql.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' | '`' | '\'' | '[' => {
                let end = if c == '[' { ']' } else { c };
                let mut name = String::new();
                while let Some(c) = chars.next() {
                    if c != end {
                        name.push(c);
                    } else if c != ']' && chars.peek() == Some(&end) {
                        name.push(c); // a doubled quote is one
                        chars.next();
                    } else {
                        break;
                    }
                }
                all.push(Token::Quoted(name));
            }
            '-' if chars.peek() == Some(&'-') => while chars.next().is_some_and(|c| c != '\n') {},
            '/' if chars.peek() == Some(&'*') => {
                let mut last = ' ';
                while let Some(c) = chars.next().filter(|c| (last, *c) != ('*', '/')) {
                    last = c;
                }
            }
            c if c.is_whitespace() => {}
            c if c.is_alphanumeric() || c == '_' || c == '$' => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
                {
                    word.push(c);
                }
                all.push(Token::Word(word));
            }
            sign => all.push(Token::Sign(sign)),
        }
    }
    all
}

/// Parts between commas that stand in no parentheses.
fn parts(tokens: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0;
    let is_comma = |token: &Token| {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth -= 1,
            _ => {}
        }
        depth == 0 && *token == Token::Sign(',')
    };
    tokens.split(is_comma).collect()
}

/// What stands in the parentheses that `tokens` begins with, and what follows them.
fn in_parentheses(tokens: &[Token]) -> Option<(&[Token], &[Token])> {
    let rest = tokens.strip_prefix(&[Token::Sign('(')])?;
    let mut depth = 1;
    for (at, token) in rest.iter().enumerate() {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&rest[..at], &rest[at + 1..]));
        }
    }
    None
}

/// The names in a list in parentheses.
fn names(tokens: &[Token]) -> Option<(Vec<String>, &[Token])> {
    let (list, rest) = in_parentheses(tokens)?;
    let first = |part: &[Token]| part.first().and_then(Token::name).map(str::to_owned);
    Some((parts(list).into_iter().filter_map(first).collect(), rest))
}

/// `TABLE (COLUMN, …)` after `REFERENCES`.
fn reference(tokens: &[Token], columns: Vec<usize>) -> Option<Reference> {
    let (table, rest) = tokens.split_first()?;
    Some(Reference {
        columns,
        table: table.name()?.to_owned(),
        to: names(rest).map(|(to, _)| to).unwrap_or_default(),
    })
}

impl Table {
    /// Reads the `CREATE TABLE` of a table; none if it is something else.
    pub(crate) fn parse(name: &str, sql: &str) -> Option<Self> {
        let tokens = tokens(sql);
        let open = tokens.iter().position(|t| *t == Token::Sign('('))?;
        let begin = &tokens[..open];
        if !begin.first()?.is("create") || begin.iter().any(|t| t.is("virtual")) {
            return None;
        }
        let (inner, after) = in_parentheses(&tokens[open..])?;
        let mut table = Self {
            name: name.to_owned(),
            without_rowid: after
                .windows(2)
                .any(|t| t[0].is("without") && t[1].is("rowid")),
            ..Self::default()
        };
        let mut constraints = Vec::new();
        for part in parts(inner) {
            let mut rest = part;
            if rest.first()?.is("constraint") {
                rest = rest.get(2..)?;
            }
            let keywords = ["primary", "unique", "check", "foreign"];
            if keywords
                .iter()
                .any(|word| rest.first().is_some_and(|t| t.is(word)))
            {
                constraints.push(rest);
            } else {
                table.column(part)?;
            }
        }
        for constraint in constraints {
            table.constraint(constraint);
        }
        Some(table)
    }

    fn column(&mut self, tokens: &[Token]) -> Option<()> {
        let at = self.columns.len();
        self.columns.push(tokens.first()?.name()?.to_owned());
        let rest = &tokens[1..];
        if is_integer(rest) {
            self.integers.push(at);
        }
        let is_key = |two: &[Token]| two[0].is("primary") && two[1].is("key");
        if let Some(place) = rest.windows(2).position(is_key) {
            self.key = vec![at];
            if rest.get(place + 2).is_none_or(|t| !t.is("desc")) {
                self.take_number();
            }
        }
        if let Some(place) = rest.iter().position(|t| t.is("references")) {
            self.references
                .extend(reference(&rest[place + 1..], vec![at]));
        }
        Some(())
    }

    /// A key of one `INTEGER` column is the record's number.
    fn take_number(&mut self) {
        if let ([only], false) = (&self.key[..], self.without_rowid) {
            self.number = self.integers.contains(only).then_some(*only);
        }
    }

    fn constraint(&mut self, tokens: &[Token]) {
        let is_key = tokens.first().is_some_and(|t| t.is("primary"));
        let is_foreign = tokens.first().is_some_and(|t| t.is("foreign"));
        let Some((columns, rest)) = names(tokens.get(2..).unwrap_or_default()) else {
            return;
        };
        let columns = columns
            .iter()
            .map(|name| self.find(name))
            .collect::<Option<Vec<_>>>();
        let Some(columns) = columns else { return };
        if is_key {
            self.key = columns;
            self.take_number();
        } else if is_foreign && let Some(place) = rest.iter().position(|t| t.is("references")) {
            self.references
                .extend(reference(&rest[place + 1..], columns));
        }
    }

    /// The place of a column.
    pub(crate) fn find(&self, column: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|name| name.eq_ignore_ascii_case(column))
    }
}

/// Whether a column is declared `INTEGER`, and nothing more.
fn is_integer(declared: &[Token]) -> bool {
    let mut words = declared.iter().map_while(Token::name);
    let ends = [
        "primary",
        "constraint",
        "not",
        "unique",
        "references",
        "default",
        "check",
    ];
    let is_end = |word: &str| ends.iter().any(|end| word.eq_ignore_ascii_case(end));
    words
        .next()
        .is_some_and(|w| w.eq_ignore_ascii_case("integer"))
        && words.next().is_none_or(is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_keys_and_references_are_read() {
        let sql = "CREATE TABLE IF NOT EXISTS \"order\" ( -- what was bought\n\
            id INTEGER PRIMARY KEY AUTOINCREMENT,\n\
            [placed on] DATE NOT NULL DEFAULT (date('now', '-1 day')),\n\
            amount DECIMAL(10, 2) CHECK (amount > 0), /* , */\n\
            customer INT REFERENCES customers(id) ON DELETE CASCADE,\n\
            shop TEXT, `till` INT,\n\
            UNIQUE (shop, till),\n\
            CONSTRAINT where_bought FOREIGN KEY (shop, till) REFERENCES tills)";
        let table = Table::parse("order", sql).unwrap();
        assert_eq!(
            table.columns,
            ["id", "placed on", "amount", "customer", "shop", "till"]
        );
        assert_eq!((table.number, &table.key[..]), (Some(0), &[0][..]));
        assert_eq!(table.references.len(), 2);
        assert_eq!(table.references[0].to, ["id"]);
        assert_eq!(table.references[1].columns, [4, 5]);
        assert_eq!(table.references[1].table, "tills");
        assert!(table.references[1].to.is_empty());
    }

    #[test]
    fn the_number_of_a_record_is_a_column_only_where_sqlite_takes_it_so() {
        let number = |sql: &str| Table::parse("t", sql).unwrap().number;
        assert_eq!(number("CREATE TABLE t(a INT PRIMARY KEY, b)"), None);
        assert_eq!(
            number("CREATE TABLE t(a integer primary key desc, b)"),
            None
        );
        assert_eq!(
            number("CREATE TABLE t(b, a INTEGER NOT NULL PRIMARY KEY)"),
            Some(1)
        );
        assert_eq!(
            number("CREATE TABLE t(a INTEGER, b, PRIMARY KEY (a))"),
            Some(0)
        );
        assert_eq!(
            number("CREATE TABLE t(a INTEGER, b, PRIMARY KEY (a, b))"),
            None
        );
        assert_eq!(
            number("CREATE TABLE t(a INTEGER PRIMARY KEY, b) WITHOUT ROWID"),
            None
        );
    }

    #[test]
    fn what_is_no_table_is_none() {
        for sql in [
            "",
            "CREATE VIRTUAL TABLE t USING fts5(a)",
            "CREATE TABLE t AS SELECT 1",
            "CREATE TABLE t(",
        ] {
            assert_eq!(Table::parse("t", sql), None, "{sql}");
        }
    }
}
