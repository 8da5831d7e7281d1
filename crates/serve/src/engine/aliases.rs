//! What a graph is called beside the name that it is served under.

use std::path::Path;

/// Names that a graph has by where it lies: the last part of its path, with and without ending.
pub(super) fn aliases(path: &str) -> Vec<String> {
    let path = match path.split_once("://") {
        // what follows an address may hold what must not be told
        Some((_, rest)) => rest.split(['?', '#']).next().unwrap_or_default(),
        None => path.strip_prefix('@').unwrap_or(path),
    };
    let path = Path::new(path);
    let parts = [path.file_name(), path.file_stem()];
    let parts = parts.into_iter().flatten();
    let mut names: Vec<String> = parts.map(|p| p.to_string_lossy().into_owned()).collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_have_names_by_where_they_lie() {
        assert_eq!(aliases("data/movies/"), ["movies"]);
        assert_eq!(aliases("films.toml"), ["films.toml", "films"]);
        assert_eq!(aliases("@toy"), ["toy"]);
        assert_eq!(aliases("http://h:7/dbpedia?key=secret"), ["dbpedia"]);
        assert!(aliases("").is_empty());
    }
}
