//! Rules about links between the pages of the tree.
//!
//! A link of a Markdown file leads to a file or folder of the tree, and its anchor to a heading
//! there. Links to other places are not followed. Code is not read for links.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::prose::prose;
use super::tree::{Language, Source};

/// Links of Markdown files that lead nowhere; `sources` is the whole tree, and `exists` is whether
/// a path from its root leads to a file or folder, for those that are not text.
pub fn broken_links(sources: &[Source], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let pages: BTreeMap<&str, &Source> = sources
        .iter()
        .filter(|source| source.language() == Language::Markdown)
        .map(|source| (source.path.as_str(), source))
        .collect();
    let mut found = Vec::new();
    for page in pages.values() {
        for (line, target) in links(&page.text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target.as_str(), ""));
            let complaint = match resolve(&page.path, file) {
                None => Some("leads out of the tree"),
                Some(path) if !exists(&path) => Some("leads to no file"),
                Some(path) => pages
                    .get(path.as_str())
                    .filter(|_| !anchor.is_empty())
                    .filter(|target| !anchors(&target.text).contains(anchor))
                    .map(|_| "leads to no heading"),
            };
            let finding = |what| Finding::new(&page.path, line, format!("`{target}` {what}"));
            found.extend(complaint.map(finding));
        }
    }
    found
}

/// The links of a page that stay in the tree, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let behind_brackets = line.split("](").skip(1).map(|rest| rest.split(')').next());
        let behind_colon = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "))
            .map(|(_, rest)| Some(rest));
        let pictures = line
            .split("src=\"")
            .skip(1)
            .map(|rest| rest.split('"').next());
        for target in behind_brackets
            .chain(behind_colon)
            .chain(pictures)
            .flatten()
        {
            let target = target.split_whitespace().next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// The names under which the headings of a page can be reached.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inside_code = false;
    for line in text.lines() {
        inside_code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if inside_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let name = anchor(title.trim());
        let again = (1..).map(|count| format!("{name}-{count}"));
        let mut choices = [name.clone()].into_iter().chain(again);
        let free = choices.find(|choice| !names.contains(choice));
        names.extend(free);
    }
    names
}

fn anchor(title: &str) -> String {
    title
        .chars()
        .filter(|character| character.is_alphanumeric() || " -_".contains(*character))
        .map(|character| if character == ' ' { '-' } else { character })
        .flat_map(char::to_lowercase)
        .collect()
}

/// The path from the root to which `target` leads from the page `page`; nothing if it leaves.
fn resolve(page: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(page.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The complaints about the page `docs/one.md` with this text, in a tree with one more page.
    fn found(text: &str) -> Vec<String> {
        let source = |path: &str, text: &str| Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let other = "# The `title`, twice\n```\n# code\n```\n## The title, twice\n";
        let sources = [source("docs/one.md", text), source("two.md", other)];
        let exists = |path: &str| ["docs/one.md", "two.md", "docs"].contains(&path);
        let findings = broken_links(&sources, exists);
        findings.into_iter().map(|one| one.to_string()).collect()
    }

    #[test]
    fn links_to_files_folders_headings_and_other_places_are_well() {
        let text = "# Here\n[a](../two.md) [b](../two.md#the-title-twice-1) [c](#here) [d](.)\n\
                    [e](https://example.org/x) `[f](no.md)`\n\
                    ```\n[g](no.md)\n```\n[h]: ../two.md\n<img src=\"../two.md\">\n";
        assert_eq!(found(text), [""; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for (text, complaint) in [
            ("[a](no.md)", "docs/one.md:1: `no.md` leads to no file"),
            ("\n[a]: no.md", "docs/one.md:2: `no.md` leads to no file"),
            (
                "<img src=\"a.png\">",
                "docs/one.md:1: `a.png` leads to no file",
            ),
            ("[a](#no)", "docs/one.md:1: `#no` leads to no heading"),
            (
                "[a](../two.md#code)",
                "docs/one.md:1: `../two.md#code` leads to no heading",
            ),
            (
                "[a](../../b)",
                "docs/one.md:1: `../../b` leads out of the tree",
            ),
        ] {
            assert_eq!(found(text), [complaint]);
        }
    }
}
