//! Rules about claims: what a comment or a page says of the tree must be so.
//!
//! Modules that comments and ARCHITECTURE.md name exist, its list of pure crates is the list that
//! [`super::purity`] checks, each limit has a user, and a doc comment says more than one word. The
//! rules read names only. Read next: [`super::text`].

use std::collections::BTreeSet;

use super::Finding;
use super::purity::PURE;
use super::text::{line_of, mask_rust, words};
use super::tree::{Language, Source};

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// The words after which the opening of a module names other modules.
const NAMING: &[&str] = &["Read next:", "The parts:"];

/// Lines of ARCHITECTURE.md at most: it is to be read at one sitting.
const ARCHITECTURE_LINES_MAX: usize = 400;

/// Names in the openings of modules, after "Read next:" or "The parts:", that are neither a module
/// of the same crate, nor a crate, nor a file.
pub fn missing_modules(sources: &[Source]) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in sources
        .iter()
        .filter(|one| one.language() == Language::Rust)
    {
        let lines = source
            .text
            .lines()
            .take_while(|line| line.starts_with("//!"));
        let opening: Vec<&str> = lines.map(|line| &line["//!".len()..]).collect();
        let opening = opening.join(" ");
        for naming in NAMING {
            let Some((_, after)) = opening.split_once(naming) else {
                continue;
            };
            for name in quoted(after).filter(|name| !exists(name, &source.path, sources)) {
                let message = format!("`{name}` is neither a module here, a crate, nor a file");
                found.push(Finding::new(&source.path, 1, message));
            }
        }
    }
    found
}

/// Rust files and folders of them that ARCHITECTURE.md names in backquotes and that do not exist.
pub fn missing_files(sources: &[Source]) -> Vec<Finding> {
    let Some(page) = sources.iter().find(|one| one.path == ARCHITECTURE) else {
        return vec![Finding::new(ARCHITECTURE, 0, "is missing")];
    };
    let mut found = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        let files = quoted(line).filter(|name| name.ends_with(".rs") || name.ends_with(".py"));
        for name in files.filter(|name| !sources.iter().any(|one| ends_in(&one.path, name))) {
            let message = format!("`{name}` does not exist");
            found.push(Finding::new(ARCHITECTURE, index + 1, message));
        }
    }
    found
}

/// Whether ARCHITECTURE.md is too long.
pub fn long_page(sources: &[Source]) -> Vec<Finding> {
    let page = sources.iter().find(|one| one.path == ARCHITECTURE);
    let lines = page.map_or(0, |page| page.text.lines().count());
    let message = format!("{lines} lines, at most {ARCHITECTURE_LINES_MAX}");
    match lines > ARCHITECTURE_LINES_MAX {
        true => vec![Finding::new(ARCHITECTURE, 0, message)],
        false => Vec::new(),
    }
}

/// Pure crates that the invariants of ARCHITECTURE.md leave out, and crates there that are not
/// checked.
pub fn pure_crates_on_the_page(sources: &[Source]) -> Vec<Finding> {
    let page = sources.iter().find(|one| one.path == ARCHITECTURE);
    let text = page.map_or("", |page| page.text.as_str());
    let list = text
        .split_once("The pure crates (")
        .map_or("", |(_, after)| after);
    let list = list.split(')').next().unwrap_or_default();
    let named: BTreeSet<String> = quoted(list).map(|name| format!("ciel-{name}")).collect();
    let checked: BTreeSet<String> = PURE.iter().map(|&name| name.to_owned()).collect();
    let message = |name: &String| {
        let place = if named.contains(name) {
            "the tidy test"
        } else {
            "the page"
        };
        Finding::new(
            ARCHITECTURE,
            0,
            format!("pure crate `{name}` is missing in {place}"),
        )
    };
    named.symmetric_difference(&checked).map(message).collect()
}

/// Public constants of a `limits.rs` that no other file uses and no limit of the same file either.
pub fn unused_limits(sources: &[Source]) -> Vec<Finding> {
    let mut found = Vec::new();
    let limits =
        |one: &&Source| one.path.starts_with("crates/") && one.path.ends_with("/limits.rs");
    for source in sources.iter().filter(limits) {
        let code = mask_rust(&source.text);
        for (at, keyword) in code.match_indices("pub const ") {
            let rest = &code[at + keyword.len()..];
            let name = rest.split(':').next().unwrap_or_default();
            let is_used_here = words(&code, name).count() > 1;
            let is_used = is_used_here || sources.iter().any(|one| uses(one, name, source));
            if !is_used {
                let message = format!("the limit `{name}` is not used");
                found.push(Finding::new(&source.path, line_of(&code, at), message));
            }
        }
    }
    found
}

/// Doc comments of one word, such as "Which."; code in backquotes is an example and says something.
pub fn vacuous_docs(source: &Source) -> Vec<Finding> {
    if source.language() != Language::Rust {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let is_doc = |index: usize| lines.get(index).is_some_and(|line| line.starts_with("///"));
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(doc) = line.strip_prefix("///") else {
            continue;
        };
        let is_part = is_doc(index + 1) || index > 0 && is_doc(index - 1);
        if !is_part && doc.split_whitespace().count() < 2 && !doc.contains('`') {
            let message = format!("the comment `{}` says nothing", doc.trim());
            found.push(Finding::new(&source.path, index + 1, message));
        }
    }
    found
}

