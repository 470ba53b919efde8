//! The rules of the house hold in the whole source tree. Each rule has its own tests, with bad
//! samples, beside it in `src/tidy`; `freshness.rs` checks that generated files are fresh.

use std::sync::LazyLock;

use xtask::source_root;
use xtask::tidy::tree::{Source, sources};
use xtask::tidy::{
    Finding, circles, claims, dependencies, doors, executors, form, halves, lengths, links,
    producers, prose, purity, words,
};

static TREE: LazyLock<Vec<Source>> = LazyLock::new(|| sources(&source_root()));

fn assert_none(findings: Vec<Finding>) {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(
        lines.is_empty(),
        "{} findings\n{}",
        lines.len(),
        lines.join("\n")
    );
}

/// The rule, asked about every file that no tool has written.
fn assert_each(rule: fn(&Source) -> Vec<Finding>) {
    let written = TREE.iter().filter(|source| !source.is_generated());
    assert_none(written.flat_map(rule).collect());
}

#[test]
fn no_line_is_too_wide() {
    assert_each(lengths::wide_lines);
}

#[test]
fn no_file_is_too_long() {
    assert_each(lengths::long_file);
}

#[test]
fn no_function_is_too_long() {
    assert_each(lengths::long_functions);
}

#[test]
fn pure_crates_name_nothing_outside() {
    assert_each(purity::outside_names);
}

#[test]
fn runtime_opens_no_file_beside_the_store() {
    assert_each(doors::opened_files);
}

#[test]
fn no_work_is_unfinished() {
    assert_each(words::unfinished_work);
}

#[test]
fn no_test_sleeps() {
    assert_each(words::sleeping_tests);
}

#[test]
fn only_tests_unwrap_values() {
    assert_each(words::unwraps);
}

#[test]
fn no_name_holds_a_version() {
    assert_each(words::versions_in_names);
}

#[test]
fn no_path_of_one_machine_is_named() {
    assert_each(words::machine_paths);
}

#[test]
fn no_host_of_a_registry_is_named() {
    assert_each(words::registry_hosts);
}

#[test]
fn every_module_opens_with_what_it_is() {
    assert_each(form::modules_without_opening);
}

#[test]
fn every_test_names_situation_and_outcome() {
    assert_each(form::short_test_names);
}

#[test]
fn every_crate_inherits_the_lints() {
    assert_each(form::lints_not_inherited);
}

#[test]
fn papers_of_the_house_are_there() {
    assert_none(form::missing_papers(&TREE));
}

#[test]
fn links_of_pages_lead_somewhere() {
    let exists = |path: &str| source_root().join(path).exists();
    assert_none(links::broken_links(&TREE, exists));
}

#[test]
fn crates_depend_only_on_crates_above_them() {
    let (crates, edges) = dependencies::manifests().unwrap();
    assert_none(dependencies::forbidden_edges(&crates, &edges));
}

#[test]
fn modules_import_each_other_in_accepted_circles_only() {
    assert_none(circles::circles(&TREE, &circles::ACCEPTED));
}

#[test]
fn home_and_site_share_messages_only() {
    assert_each(halves::names_of_the_other_half);
}

#[test]
fn only_executors_spell_their_names() {
    assert_none(executors::spelled_names(&TREE));
}

#[test]
fn every_outside_package_has_its_reason() {
    let (_, edges) = dependencies::manifests().unwrap();
    assert_none(dependencies::undocumented_packages(&edges, &TREE));
}

#[test]
fn every_package_of_the_workspace_is_used() {
    let (_, edges) = dependencies::manifests().unwrap();
    assert_none(dependencies::unused_packages(&edges, &TREE));
}

#[test]
fn every_python_package_has_an_exact_version() {
    assert_none(dependencies::unpinned_packages(&TREE));
}

#[test]
fn modules_that_comments_name_are_there() {
    assert_none(claims::missing_modules(&TREE));
}

#[test]
fn files_that_architecture_names_are_there() {
    assert_none(claims::missing_files(&TREE));
    assert_none(claims::long_page(&TREE));
}

#[test]
fn pure_crates_are_those_of_the_page() {
    assert_none(claims::pure_crates_on_the_page(&TREE));
}

#[test]
fn every_limit_has_a_user() {
    assert_none(claims::unused_limits(&TREE));
}

#[test]
fn every_doc_comment_says_something() {
    assert_each(claims::vacuous_docs);
}

#[test]
fn pages_and_messages_use_the_terms_of_the_field() {
    assert_each(prose::vague_phrases);
}

#[test]
fn every_event_of_the_graph_has_a_producer() {
    assert_none(producers::events_without_producer(&TREE));
}
