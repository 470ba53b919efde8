//! No part of the engine but the executors themselves spells the name of one.
//!
//! The names are those of `executors/names.rs`; a string that is one of them decides something
//! about an executor, or soon will. Tests and comments may spell them. Read [`super::text`] next.

use super::Finding;
use super::text::{mask_rust, without_tests};
use super::tree::{Language, Source};

/// Where the executors are.
const HOME: &str = "crates/ciel-runtime/src/executors/";

/// The crates of the engine.
const CRATES: [&str; 7] = [
    "ciel-coordinator",
    "ciel-engine",
    "ciel-graph",
    "ciel-node",
    "ciel-runtime",
    "ciel-view",
    "ciel-workers",
];

/// Strings outside of the executors that are the name of one.
pub fn spelled_names(sources: &[Source]) -> Vec<Finding> {
    let list = sources
        .iter()
        .find(|source| source.path == format!("{HOME}names.rs"));
    let Some(list) = list else {
        return vec![Finding::new(HOME, 0, "there is no list of names")];
    };
    let names: Vec<String> = list.text.lines().filter_map(named).collect();
    let engine = sources.iter().filter(|source| is_engine(source));
    engine
        .flat_map(|source| spelled_in(source, &names))
        .collect()
}

fn is_engine(source: &Source) -> bool {
    let of = |name: &&str| source.path.starts_with(&format!("crates/{name}/src/"));
    source.language() == Language::Rust
        && source.is_production()
        && CRATES.iter().any(of)
        && !source.path.starts_with(HOME)
}

/// The name that a line of the list declares.
fn named(line: &str) -> Option<String> {
    let (_, value) = line.split_once(": &str = \"")?;
    Some(value.split_once('"')?.0.to_owned())
}

fn spelled_in(source: &Source, names: &[String]) -> Vec<Finding> {
    let code = without_tests(&mask_rust(&source.text));
    let lines = (1..).zip(source.text.lines().zip(code.lines()));
    let in_code = lines.filter(|(_, (_, code))| !code.trim().is_empty());
    let mut found = Vec::new();
    for (number, (line, _)) in in_code {
        for name in names {
            if line.contains(&format!("\"{name}\"")) {
                let message = format!("spells the name of the executor {name}");
                found.push(Finding::new(&source.path, number, message));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        let (path, text) = (path.to_owned(), text.to_owned());
        Source { path, text }
    }

    #[test]
    fn name_outside_of_the_executors_is_found() {
        let list = "/// Scripts.\npub(super) const SKYWRITING: &str = \"skywriting\";\n";
        let text = "// \"skywriting\"\nfn f() {\n    g(\"skywriting\", \"sky\");\n}\n\
                    #[cfg(test)]\nmod tests {\n    const A: &str = \"skywriting\";\n}\n";
        let sources = [
            source(&format!("{HOME}names.rs"), list),
            source(&format!("{HOME}other.rs"), text),
            source("crates/ciel-runtime/src/core.rs", text),
            source("crates/ciel-cli/src/run.rs", text),
        ];
        let found: Vec<String> = spelled_names(&sources)
            .iter()
            .map(Finding::to_string)
            .collect();
        let expected = "crates/ciel-runtime/src/core.rs:3: spells the name of the executor \
                        skywriting";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn tree_without_the_list_is_found() {
        assert_eq!(spelled_names(&[]).len(), 1);
    }
}
