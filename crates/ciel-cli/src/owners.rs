//! Users by name, as the system knows them.
//!
//! The program `id` is asked, which knows users of a network, too. It does not know what a user is
//! trusted with.

use std::process::Command;

use crate::cli_error::CliError;

/// The numbers of these users, who are given by name or number.
///
/// # Errors
/// There is no such user.
pub fn numbers(names: &[String]) -> Result<Vec<u32>, CliError> {
    names.iter().map(|name| number(name)).collect()
}

/// The name of the user who runs this process, else their number.
pub fn own_name() -> String {
    let told = Command::new("id").arg("-un").output().ok();
    let name = told.and_then(|told| String::from_utf8(told.stdout).ok());
    let name = name.map(|name| name.trim().to_string());
    let named = name.filter(|name| !name.is_empty());
    named.unwrap_or_else(|| rustix::process::geteuid().as_raw().to_string())
}

fn number(name: &str) -> Result<u32, CliError> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let told = Command::new("id").args(["-u", "--", name]).output().ok();
    let text = told.and_then(|told| String::from_utf8(told.stdout).ok());
    let number = text.and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| {
        let message = format!("there is no user {name}");
        CliError::usage("owner.unknown", message).with_hint("`ls -l` shows who owns a file")
    })
}
