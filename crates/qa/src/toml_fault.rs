//! What is wrong with a TOML text, in words and with its line.

/// What is wrong with a TOML text, with its line where that is known.
pub fn toml_fault(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    match error.span() {
        Some(span) => {
            let before = text.get(..span.start).unwrap_or_default();
            let first = before.matches('\n').count();
            // of a key in a table with a `kind`, only the table's place is known
            let line = unknown_key(&message)
                .and_then(|key| {
                    (first..)
                        .zip(text.lines().skip(first))
                        .find(|(_, l)| sets(l, key))
                })
                .map_or(first, |(line, _)| line);
            format!("line {}: {message}", line + 1)
        }
        None => message,
    }
}

/// The key of which a message says that nobody knows it.
fn unknown_key(message: &str) -> Option<&str> {
    let (key, _) = message.strip_prefix("unknown field `")?.split_once('`')?;
    Some(key)
}

/// Whether a line of TOML sets this key, as `key = …`, `[table.key]` or `table = { key = … }`.
fn sets(line: &str, key: &str) -> bool {
    let code = line.split('#').next().unwrap_or_default();
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    code.match_indices(key).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + key.len()..]);
        let after = after.trim_start_matches(['"', '\'']).trim_start();
        !before.ends_with(plain) && after.starts_with(['=', '.', ']'])
    })
}
