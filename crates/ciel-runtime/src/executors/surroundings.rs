//! Where a command runs: in a Conda environment, in a container, or as it is.
//!
//! Both are words before the command. It does not know what the command is. Read next: `words`.

use std::ffi::OsString;

use ciel_model::Refused;
use serde_json::Value;

use super::words;

/// Activates the environment at `CONDA_PREFIX` as Conda does, and becomes the command.
const ACTIVATE: &str = "PATH=$CONDA_PREFIX/bin:$PATH; export PATH; \
                        for ciel_hook in \"$CONDA_PREFIX\"/etc/conda/activate.d/*.sh; do \
                        [ ! -e \"$ciel_hook\" ] || . \"$ciel_hook\"; done; \
                        unset ciel_hook; exec \"$@\"";

/// The words before a command in the surroundings that its arguments `conda` or `container` name.
///
/// The variables of a container's command are among these words, since a container does not have
/// the environment of the process that starts it.
///
/// # Errors
/// The arguments are no path and no words, both are given, or there is no such environment.
pub(super) fn before(
    arguments: &Value,
    environment: &mut Vec<(String, OsString)>,
) -> Result<Vec<OsString>, Refused> {
    let given = |key: &str| arguments.get(key).filter(|given| !given.is_null());
    match (given("conda"), given("container")) {
        (None, None) => Ok(Vec::new()),
        (Some(prefix), None) => activation(prefix, environment),
        (None, Some(prefix)) => container(prefix, environment),
        (Some(_), Some(_)) => Err(Refused::new("it has both \"conda\" and \"container\"")
            .hint("activate the environment in the container's entry point")),
    }
}

/// The words that activate the environment at a path.
fn activation(
    prefix: &Value,
    environment: &mut Vec<(String, OsString)>,
) -> Result<Vec<OsString>, Refused> {
    let wrong = || words::wrong("conda", "the path of an environment", prefix);
    let given = prefix.as_str().filter(|path| !path.contains('\0'));
    let path = std::path::absolute(given.ok_or_else(wrong)?).map_err(|_| wrong())?;
    if !path.join("conda-meta").is_dir() {
        let message = format!("{} is not a Conda environment", path.display());
        return Err(Refused::new(message).hint("`conda env list` shows their folders"));
    }
    environment.push(("CONDA_PREFIX".to_string(), path.clone().into()));
    environment.push(("CONDA_DEFAULT_ENV".to_string(), path.into()));
    Ok(["sh", "-c", ACTIVATE, "sh"].map(OsString::from).into())
}

/// The words that start a container, and `env` with the variables.
fn container(
    prefix: &Value,
    environment: &mut Vec<(String, OsString)>,
) -> Result<Vec<OsString>, Refused> {
    let prefix = prefix_words(prefix)?;
    let mut words: Vec<OsString> = prefix.into_iter().map(OsString::from).collect();
    words.push("env".into());
    for (name, value) in environment.drain(..) {
        let mut word = OsString::from(format!("{name}="));
        word.push(value);
        words.push(word);
    }
    Ok(words)
}

/// The words of a container's prefix: a list, or text split at its blanks.
fn prefix_words(prefix: &Value) -> Result<Vec<&str>, Refused> {
    let words: Option<Vec<&str>> = match prefix {
        Value::String(text) if text.contains(['"', '\'', '\\']) => None,
        Value::String(text) => Some(text.split_whitespace().collect()),
        Value::Array(list) => list.iter().map(Value::as_str).collect(),
        _ => None,
    };
    match words {
        Some(words) if !words.is_empty() && !words.iter().any(|word| word.contains('\0')) => {
            Ok(words)
        }
        _ => Err(words::wrong(
            "container",
            "words such as \"docker run --rm image\"",
            prefix,
        )
        .hint("words with blanks or quotes are given as a list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn planned(arguments: Value) -> Result<(Vec<String>, usize), String> {
        let mut environment = vec![("ciel_0".to_string(), OsString::from("a b"))];
        let words = before(&arguments, &mut environment).map_err(|refused| refused.message)?;
        let words = words.into_iter().map(|word| word.into_string().unwrap());
        Ok((words.collect(), environment.len()))
    }

    #[test]
    fn words_of_a_container_are_followed_by_the_variables() {
        for prefix in [json!("run  image"), json!(["run", "image"])] {
            let (words, variables) = planned(json!({ "container": prefix })).unwrap();
            assert_eq!(words, ["run", "image", "env", "ciel_0=a b"]);
            assert_eq!(variables, 0);
        }
        let (words, _) = planned(json!({"container": ["a b"]})).unwrap();
        assert_eq!(words[0], "a b");
    }

    #[test]
    fn environment_of_conda_is_activated() {
        let prefix = tempfile::tempdir().unwrap();
        std::fs::create_dir(prefix.path().join("conda-meta")).unwrap();
        let (words, variables) = planned(json!({"conda": prefix.path()})).unwrap();
        assert_eq!((words[2].as_str(), variables), (ACTIVATE, 3));
    }

    #[test]
    fn surroundings_that_cannot_be_are_refused() {
        for (arguments, message) in [
            (json!({"conda": "nowhere"}), "is not a Conda environment"),
            (json!({"conda": 1}), "must be the path of an environment"),
            (json!({"container": ""}), "must be words"),
            (json!({"container": []}), "must be words"),
            (json!({"container": [1]}), "must be words"),
            (json!({"container": "run 'a b'"}), "must be words"),
            (json!({"container": "a", "conda": "b"}), "has both"),
        ] {
            let refused = planned(arguments).expect_err("bad");
            assert!(refused.contains(message), "{refused}");
        }
    }
}
