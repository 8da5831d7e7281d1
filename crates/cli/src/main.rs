//! The `wherefore` command.

fn main() {}
