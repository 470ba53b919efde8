//! No circles of imports among the modules of a crate, unless one is named with its reason.
//!
//! Compared are the modules of one folder with each other, each together with the modules inside
//! it; a module and its own parent may name each other. What a path such as `crate::a::b` or
//! `super::c` names is read from the masked text; tests do not count. Read [`super::text`] next.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::text::{is_word, mask_rust, without_tests, words};
use super::tree::{Language, Source};

/// A circle that is accepted: its folder, its modules, and why it is none of the bad ones.
pub struct Accepted {
    /// The folder of the modules, from the root of the source tree.
    pub folder: &'static str,
    /// The modules, in the order of their names.
    pub modules: &'static [&'static str],
    /// Why they may import each other.
    pub reason: &'static str,
}

/// The circles of this tree.
pub const ACCEPTED: [Accepted; 8] = [
    Accepted {
        folder: "crates/ciel-graph/src",
        modules: &[
            "graph",
            "lineage",
            "objects",
            "reconstruct",
            "replay",
            "spawn",
            "verdict",
            "view",
            "wait",
        ],
        reason: "one type, `Graph`, whose acts are spread over files by subject",
    },
    Accepted {
        folder: "crates/ciel-journal/src",
        modules: &["journal", "shared", "snapshot", "threads"],
        reason: "one handle, `Journal`, and what its threads share",
    },
    Accepted {
        folder: "crates/ciel-node/src",
        modules: &["lending", "node"],
        reason: "one type, `Node`, in two files",
    },
    Accepted {
        folder: "crates/ciel-ordered/src",
        modules: &["spill", "stream"],
        reason: "one type, `OrderedStream`, in two files",
    },
    Accepted {
        folder: "crates/ciel-python/src",
        modules: &["failure", "reference"],
        reason: "a failure holds values, and a value may be a failure",
    },
    Accepted {
        folder: "crates/ciel-python/src",
        modules: &["function", "future_state", "inside", "stack"],
        reason: "a task spawns in a strand, its future has the strand, which runs a task",
    },
    Accepted {
        folder: "crates/ciel-python/src",
        modules: &["incoming", "long_turns"],
        reason: "the reader and the thread that waits for it own one buffer",
    },
    Accepted {
        folder: "crates/ciel-skywriting/src",
        modules: &["machine", "wire"],
        reason: "the state of a machine and a value have one encoding",
    },
];

/// Names of modules from the crate's root.
type Path = Vec<String>;

/// Circles that are not among the accepted ones, and accepted ones that are none any more.
pub fn circles(sources: &[Source], accepted: &[Accepted]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut met = BTreeSet::new();
    for (folder, imports) in folders(sources) {
        for circle in strong_components(&imports) {
            let covers = |entry: &&Accepted| {
                let known = |module: &String| entry.modules.contains(&module.as_str());
                entry.folder == folder && circle.iter().all(known)
            };
            match accepted.iter().find(covers) {
                Some(entry) => drop(met.insert((entry.folder, entry.modules))),
                None => found.push(Finding::new(&folder, 0, told(&circle, &imports))),
            }
        }
    }
    let stale = accepted.iter();
    let stale = stale.filter(|entry| !met.contains(&(entry.folder, entry.modules)));
    found.extend(stale.map(|entry| {
        let message = format!("no circle any more: {}", entry.modules.join(", "));
        Finding::new(entry.folder, 0, message)
    }));
    found
}

fn told(circle: &[String], imports: &BTreeMap<String, BTreeSet<String>>) -> String {
    let arrows = circle.iter().map(|module| {
        let inside = imports[module]
            .iter()
            .filter(|other| circle.contains(other));
        let inside: Vec<&str> = inside.map(String::as_str).collect();
        format!("{module} imports {}", inside.join(" and "))
    });
    let arrows: Vec<String> = arrows.collect();
    format!(
        "modules import each other in a circle: {}",
        arrows.join("; ")
    )
}

/// For each folder of modules, what each of them imports of the others.
fn folders(sources: &[Source]) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut crates: BTreeMap<&str, BTreeMap<Path, &Source>> = BTreeMap::new();
    for source in sources {
        if let Some((root, path)) = module_of(source) {
            crates.entry(root).or_default().insert(path, source);
        }
    }
    let mut folders: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (root, modules) in &crates {
        for (path, source) in modules {
            let code = without_tests(&mask_rust(&source.text));
            for depth in 0..path.len() {
                let folder = folder_name(root, &path[..depth]);
                folders
                    .entry(folder)
                    .or_default()
                    .entry(path[depth].clone())
                    .or_default();
            }
            for named in named_paths(&code, path) {
                let shared = path
                    .iter()
                    .zip(&named)
                    .take_while(|(one, other)| one == other);
                let depth = shared.count();
                let target = named.get(..=depth);
                let exists = |target: &[String]| modules.keys().any(|key| key.starts_with(target));
                if depth < path.len() && target.is_some_and(exists) {
                    let siblings = folders
                        .entry(folder_name(root, &path[..depth]))
                        .or_default();
                    let imports = siblings.entry(path[depth].clone()).or_default();
                    imports.insert(named[depth].clone());
                }
            }
        }
    }
    folders
}

