//! `ciel clean`: removes what ended runs left.

use std::process::ExitCode;

use ciel_store::{Cleaned, Cleaning, StateFolder, StoreError};

use crate::cli_error::CliError;
use crate::display::{self, counted};
use crate::options::{CleanOptions, Shared};

/// Removes the ended runs of the state folder, of whatever version it is.
pub fn clean(shared: &Shared, options: &CleanOptions) -> Result<ExitCode, CliError> {
    let cleaning = match options.all {
        true => Cleaning::All,
        false => Cleaning::Ended,
    };
    let cleaned = match StateFolder::open_existing(&shared.state) {
        Ok(None) => Cleaned::default(),
        Ok(Some(folder)) => {
            ciel_runtime::orphans::clear(&folder)?;
            folder.clean(cleaning)?
        }
        Err(StoreError::OtherFormat { .. }) => StateFolder::renew(&shared.state, cleaning)?,
        Err(error) => return Err(error.into()),
    };
    let mut text = match cleaned.removed.len() {
        0 => "nothing to remove\n".to_string(),
        count => format!("removed {}\n", counted(count as u64, "run")),
    };
    for run in &cleaned.alive {
        text.push_str(&format!("run {run} is live and was kept\n"));
    }
    for run in &cleaned.unended {
        text.push_str(&format!(
            "run {run} can be resumed and was kept: `ciel resume {run}` continues it, `ciel clean \
             --all` removes it\n"
        ));
    }
    display::print(text.as_bytes())
}
