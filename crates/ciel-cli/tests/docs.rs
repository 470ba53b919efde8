//! The programs on the pages are run: what a page says comes out is what comes out.
//!
//! A fenced block `skywriting` or `python` is a whole program; the block `output` after it is its
//! standard output. `skywriting fails` and `python fails` mark a program whose job fails. Each is
//! run in a folder of its own, on every core and once more with `--serial`. A block such as
//! `python using joblib` is a program for another tool, and is run by that where it is installed;
//! `python using threads` and `sh using ciel` are programs of their own, without a job.
//! This file does not know what the programs mean; the pages are `README.md` and all of `docs/`.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use support::skipped;

/// A program on a page.
struct Example {
    place: String,
    language: Language,
    program: String,
    output: String,
    fails: bool,
}

/// What a program is written in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Language {
    Skywriting,
    Python,
    For(Tool),
}

/// How a file of Snakemake is run, before its name.
const SNAKEMAKE: [&str; 5] = ["-m", "snakemake", "--cores=2", "--quiet=all", "--snakefile"];

/// Another tool, to which a page compares Ciel.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tool {
    /// A Python package of that name.
    Package(&'static str),
    Snakemake,
    Parallel,
    /// A shell that finds the command.
    Shell,
}

impl Tool {
    /// The tool that a fenced block names.
    fn of(kind: &str) -> Option<Tool> {
        match kind {
            "python using threads" => Some(Tool::Package("ciel")),
            "python using joblib" => Some(Tool::Package("joblib")),
            "python using dask" => Some(Tool::Package("dask")),
            "python using ray" => Some(Tool::Package("ray")),
            "snakefile using snakemake" => Some(Tool::Snakemake),
            "sh using parallel" => Some(Tool::Parallel),
            "sh using ciel" => Some(Tool::Shell),
            _ => None,
        }
    }

    /// Why the tool cannot run here, if it cannot.
    fn missing(self) -> Option<String> {
        let module = match self {
            Tool::Package(name) => name,
            Tool::Snakemake => "snakemake",
            Tool::Shell => return None,
            Tool::Parallel => {
                let tried = Command::new("parallel").arg("--version").output();
                let is_installed = tried.is_ok_and(|output| output.status.success());
                return (!is_installed).then(|| "GNU parallel is not installed".to_string());
            }
        };
        let missing = format!("no {module} is installed for the Python of the tests");
        (!can_import(module)).then_some(missing)
    }

    /// The command that runs the file of a program.
    fn command(self, file: &str) -> Command {
        let (program, words): (PathBuf, &[&str]) = match self {
            Tool::Package(_) => (python(), &[]),
            Tool::Snakemake => (python(), &SNAKEMAKE),
            Tool::Parallel | Tool::Shell => ("sh".into(), &[]),
        };
        let mut command = Command::new(program);
        command.args(words).arg(file);
        command
    }
}

impl Language {
    /// Language of a fenced block, and whether its job is to fail; none if it is no program.
    fn of(kind: &str) -> Option<(Language, bool)> {
        match kind {
            "skywriting" => Some((Language::Skywriting, false)),
            "skywriting fails" => Some((Language::Skywriting, true)),
            "python" => Some((Language::Python, false)),
            "python fails" => Some((Language::Python, true)),
            _ => Tool::of(kind).map(|tool| (Language::For(tool), false)),
        }
    }

    fn file(self) -> &'static str {
        match self {
            Language::Skywriting => "program.sw",
            Language::Python | Language::For(Tool::Package(_)) => "program.py",
            Language::For(Tool::Snakemake) => "Snakefile",
            Language::For(Tool::Parallel | Tool::Shell) => "program.sh",
        }
    }
}

/// A fenced block.
#[derive(Debug, PartialEq)]
struct Block {
    line: usize,
    kind: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|suffix| suffix.to_str()) {
                Some("md") => pages.push(path),
                _ if path.is_dir() => folders.push(path),
                _ => {}
            }
        }
    }
    pages.sort();
    pages
}

