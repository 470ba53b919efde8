//! Messages about invalid programs: the folder `bad` and its snapshots.

use std::path::Path;

use ciel_skywriting::diagnostic::{Diagnostic, line_column, one_line, render};
use ciel_skywriting::front::check;
use ciel_skywriting::hir::{Source, Span};

use crate::support::Files;

const BROKEN: &str = "function broken(x {\n  return x;\n}\ny = ;\n";

fn rendered(name: &str, bytes: &[u8], colour: bool) -> String {
    let helper = "function helper() { return 1; }\n";
    let files = vec![("broken.sw", BROKEN.into()), ("helper.sw", helper.into())];
    match check(name, bytes, &mut Files(files)) {
        Ok(_) => "nothing is wrong\n".to_owned(),
        Err(problems) => problems.render(colour),
    }
}

#[test]
fn bad_programs_give_their_messages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/front/bad");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 30);
    for path in paths {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        insta::assert_snapshot!(name, rendered(&format!("{name}.sw"), &bytes, false));
    }
}

#[test]
fn unreadable_files_give_their_messages() {
    let large = vec![b' '; ciel_skywriting::limits::SOURCE_BYTES_MAX + 1];
    let files: [(&str, &[u8]); 8] = [
        ("empty.sw", b""),
        ("blank.sw", b"\xef\xbb\xbf \n\t\n"),
        ("program.exe", b"\x7fELF\x02\x01\x01\0\0\0"),
        ("latin.sw", b"x = 1;\ny = \"caf\xe9\";\n"),
        ("cut.sw", b"x = \"caf\xc3"),
        ("wide.sw", b"\xff\xfex\0=\0"),
        ("large.sw", &large),
        ("control.sw", b"x = \x1b[31m;\n"),
    ];
    let messages: Vec<String> = files
        .iter()
        .map(|(name, bytes)| rendered(name, bytes, false))
        .collect();
    insta::assert_snapshot!("unreadable", messages.join("\n"));
}

#[test]
fn colour_paints_the_same_message() {
    let painted = rendered("job.sw", b"x = foo;\n", true);
    assert!(painted.contains("\u{1b}[31merror"));
    let mut plain = String::new();
    let mut rest = painted.as_str();
    while let Some(escape) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..escape]);
        let end = rest[escape..].find('m').unwrap();
        rest = &rest[escape + end + 1..];
    }
    plain.push_str(rest);
    assert_eq!(plain, rendered("job.sw", b"x = foo;\n", false));
}

#[test]
fn line_and_column_count_characters_from_one() {
    let source = Source {
        name: "a.sw".to_owned(),
        text: "é = 1;\r\n日本x\n".to_owned(),
    };
    assert_eq!(line_column(&source, 0), (1, 1));
    assert_eq!(line_column(&source, 2), (1, 2));
    assert_eq!(line_column(&source, 9), (2, 1));
    assert_eq!(line_column(&source, 10), (2, 1));
    assert_eq!(line_column(&source, 15), (2, 3));
    assert_eq!(line_column(&source, 9_999), (3, 1));
}

#[test]
fn place_outside_the_sources_is_left_out() {
    let problem = Diagnostic::new(
        "test",
        "it broke",
        Span {
            source: 3,
            start: 1,
            end: 2,
        },
    );
    assert_eq!(one_line(&problem, &[]), "it broke");
    assert_eq!(render(&[problem], &[], false), "error: it broke\n");
}

#[test]
fn span_over_several_lines_shows_the_first() {
    let source = Source {
        name: "a.sw".to_owned(),
        text: "x = f(1,\n  2);\n".to_owned(),
    };
    let problem = Diagnostic::new(
        "test",
        "it broke",
        Span {
            source: 0,
            start: 4,
            end: 13,
        },
    );
    assert_eq!(
        one_line(&problem, std::slice::from_ref(&source)),
        "a.sw:1:5: it broke"
    );
    insta::assert_snapshot!("several_lines", render(&[problem], &[source], false));
}
