//! The options of a run as its folder notes them, and back.
//!
//! It does not know how a run is found again. Read next: `resume`.

use std::ffi::OsString;
use std::path::Path;

use ciel_view::{Durable, GivenOptions, RunDescription};

use crate::options::{CommandShell, Durability, ErrorOrder, ResumeOptions, RunOptions, Trust};

/// The options of `ciel run`, but for those that `ciel resume` takes itself.
pub fn run_options(description: RunDescription, told: &ResumeOptions) -> RunOptions {
    let given = description.options;
    let mut command: Vec<OsString> = description.command.into_iter().map(Into::into).collect();
    let module = given.module.is_some();
    if let (Some(module), Some(file)) = (given.module, command.first_mut()) {
        *file = module.into();
    }
    RunOptions {
        command,
        module,
        jobs: told.jobs.or(given.jobs),
        serial: false,
        resource: given.resources.into_iter().collect(),
        keep_going: given.keep_going,
        fail_fast: given.fail_fast,
        retries: given.retries,
        timeout: given.timeout_us,
        job_timeout: given.job_timeout_us,
        stderr: match given.ordered_errors {
            true => ErrorOrder::Ordered,
            false => ErrorOrder::Live,
        },
        shell: match given.strict_shell {
            true => CommandShell::Strict,
            false => CommandShell::Sh,
        },
        output: given.output,
        overwrite: given.overwrite,
        package: given.packages.into_iter().collect(),
        heap: given.heap_bytes_max,
        python: given.python,
        durable: match given.durable {
            Durable::Process => Durability::Process,
            Durable::Never => Durability::Never,
            Durable::Power => Durability::Power,
        },
        keep: given.keep_bytes,
        kept: given.kept,
        kept_dir: given.kept_folder,
        trust_owner: given.trusted_owners,
        dry_run: false,
        trust: match given.trusts_times {
            true => Trust::Mtime,
            false => Trust::Content,
        },
        check: given.check,
        duplicates: given.duplicates,
        held_bytes: given.held_bytes,
        store_memory: given.memory_bytes,
        store_bytes: given.store_bytes,
        trace: told.trace.clone(),
        new: false,
        json: told.json,
        quiet: told.quiet,
        verbose: told.verbose,
    }
}

/// The recorded options of a run, which `ciel resume` uses.
pub fn given(options: &RunOptions) -> GivenOptions {
    let module = options.command.first().filter(|_| options.module);
    GivenOptions {
        module: module.map(|name| name.to_string_lossy().into_owned()),
        jobs: options.jobs,
        resources: options.resource.iter().cloned().collect(),
        keep_going: options.keep_going,
        fail_fast: options.fail_fast,
        retries: options.retries,
        timeout_us: options.timeout,
        job_timeout_us: options.job_timeout,
        ordered_errors: options.stderr == ErrorOrder::Ordered,
        strict_shell: options.shell == CommandShell::Strict,
        output: options.output.clone(),
        overwrite: options.overwrite,
        packages: options.package.iter().cloned().collect(),
        heap_bytes_max: options.heap,
        python: options.python.as_deref().map(Path::to_path_buf),
        durable: durable(options.durable),
        keep_bytes: options.keep,
        kept: options.kept,
        kept_folder: options.kept_dir.clone(),
        trusted_owners: options.trust_owner.clone(),
        trusts_times: options.trust == Trust::Mtime,
        check: options.check,
        duplicates: options.duplicates,
        held_bytes: options.held_bytes,
        memory_bytes: options.store_memory,
        store_bytes: options.store_bytes,
    }
}

/// The option as the engine knows it.
pub fn durable(option: Durability) -> Durable {
    match option {
        Durability::Process => Durable::Process,
        Durability::Never => Durable::Never,
        Durability::Power => Durable::Power,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::{Command, Options};

    fn run_options_of(words: &[&str]) -> RunOptions {
        let words = ["ciel", "run"].into_iter().chain(words.iter().copied());
        match Options::parse_from(words).command {
            Command::Run(options) => *options,
            other => panic!("not a run: {other:?}"),
        }
    }

    #[test]
    fn options_of_a_run_come_back_when_it_is_resumed() {
        let words = [
            "-j3",
            "--resource",
            "gpu=2",
            "-k",
            "--retries",
            "4",
            "--timeout",
            "5s",
            "--job-timeout",
            "1h",
            "--stderr",
            "ordered",
            "--shell",
            "strict",
            "-oout.txt",
            "--overwrite",
            "--package",
            "a=b.txt",
            "--heap",
            "1M",
            "--python",
            "/usr/bin/python3",
            "--durable",
            "power",
            "--keep",
            "2G",
            "--kept-dir=shared",
            "--trust-owner=root",
            "--trust=mtime",
            "--check",
            "--duplicates",
            "--held-bytes=3M",
            "--store-bytes=5M",
            "-m",
            "package.job",
            "-x",
            "1",
        ];
        let options = run_options_of(&words);
        let given = given(&options);
        let description = RunDescription {
            version: String::new(),
            record_format: 0,
            job: String::new(),
            key: String::new(),
            command: ["package/job.py", "-x", "1"].map(str::to_string).to_vec(),
            folder: "/".into(),
            options: given.clone(),
            started_s: 0,
        };
        let told = ResumeOptions {
            run: None,
            jobs: None,
            json: false,
            quiet: false,
            verbose: false,
            trace: None,
        };
        let again = run_options(description.clone(), &told);
        assert_eq!(format!("{again:?}"), format!("{options:?}"));
        let told = ResumeOptions {
            jobs: Some(8),
            json: true,
            ..told
        };
        let again = run_options(description, &told);
        assert_eq!((again.jobs, again.json), (Some(8), true));
    }
}