/// The interpreter that can import the module: the one that the test command names, or that of the
/// repository's virtual environment.
fn python() -> PathBuf {
    let named = std::env::var_os("CIEL_PYTHON").map(PathBuf::from);
    named.unwrap_or_else(|| root().join(".venv/bin/python3"))
}

fn can_import(module: &str) -> bool {
    let import = format!("import {module}");
    let tried = Command::new(python()).args(["-c", &import]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// The fenced blocks of a page, in order.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(kind), None) => {
                let (kind, text) = (kind.trim().to_string(), String::new());
                open = Some(Block {
                    line: index + 1,
                    kind,
                    text,
                });
            }
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    blocks
}

/// The programs of a page with their outputs, or which of them has none.
fn examples(name: &str, page: &str) -> Result<Vec<Example>, String> {
    let blocks = blocks(page);
    let mut examples = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let Some((language, fails)) = Language::of(&block.kind) else {
            continue;
        };
        let place = format!("{name}:{}", block.line);
        match blocks.get(index + 1).filter(|next| next.kind == "output") {
            Some(next) => examples.push(Example {
                place,
                language,
                program: block.text.clone(),
                output: next.text.clone(),
                fails,
            }),
            None => {
                return Err(format!(
                    "{place}: the program is not followed by its output"
                ));
            }
        }
    }
    Ok(examples)
}

fn run(example: &Example, options: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = example.language.file();
    std::fs::write(folder.path().join(file), &example.program).unwrap();
    let mut command = match example.language {
        Language::For(tool) => tool.command(file),
        _ => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_ciel"));
            command.arg("run").args(options).args(["--quiet", file]);
            command
        }
    };
    let beside = Path::new(env!("CARGO_BIN_EXE_ciel")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env("CIEL_PYTHON", python())
        .env("PATH", format!("{}:{path}", beside.display()))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// What is wrong with an example, if anything.
fn complaint(example: &Example, options: &[&str]) -> Option<String> {
    let given = run(example, options);
    let output = String::from_utf8_lossy(&given.stdout);
    let code = if example.fails { 1 } else { 0 };
    if output == example.output.as_str() && given.status.code() == Some(code) {
        return None;
    }
    let (place, wanted) = (&example.place, &example.output);
    let errors = String::from_utf8_lossy(&given.stderr);
    Some(format!(
        "{place} with {options:?}: {}\n-- the page says:\n{wanted}-- it gave:\n{output}-- \
         and on standard error:\n{errors}",
        given.status
    ))
}

#[test]
fn programs_on_the_pages_give_the_outputs_shown() {
    let has_python = can_import("ciel");
    let mut complaints = Vec::new();
    let mut count = 0;
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        for example in examples(&name, &page).unwrap() {
            count += 1;
            let missing = match example.language {
                Language::Python if !has_python => {
                    Some("no Python here has the module ciel".into())
                }
                Language::For(tool) => tool.missing(),
                _ => None,
            };
            if let Some(missing) = missing {
                skipped(&example.place, &missing);
                continue;
            }
            complaints.extend(complaint(&example, &[]));
            if !matches!(example.language, Language::For(_)) {
                complaints.extend(complaint(&example, &["--serial"]));
            }
        }
    }
    assert!(count >= 10, "only {count} programs were found");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn program_without_output_is_refused() {
    let page = "Text\n```skywriting\nreturn 1;\n```\nmore\n```sh\nciel\n```\n";
    assert_eq!(
        examples("page.md", page).err().as_deref(),
        Some("page.md:2: the program is not followed by its output")
    );
}

#[test]
fn blocks_of_other_kinds_are_passed_over() {
    let page = "```sh\nciel\n```\n```skywriting fails\nthrow 1;\n```\n\n```output\n```\n";
    let examples = examples("page.md", page).unwrap();
    let [example] = &examples[..] else {
        panic!("{} programs", examples.len())
    };
    assert_eq!(
        (example.program.as_str(), example.output.as_str()),
        ("throw 1;\n", "")
    );
    assert!(example.fails);
}
