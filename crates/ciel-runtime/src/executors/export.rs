//! `export`: `{"input": reference, "path": …, "overwrite": …}`, a result in a file of the user's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ciel_model::{InputMode, Options, Refused, Resources};
use serde_json::Value;

use super::names::EXPORT;
use super::release::{FileExport, Release};
use super::{Executor, Launch, words};
use crate::references::reference;

pub(super) struct Export {
    name: Arc<str>,
}

impl Export {
    pub(super) fn new() -> Export {
        let name = EXPORT.into();
        Export { name }
    }
}

impl Executor for Export {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn input_mode(&self, _asked: Option<InputMode>) -> InputMode {
        InputMode::Value
    }

    fn label_of(&self, arguments: &Value) -> Option<String> {
        let name = Path::new(arguments.get("path")?.as_str()?).file_name()?;
        name.to_str().map(str::to_string)
    }

    /// It mostly waits for its turn, so it takes no resources, and the wait is not limited.
    fn options(&self, asked: Arc<Options>) -> Arc<Options> {
        Arc::new(Options {
            resources: Resources {
                millicores: 0,
                ..Resources::default()
            },
            timeout_us: None,
            ..(*asked).clone()
        })
    }

    fn launch(&self) -> Launch<'_> {
        Launch::Release(self)
    }
}

impl Release for Export {
    fn plan(&self, arguments: &Value) -> Result<FileExport, Refused> {
        let input = arguments.get("input").unwrap_or(&Value::Null);
        let path = arguments.get("path").unwrap_or(&Value::Null);
        let overwrite = match arguments.get("overwrite") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(overwrite)) => *overwrite,
            Some(other) => return Err(words::wrong("overwrite", "true or false", other)),
        };
        let named = path.as_str().map(PathBuf::from);
        Ok(FileExport {
            input: reference(input).ok_or_else(|| words::wrong("input", "a reference", input))?,
            path: named
                .filter(|path| path.file_name().is_some())
                .ok_or_else(|| words::wrong("path", "the path of a file", path))?,
            overwrite,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn export_is_planned_from_its_arguments() {
        let planned = |arguments: Value| Export::new().plan(&arguments);
        let expected = FileExport {
            input: 0,
            path: "out/a.csv".into(),
            overwrite: true,
        };
        let arguments = json!({"input": {"$ref": 0}, "path": "out/a.csv", "overwrite": true});
        assert_eq!(planned(arguments).expect("good"), expected);
        for (arguments, named) in [
            (json!({"input": {"$ref": 0}}), "path"),
            (json!({"input": {"$ref": 0}, "path": ".."}), "path"),
            (json!({"input": "text", "path": "a"}), "input"),
            (
                json!({"input": {"$ref": 0}, "path": "a", "overwrite": 1}),
                "overwrite",
            ),
        ] {
            let refused = planned(arguments).expect_err("bad");
            assert!(refused.message.contains(named), "{refused:?}");
        }
    }
}
