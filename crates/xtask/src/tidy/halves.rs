//! Home and site name nothing of each other: they share messages, and what those are made of.
//!
//! The two halves of the engine may be in different processes, so each knows the other only by its
//! messages. It reads names only. Read [`super::text`] next.

use super::Finding;
use super::text::{line_of, mask_rust, without_tests, words};
use super::tree::Source;

/// A half, by the beginning of its files, and what it must not name.
const HALVES: [(&str, &[&str]); 2] = [
    (
        "crates/ciel-engine/src/home",
        &["site::", "engine::", "Node", "Event::TurnEnded", "Caller"],
    ),
    (
        "crates/ciel-engine/src/site",
        &[
            "home::",
            "engine::",
            "graph::Graph",
            "ciel_graph::Graph",
            "Coordinator",
            "ciel_coordinator",
        ],
    ),
];

/// Names in one half of the engine that belong to the other one, or to what joins them.
pub fn names_of_the_other_half(source: &Source) -> Vec<Finding> {
    let half = HALVES
        .iter()
        .find(|(files, _)| source.path.starts_with(files));
    let Some((_, foreign)) = half.filter(|_| source.is_production()) else {
        return Vec::new();
    };
    let code = without_tests(&mask_rust(&source.text));
    let finding = |(at, name): (usize, &str)| {
        let message = format!("`{name}` is of the other half: share a message");
        Finding::new(&source.path, line_of(&code, at), message)
    };
    let found = foreign.iter().flat_map(|name| {
        let word = name.trim_end_matches("::");
        let places = words(&code, word).filter(|at| code[*at..].starts_with(name));
        places.map(|at| (at, *name)).collect::<Vec<_>>()
    });
    found.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str, text: &str) -> usize {
        let source = Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        names_of_the_other_half(&source).len()
    }

    #[test]
    fn half_that_names_the_other_one_is_found() {
        let home = "crates/ciel-engine/src/home/acts.rs";
        assert_eq!(named(home, "use crate::site::Site;"), 1);
        assert_eq!(named(home, "fn f(node: &ciel_node::Node) {}"), 1);
        let site = "crates/ciel-engine/src/site.rs";
        assert_eq!(named(site, "fn f(graph: &ciel_graph::Graph) {}"), 1);
        assert_eq!(named(site, "fn f() { crate::home::Home::new(); }"), 1);
    }

    #[test]
    fn messages_and_their_words_are_shared() {
        let home = "crates/ciel-engine/src/home.rs";
        let text = "use crate::message::ToSite; fn f(site: SiteKey, node: node::Event) {}";
        assert_eq!(named(home, text), 0);
        assert_eq!(
            named("crates/ciel-engine/src/engine.rs", "use crate::site::Site;"),
            0
        );
    }
}
