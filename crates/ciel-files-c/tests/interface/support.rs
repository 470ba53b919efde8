//! What the tests of the C interface share: the library, the compilers, a folder for programs.
//!
//! It does not know what is tested.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

use tempfile::TempDir;

/// How many threads each program runs with.
pub const THREADS: [&str; 4] = ["1", "2", "4", "8"];

/// The root of the source tree.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Says that a test cannot be done here, and why.
pub fn skipped(reason: &str) {
    println!("skipped: {reason}");
}

/// Runs a command that has to succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    output
}

/// The folder of the built library. The library has no form that Rust can link, so cargo does not
/// build it for a test by itself.
pub fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(repository());
        command.args(["build", "--locked", "--quiet", "-p", "ciel-files-c"]);
        command.args(["--message-format", "json"]);
        let output = run(&mut command);
        let text = String::from_utf8(output.stdout).unwrap();
        let files = text.split('"').map(Path::new);
        let mut libraries = files.filter(|file| file.ends_with("libciel_ordered.so"));
        let library = libraries.next().expect("cargo names what it builds");
        library.parent().unwrap().to_path_buf()
    })
}

/// Whether a program is there; installs its Debian package if this process may.
pub fn has(program: &str, package: &str) -> bool {
    let works = || {
        let found = Command::new(program).arg("--version").output();
        found.is_ok_and(|output| output.status.success())
    };
    works() || (install(package) && works())
}

/// Whether a header is there; installs its Debian package if this process may.
pub fn has_header(header: &str, package: &str) -> bool {
    let path = Path::new("/usr/include").join(header);
    path.exists() || (install(package) && path.exists())
}

/// Whether there are compilers; says so if not.
pub fn can_compile() -> bool {
    let can = has("cc", "gcc") && has("c++", "g++");
    if !can {
        skipped("there is no C or no C++ compiler");
    }
    can
}

/// Installs a Debian package as root; one at a time.
fn install(package: &str) -> bool {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let user = Command::new("id").arg("-u").output();
    if !user.is_ok_and(|output| output.stdout == b"0\n") {
        return false;
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command.args(["-qq", "-y", "-o", "DPkg::Lock::Timeout=60"]);
        let output = command.args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    let arguments = ["install", "--no-install-recommends", package];
    apt(&arguments) || (apt(&["update"]) && apt(&arguments))
}

/// A folder with the programs and files of one test.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Compiles a program against the library; C or C++ by its name.
    pub fn compile(&self, source: &Path, arguments: &[&str]) -> PathBuf {
        let is_c = source.extension() == Some(OsStr::new("c"));
        let (compiler, standard) = match is_c {
            true => ("cc", "-std=c99"),
            false => ("c++", "-std=c++17"),
        };
        let program = self.path(source.file_stem().unwrap().to_str().unwrap());
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
        let mut command = Command::new(compiler);
        command.args([standard, "-O1", "-Wall", "-Wextra", "-Werror"]);
        command
            .arg("-D_XOPEN_SOURCE=700")
            .arg("-fopenmp")
            .arg("-pthread");
        command
            .arg("-I")
            .arg(include)
            .arg(source)
            .arg("-o")
            .arg(&program);
        command.arg("-L").arg(library()).arg("-lciel_ordered");
        command.arg(format!("-Wl,-rpath,{}", library().display()));
        run(command.args(arguments));
        program
    }

    /// Compiles a program of `examples/ordered`.
    pub fn example(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let source = repository().join("examples/ordered").join(name);
        self.compile(&source, arguments)
    }

    /// Runs a program in this folder.
    pub fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        run(Command::new(program)
            .current_dir(self.0.path())
            .args(arguments))
    }
}
