//! Rules of length: columns, files, functions.
//!
//! It counts lines of code by brackets (Rust) and by indentation (Python) and does not know what
//! they mean. Read [`super::text`] for the masks it works on.

use super::Finding;
use super::text::{is_word, item_end, line_of, mask_python, mask_rust, words};
use super::tree::{Language, Source};

/// The widest line of Rust or Python, in characters.
pub const COLUMNS_MAX: usize = 100;
/// The longest file of Rust or Python, in lines.
pub const FILE_LINES_MAX: usize = 600;
/// The longest function of Rust or Python, in lines, from its first word to its end.
pub const FUNCTION_LINES_MAX: usize = 70;

/// Lines of Rust or Python that are too wide.
pub fn wide_lines(source: &Source) -> Vec<Finding> {
    let wide = source.text.lines().enumerate().filter_map(|(index, line)| {
        let columns = line.chars().count();
        let message = format!("{columns} columns, at most {COLUMNS_MAX}");
        (columns > COLUMNS_MAX).then(|| Finding::new(&source.path, index + 1, message))
    });
    if is_code(source) {
        wide.collect()
    } else {
        Vec::new()
    }
}

/// A finding if the file is Rust or Python and too long.
pub fn long_file(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    if !is_code(source) || lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    let message = format!("{lines} lines, at most {FILE_LINES_MAX}");
    vec![Finding::new(&source.path, 0, message)]
}

/// Functions of Rust or Python that are too long.
pub fn long_functions(source: &Source) -> Vec<Finding> {
    let functions = match source.language() {
        Language::Rust => rust_functions(&source.text),
        Language::Python => python_functions(&source.text),
        _ => Vec::new(),
    };
    functions
        .into_iter()
        .filter(|function| function.lines > FUNCTION_LINES_MAX)
        .map(|Function { name, line, lines }| {
            let message = format!("`{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}");
            Finding::new(&source.path, line, message)
        })
        .collect()
}

fn is_code(source: &Source) -> bool {
    matches!(source.language(), Language::Rust | Language::Python)
}

#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

fn name_at(text: &str) -> String {
    let text = text.trim_start();
    let length = text.bytes().take_while(|byte| is_word(*byte)).count();
    text[..length].to_owned()
}

fn rust_functions(text: &str) -> Vec<Function> {
    let masked = mask_rust(text);
    let mut functions = Vec::new();
    for at in words(&masked, "fn") {
        let name = name_at(&masked[at + 2..]);
        if name.is_empty() {
            continue;
        }
        let line = line_of(&masked, at);
        let end = line_of(&masked, item_end(masked.as_bytes(), at) - 1);
        let lines = end + 1 - line;
        functions.push(Function { name, line, lines });
    }
    functions
}

fn python_functions(text: &str) -> Vec<Function> {
    let masked = mask_python(text);
    let lines: Vec<&str> = masked.lines().collect();
    let mut functions = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let code = code.strip_prefix("async ").unwrap_or(code);
        let Some(rest) = code.strip_prefix("def ") else {
            continue;
        };
        functions.push(Function {
            name: name_at(rest),
            line: index + 1,
            lines: 1 + python_body(&lines[index + 1..], indentation(line)),
        });
    }
    functions
}

/// How many of the lines belong to the function above them, which begins at column `outer`.
fn python_body(lines: &[&str], outer: usize) -> usize {
    let mut body = 0;
    for (index, line) in lines.iter().enumerate() {
        let code = line.trim();
        if code.is_empty() {
            continue;
        }
        if indentation(line) <= outer && !code.starts_with([')', ']', '}']) {
            break;
        }
        body = index + 1;
    }
    body
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: String) -> Source {
        let path = path.to_owned();
        Source { path, text }
    }

    #[test]
    fn wide_line_is_found_in_code_but_not_in_prose() {
        let line = format!("short\n{}\n", "é".repeat(COLUMNS_MAX + 1));
        let found = wide_lines(&source("a.rs", line.clone()));
        assert_eq!(found, [Finding::new("a.rs", 2, "101 columns, at most 100")]);
        assert!(wide_lines(&source("a.md", line)).is_empty());
        assert!(wide_lines(&source("a.py", "é".repeat(COLUMNS_MAX))).is_empty());
    }

    #[test]
    fn long_file_is_found_from_one_line_too_many() {
        assert!(long_file(&source("a.py", "x\n".repeat(FILE_LINES_MAX))).is_empty());
        assert_eq!(
            long_file(&source("a.py", "x\n".repeat(FILE_LINES_MAX + 1))).len(),
            1
        );
    }

    #[test]
    fn long_function_of_rust_is_found_at_its_first_line() {
        let body = |lines| {
            format!(
                "\nfn a(b: [u8; 2]) {{\n{}}}\nfn c() {{}}\n",
                "x;\n".repeat(lines)
            )
        };
        assert!(long_functions(&source("a.rs", body(68))).is_empty());
        let found = long_functions(&source("a.rs", body(69)));
        assert_eq!(
            found,
            [Finding::new("a.rs", 2, "`a` has 71 lines, at most 70")]
        );
    }

    #[test]
    fn functions_of_rust_end_at_their_own_bracket() {
        let text = "trait T {\n fn a();\n fn b() {\n '{';\n }\n}\nlet c: fn() = x;";
        let found: Vec<_> = rust_functions(text)
            .into_iter()
            .map(|one| (one.name, one.line, one.lines))
            .collect();
        assert_eq!(found, [("a".to_owned(), 2, 1), ("b".to_owned(), 3, 3)]);
    }

    #[test]
    fn functions_of_python_end_where_the_indentation_does() {
        let text =
            "def a(\n  b,\n):\n  '''\nx\n'''\n\n  y\n\nz\nclass C:\n  async def d():\n    e\n";
        let found: Vec<_> = python_functions(text)
            .into_iter()
            .map(|one| (one.name, one.line, one.lines))
            .collect();
        assert_eq!(found, [("a".to_owned(), 1, 8), ("d".to_owned(), 12, 2)]);
        let long = format!("def a():\n{}", "  x\n".repeat(70));
        assert_eq!(long_functions(&source("a.py", long)).len(), 1);
    }
}