fn folder_name(root: &str, path: &[String]) -> String {
    let parts = std::iter::once(root).chain(path.iter().map(String::as_str));
    parts.collect::<Vec<_>>().join("/")
}

/// The folder `src` that a module of production lies in, and its path from there.
fn module_of(source: &Source) -> Option<(&str, Path)> {
    if source.language() != Language::Rust || !source.is_production() || source.is_generated() {
        return None;
    }
    let (root, inner) = source
        .path
        .split_at(source.path.find("/src/")? + "/src".len());
    let inner = inner[1..].strip_suffix(".rs")?;
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    match inner {
        "lib" | "main" => None,
        _ => Some((root, inner.split('/').map(str::to_owned).collect())),
    }
}

/// What the paths in a module's code name, from the crate's root.
fn named_paths(code: &str, module: &[String]) -> Vec<Path> {
    let mut found = Vec::new();
    for head in ["crate", "self", "super"] {
        for at in words(code, head) {
            let rest = &code[at + head.len()..];
            let before = code[..at].trim_end();
            if !rest.starts_with("::") || before.ends_with("::") {
                continue;
            }
            let base = match head {
                "crate" => &[],
                "self" => module,
                _ => &module[..module.len() - 1],
            };
            tails(&rest["::".len()..], base.to_vec(), &mut found);
        }
    }
    found
}

/// Reads what follows `::`: a name, more names, or a list in brackets. Gives what is left.
fn tails<'a>(text: &'a str, mut base: Path, found: &mut Vec<Path>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut list) = text.strip_prefix('{') {
        loop {
            list = list.trim_start().trim_start_matches(',').trim_start();
            match list.chars().next() {
                None => return "",
                Some('}') => return &list[1..],
                Some(_) => {
                    let left = tails(list, base.clone(), found);
                    list = left.trim_start_matches(|c| c != ',' && c != '}');
                }
            }
        }
    }
    let length = text.bytes().take_while(|byte| is_word(*byte)).count();
    match &text[..length] {
        "super" => drop(base.pop()),
        "self" | "" => {}
        name => base.push(name.to_owned()),
    }
    let rest = &text[length..];
    match rest.strip_prefix("::") {
        Some(rest) => tails(rest, base, found),
        None => {
            found.push(base);
            rest
        }
    }
}

/// Groups of more than one module each of which can be reached from all others of its group.
fn strong_components(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = imports
        .keys()
        .map(|module| (module, reachable(module, imports)))
        .collect();
    let mut groups = BTreeSet::new();
    for (module, far) in &reached {
        let back = |other: &&String| reached[*other].contains(*module);
        let group: BTreeSet<&String> = far.iter().copied().filter(|other| back(other)).collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    let owned = |group: BTreeSet<&String>| group.into_iter().cloned().collect();
    groups.into_iter().map(owned).collect()
}

fn reachable<'a>(
    from: &'a String,
    imports: &'a BTreeMap<String, BTreeSet<String>>,
) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&String> = imports[from].iter().collect();
    while let Some(module) = waiting.pop() {
        if imports.contains_key(module) && reached.insert(module) {
            waiting.extend(&imports[module]);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        let path = format!("crates/c/src/{path}.rs");
        let text = text.to_owned();
        Source { path, text }
    }

    fn messages(sources: &[Source], accepted: &[Accepted]) -> Vec<String> {
        let found = circles(sources, accepted);
        found.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn circle_through_three_modules_is_found() {
        let sources = [
            source("a", "use crate::{b::B, d};"),
            source("b/mod", "fn f() { super::e::g() }"),
            source("b/x", "use crate::e::E;"),
            source("d", ""),
            source("e", "use crate::\n{d::{D}, a::{A,\n self}};"),
        ];
        assert_eq!(
            messages(&sources, &[]),
            ["crates/c/src:0: modules import each other in a circle: \
                 a imports b; b imports e; e imports a"]
        );
    }

    #[test]
    fn child_may_name_its_parent_but_not_its_sibling_in_a_circle() {
        let sources = [
            source("a", "mod b; mod c; use self::b::B; use self::c::C;"),
            source("a/b", "use super::A; use super::c::C;"),
            source("a/c", "use super::A; use crate::a::b::B;"),
        ];
        assert_eq!(
            messages(&sources, &[]),
            ["crates/c/src/a:0: modules import each other in a circle: \
                 b imports c; c imports b"]
        );
    }

    #[test]
    fn imports_of_tests_and_words_in_comments_do_not_count() {
        let sources = [
            source("a", "use crate::b;"),
            source("b", "// crate::a\n#[cfg(test)] mod tests { use crate::a; }"),
        ];
        assert!(messages(&sources, &[]).is_empty());
    }

    #[test]
    fn accepted_circle_is_passed_until_it_is_none() {
        let entry = |modules| Accepted {
            folder: "crates/c/src",
            modules,
            reason: "one type",
        };
        let sources = [source("a", "use crate::b;"), source("b", "use crate::a;")];
        assert!(messages(&sources, &[entry(&["a", "b"])]).is_empty());
        let stale = messages(&sources, &[entry(&["a", "b"]), entry(&["a", "d"])]);
        assert_eq!(stale, ["crates/c/src:0: no circle any more: a, d"]);
    }
}