/// The words between backquotes that may be names of modules or files.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |word: &&str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:".contains(&byte);
        word.bytes().all(allowed) && !word.is_empty() && !word.starts_with('-')
    };
    text.split('`').skip(1).step_by(2).filter(is_name)
}

/// Whether a name leads to something that can be read: from the file at `path`, a module of the
/// crate or an item by its path, a crate, or a file.
fn exists(name: &str, path: &str, sources: &[Source]) -> bool {
    let (first, last) = (name.split("::").next(), name.rsplit("::").next());
    let last = last.unwrap_or(name);
    let own = path.split('/').nth(1).unwrap_or_default();
    let named = first.map(|first| first.replace('_', "-"));
    let named = named.filter(|first| name.contains("::") && first.starts_with("ciel-"));
    let crate_folder = format!("crates/{}/", named.as_deref().unwrap_or(own));
    let inside = |one: &&Source| one.path.starts_with(&crate_folder);
    if last.starts_with(|first: char| first.is_ascii_uppercase()) && !last.contains('.') {
        let mut code = sources
            .iter()
            .filter(inside)
            .map(|one| mask_rust(&one.text));
        return code.any(|code| words(&code, last).count() > 0);
    }
    let file = [format!("{last}.rs"), format!("{last}/mod.rs")];
    let is_module = |one: &Source| file.iter().any(|file| ends_in(&one.path, file));
    let manifest = format!("crates/{}/Cargo.toml", last.replace('_', "-"));
    sources.iter().filter(inside).any(is_module)
        || sources
            .iter()
            .any(|one| one.path == manifest || ends_in(&one.path, last))
}

/// Whether the last parts of `path` are those of `end`.
fn ends_in(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

fn uses(source: &Source, name: &str, limits: &Source) -> bool {
    source.path != limits.path
        && matches!(source.language(), Language::Rust | Language::Python)
        && words(&source.text, name).count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        let (path, text) = (path.to_owned(), text.to_owned());
        Source { path, text }
    }

    fn messages(findings: Vec<Finding>) -> Vec<String> {
        findings.into_iter().map(|one| one.message).collect()
    }

    #[test]
    fn module_that_is_gone_is_found_and_others_are_not() {
        let tree = |next: &str| {
            [
                source(
                    "crates/a/src/one.rs",
                    &format!("//! One.\n//! Read next: {next}.\n"),
                ),
                source("crates/a/src/deep/two.rs", "struct Two;"),
                source("crates/ciel-b/Cargo.toml", ""),
            ]
        };
        for good in [
            "`two`",
            "[`crate::deep::two`]",
            "`Two`",
            "`ciel-b`",
            "`src/deep/two.rs`",
        ] {
            assert_eq!(missing_modules(&tree(good)), [], "{good}");
        }
        for bad in ["`three`", "the `two`, then `wo`", "`Three`", "`no.py`"] {
            assert_eq!(missing_modules(&tree(bad)).len(), 1, "{bad}");
        }
    }

    #[test]
    fn page_of_the_house_has_a_bound() {
        let page = |lines: usize| Source {
            path: ARCHITECTURE.to_owned(),
            text: "line\n".repeat(lines),
        };
        assert!(long_page(&[page(ARCHITECTURE_LINES_MAX)]).is_empty());
        assert_eq!(long_page(&[page(ARCHITECTURE_LINES_MAX + 1)]).len(), 1);
    }

    #[test]
    fn file_that_the_page_invents_is_found() {
        let page = source(ARCHITECTURE, "`a.rs` and\n`gone.rs`, `Type`\n");
        let found = missing_files(&[page, source("crates/a/src/a.rs", "")]);
        assert_eq!(
            found,
            [Finding::new(ARCHITECTURE, 2, "`gone.rs` does not exist")]
        );
    }

    #[test]
    fn lists_of_pure_crates_must_agree() {
        let names: Vec<String> = PURE
            .iter()
            .map(|name| format!("`{}`", &name[5..]))
            .collect();
        let page = |names: &[String]| {
            [source(
                ARCHITECTURE,
                &format!("- The pure crates ({}) have", names.join(", ")),
            )]
        };
        assert_eq!(pure_crates_on_the_page(&page(&names)), []);
        assert_eq!(pure_crates_on_the_page(&page(&names[1..])).len(), 1);
        let more = [names, vec!["`runtime`".to_owned()]].concat();
        assert_eq!(pure_crates_on_the_page(&page(&more)).len(), 1);
    }

    #[test]
    fn limit_without_user_is_found() {
        let limits = "pub const A_MAX: usize = 1;\npub const B_MAX: usize = A_MAX;\n";
        let path = "crates/a/src/limits.rs";
        let alone = [source(path, limits)];
        assert_eq!(
            messages(unused_limits(&alone)),
            ["the limit `B_MAX` is not used"]
        );
        let used = [
            source(path, limits),
            source("crates/a/src/a.rs", "limits::B_MAX"),
        ];
        assert_eq!(unused_limits(&used), []);
    }

    #[test]
    fn comment_of_one_word_is_found_unless_it_is_a_line_of_a_longer_one() {
        let text = "/// Which.\na: u8,\n/// The task that\n/// waits.\nb: u8,\n";
        let found = vacuous_docs(&source("a.rs", text));
        assert_eq!(
            found,
            [Finding::new("a.rs", 1, "the comment `Which.` says nothing")]
        );
    }
}
