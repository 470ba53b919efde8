//! `grab`: `{"path": …}`, a file of the user's as an object. A `file://` URL is a path, too, and
//! `{"urls": [path]}` another form of the arguments.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use ciel_graph::{Assignment, Output};
use ciel_model::{Failure, Refused};
use serde_json::Value;

use super::coroutine::Host;
use super::first_step::{FirstStep, Stepped};
use super::names::GRAB;

pub(super) fn executor() -> FirstStep {
    FirstStep::new(GRAB, grab)
}

fn grab(host: &dyn Host, assignment: &Assignment) -> Result<Stepped, Box<Failure>> {
    let payload = &assignment.descriptor.payload;
    let arguments: Value = serde_json::from_slice(payload).unwrap_or(Value::Null);
    let path = path_in(&arguments).map_err(|refused| refused.failure(&assignment.label))?;
    let value = host.import(assignment, &path)?;
    Ok((Output::Value(value), Some(vec![path])))
}

/// The file that the arguments name.
fn path_in(arguments: &Value) -> Result<PathBuf, Refused> {
    let urls = arguments.get("urls").and_then(Value::as_array);
    let given = match (arguments.get("path"), urls.map(Vec::as_slice)) {
        (Some(path), _) => path.as_str(),
        (None, Some([url])) => url.as_str(),
        (None, Some(several)) => {
            let message = format!("grab takes one file, not {}", several.len());
            return Err(Refused::new(message).hint("spawn a task for each of them"));
        }
        (None, None) => None,
    };
    let Some(given) = given else {
        return Err(Refused::new("grab needs {\"path\": \"FILE\"}"));
    };
    match given.split_once("://") {
        None => Ok(given.into()),
        Some(("file", place)) => local(given, place),
        Some(_) => Err(Refused::new(format!("{given:?} does not name a file here"))
            .hint("download it first, and grab the file by its path")),
    }
}

/// The path of a `file://` URL, of which `place` comes after the slashes.
fn local(url: &str, place: &str) -> Result<PathBuf, Refused> {
    let path = place.strip_prefix("localhost").unwrap_or(place);
    match (path.starts_with('/'), unescaped(path)) {
        (true, Some(bytes)) => Ok(OsString::from_vec(bytes).into()),
        _ => Err(Refused::new(format!("{url:?} does not name a file here"))
            .hint("write file:///folder/name, with an absolute path")),
    }
}

/// The bytes of a path in which `%` and two hexadecimal digits stand for one.
fn unescaped(path: &str) -> Option<Vec<u8>> {
    let mut pieces = path.split('%');
    let mut bytes = pieces.next().unwrap_or("").as_bytes().to_vec();
    for piece in pieces {
        let code = piece.get(..2).filter(|code| !code.starts_with('+'))?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn file_is_named_by_its_path_or_by_a_url() {
        for (arguments, path) in [
            (json!({"path": "a/b.txt"}), "a/b.txt"),
            (json!({"path": "file:///a/b%20c.txt"}), "/a/b c.txt"),
            (json!({"urls": ["file://localhost/a"], "version": 0}), "/a"),
        ] {
            let found = path_in(&arguments).map_err(|refused| refused.message);
            assert_eq!(found, Ok(path.into()), "{arguments}");
        }
        for arguments in [
            json!({}),
            json!({"path": 5}),
            json!({"urls": []}),
            json!({"urls": ["a", "b"]}),
            json!({"path": "https://example.org/a"}),
            json!({"path": "file://a"}),
            json!({"path": "file:///%x"}),
            json!({"path": "file:///%+1"}),
        ] {
            assert!(path_in(&arguments).is_err(), "{arguments}");
        }
    }
}
