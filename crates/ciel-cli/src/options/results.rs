//! The options of commands about kept results.
//!
//! They do not know what the commands do. Read first: `options`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::amounts::{parse_age, parse_disk_size};

#[derive(Debug, Args)]
pub struct CleanOptions {
    /// Also remove interrupted runs that can be resumed
    #[arg(long)]
    pub all: bool,
    /// Only what was begun or used longer ago than this, e.g. 12h, 7d, 2w
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub older: Option<u64>,
    /// Only this run (id, or its first digits) and results that it has kept
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Only kept results of the function or command of this name
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,
    /// Only kept results beyond this size in all, those not used for longest first
    #[arg(long, value_name = "SIZE", value_parser = parse_disk_size)]
    pub keep_size: Option<u64>,
    /// Remove only the bytes of kept results and keep their digests, so that tasks that take them
    /// as inputs are found as before
    #[arg(long)]
    pub bytes_only: bool,
    /// Show what would be removed, and remove nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct PackOptions {
    /// Run id, or its first digits [default: the newest run]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Write the results to FILE [default: results-RUN.tar]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct UnpackOptions {
    /// A file that `ciel pack` has written
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Take the results into a folder that several users share, as yours
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub kept_dir: Option<PathBuf>,
    /// Take results in any form if the file says that this user made it: name only whom you trust,
    /// and only for a file that you have from them
    #[arg(long, value_name = "NAME")]
    pub trust_owner: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
