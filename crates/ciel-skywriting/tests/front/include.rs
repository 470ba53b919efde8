//! Files that include one another, and the standard library.

use ciel_skywriting::front::{Loader, check};

use crate::support::{Files, check_text, program};

struct Unreachable;

impl Loader for Unreachable {
    fn load(&mut self, name: &str, _from: &str) -> Result<(String, Vec<u8>), String> {
        panic!("the loader was asked for {name}")
    }
}

fn sources(root: &str, files: Vec<(&'static str, Vec<u8>)>) -> Vec<String> {
    let program = check("job.sw", root.as_bytes(), &mut Files(files))
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    program
        .sources
        .into_iter()
        .map(|source| source.name)
        .collect()
}

#[test]
fn standard_library_is_served_from_within() {
    let text = r#"
        include "stdinout"; include "environ.sw"; include "grab"; include "ref";
        include "mapreduce"; include "sync";
        a = stdinout([grab("f")], ["cat"]); b = environ([ref("g")], ["cp"], 2);
        c = mapreduce([a], lambda x: [x], lambda list: list[0], 1);
        return *sync(map(lambda x: x, shuffle([c, b], 1)));
    "#;
    let program = check("job.sw", text.as_bytes(), &mut Unreachable)
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    assert_eq!(program.sources.len(), 7);
    assert_eq!(program.sources[1].name, "<stdlib>/stdinout.sw");
}

#[test]
fn second_include_and_cycle_are_nothing() {
    let files = vec![
        (
            "a.sw",
            b"include \"b.sw\"; include \"a.sw\"; x = 1;".to_vec(),
        ),
        (
            "b.sw",
            b"include \"a.sw\"; include \"job.sw\"; y = 1;".to_vec(),
        ),
        ("job.sw", b"panic();".to_vec()),
    ];
    let root = "include \"a.sw\"; include \"b.sw\"; include \"job.sw\"; return x + y;";
    assert_eq!(sources(root, files), ["job.sw", "a.sw", "b.sw"]);
}

#[test]
fn include_stands_in_any_block_outside_functions() {
    let files = vec![("a.sw", b"x = 1;".to_vec()), ("b.sw", b"break;".to_vec())];
    let root = "if (true) { try { include \"a.sw\"; } catch (e) { } }
                while (true) { include \"b.sw\"; } return x;";
    assert_eq!(sources(root, files), ["job.sw", "a.sw", "b.sw"]);
}

/// A program that names its library once, in a variable, could not be read: an `include` took a
/// literal only.
#[test]
fn include_takes_a_string_that_is_known_before_the_run() {
    let files = || vec![("lib/a.sw", b"x = 1;".to_vec()), ("b", b"y = 2;".to_vec())];
    let root = "folder = \"lib/\"; name = folder + \"a\" + \".sw\"; include name;
        if (x) { name = \"b\"; include name; } return x;";
    assert_eq!(sources(root, files()), ["job.sw", "lib/a.sw", "b"]);
    for unknown in [
        "name = \"b\"; while (true) { name = name + \"c\"; } include name;",
        "name = \"b\"; name += \"c\"; include name;",
        "name = \"b\"; if (true) { name = \"c\"; } include name;",
        "name = \"b\"; while (true) { include name; name = \"c\"; }",
        "function f(name) { return name; } include f(\"b\");",
        "include \"b\" - \"c\";",
    ] {
        let problems = check_text(unknown).unwrap_err();
        let message = &problems.diagnostics[0].message;
        assert!(message.contains("known before"), "{unknown}: {message}");
    }
}

#[test]
fn empty_included_file_is_nothing() {
    assert_eq!(
        sources("include \"a.sw\";", vec![("a.sw", Vec::new())]).len(),
        2
    );
}

#[test]
fn program_may_replace_a_function_of_the_library() {
    program("include \"mapreduce\"; function map(list) { return list; } return map([1]);");
}

#[test]
fn unknown_library_function_names_its_library() {
    let functions = [
        ("stdinout", "stdinout"),
        ("stdinout_stream", "stdinout"),
        ("environ", "environ"),
        ("grab", "grab"),
        ("ref", "ref"),
        ("grab_index", "grab"),
        ("map", "mapreduce"),
        ("shuffle", "mapreduce"),
        ("mapreduce", "mapreduce"),
        ("sync", "sync"),
    ];
    for (function, library) in functions {
        let problems = check_text(&format!("return {function};")).unwrap_err();
        let hint = problems.diagnostics[0].hint.clone().unwrap();
        assert!(hint.contains(&format!("include \"{library}\";")), "{hint}");
        program(&format!("include \"{library}\"; return {function};"));
    }
}
