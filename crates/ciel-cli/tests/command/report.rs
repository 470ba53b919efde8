//! `ciel report`: which run it is about, where the page goes, and how it looks in a browser.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Ended, Folder};

/// Two functions, one of which fails after it has written something.
const JOB: &str = "function part(n) { return n; }\n\
    a = spawn(part, [1]);\n\
    b = spawn_exec(\"shell\", {\"command\": \"echo '<b>half</b>' >&2; exit 3\"}, 1);\n\
    return *a;\n";

/// How the page begins.
const BEGINNING: &str = "<!doctype html>";

fn after_a_run(job: &str) -> Folder {
    let folder = Folder::with_job(job);
    folder.ciel(&["run", "-k", "job.sw"]);
    folder
}

fn expect_refused(ended: &Ended, words: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
}

#[test]
fn page_of_the_newest_run_is_a_file_whose_path_is_printed() {
    let folder = after_a_run(JOB);
    let ended = folder.ciel(&["report"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let name = ended.stdout.trim_end();
    assert!(
        name.starts_with("report-") && name.ends_with(".html"),
        "{name}"
    );
    let page = folder.read(name);
    assert!(page.starts_with(BEGINNING) && page.ends_with("</html>\n"));
    for shown in [
        "part",
        "ended with exit status 3",
        "&lt;b&gt;half&lt;/b&gt;",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
    assert!(!page.contains("<b>half"), "what a task writes stays text");
}

#[test]
fn run_is_named_by_the_first_digits_of_its_id() {
    let folder = after_a_run(JOB);
    let first = folder.ciel(&["report", "-o", "first.html"]);
    assert_eq!(
        (first.code, first.stdout.as_str()),
        (Some(0), "first.html\n")
    );
    folder.write("other.sw", "return 1;");
    folder.ciel(&["run", "other.sw"]);
    let listed = folder.ciel(&["runs", "--json"]);
    let lines = listed.stdout.lines();
    let runs: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let oldest = runs[1]["run"].as_str().unwrap();
    let named = folder.ciel(&["report", oldest, "-o", "-"]);
    assert!(named.stdout.contains("job.sw"), "{}", named.stdout);
    expect_refused(&folder.ciel(&["report", "zzz"]), "zzz");
}

#[test]
fn page_replaces_an_earlier_one_and_no_other_file() {
    let folder = after_a_run(JOB);
    for _ in 0..2 {
        assert_eq!(folder.ciel(&["report", "-o", "page.html"]).code, Some(0));
    }
    folder.write("notes.txt", "mine");
    expect_refused(
        &folder.ciel(&["report", "-o", "notes.txt"]),
        "is not a report",
    );
    assert_eq!(folder.read("notes.txt"), "mine");
    expect_refused(&folder.ciel(&["report", "-o", "."]), "is not a report");
    let missing = folder.ciel(&["report", "-o", "missing/page.html"]);
    expect_refused(&missing, "cannot write the report to missing/page.html");
}

#[test]
fn folder_without_runs_is_an_error_with_a_hint() {
    let folder = Folder::new();
    let ended = folder.ciel(&["report"]);
    expect_refused(&ended, "there are no runs in this folder's state");
    assert!(ended.stderr.contains("--state"), "{}", ended.stderr);
}

/// What a browser says of a page: it is appended to a copy of the page.
const PROBE: &str = "<script>
const wide = [...document.querySelectorAll('body > *')]
  .filter(part => part.getBoundingClientRect().right > innerWidth + 1).map(part => part.outerHTML);
const flat = [...document.querySelectorAll('body > svg')]
  .filter(part => part.getBoundingClientRect().height < 20).length;
document.body.innerText = 'PROBE' + JSON.stringify({
  wide: wide.length, flat, drawings: document.querySelectorAll('body > svg').length,
  tables: document.querySelectorAll('table').length, bars: document.querySelectorAll('rect').length,
  paper: getComputedStyle(document.body).backgroundColor,
  ink: getComputedStyle(document.body).color,
}) + 'PROBE';
</script>";

/// The browser, if there is one here.
fn browser() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find(|name| {
        let found = Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        found.is_ok_and(|status| status.success())
    })
}

/// What the browser says of a page in light or dark.
fn probed(browser: &str, folder: &Folder, page: &Path, scheme: &str) -> Value {
    let shown = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
        ])
        .args([
            "--no-first-run",
            "--disable-background-networking",
            "--disable-sync",
        ])
        .args([
            "--disable-component-update",
            "--window-size=1160,900",
            "--dump-dom",
        ])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!(
            "--user-data-dir={}",
            folder.path("browser").display()
        ))
        .arg(format!("file://{}", page.display()))
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let told = text.split("PROBE").nth(1);
    let told = told.unwrap_or_else(|| panic!("the browser did not show the page: {text}"));
    serde_json::from_str(told).unwrap()
}

#[test]
fn page_is_readable_in_a_browser_in_light_and_dark() {
    let Some(browser) = browser() else {
        eprintln!("skipped: page_is_readable_in_a_browser_in_light_and_dark: no chromium here");
        return;
    };
    let job = "function part(n) { return spawn_exec(\"shell\", {\"command\": \"true\"}, 1)[0]; }\n\
        parts = [];\nfor (i in range(40)) { parts += spawn(part, [i]); }\n\
        for (p in parts) { x = *p; }\nreturn null;\n";
    let folder = after_a_run(job);
    let page = folder.ciel(&["report", "-o", "-"]).stdout;
    folder.write(
        "probe.html",
        page.replace("</body>", &format!("{PROBE}</body>")),
    );
    let page = folder.path("probe.html");
    let light = probed(browser, &folder, &page, "1");
    let dark = probed(browser, &folder, &page, "0");
    for told in [&light, &dark] {
        assert_eq!(
            (&told["wide"], &told["flat"]),
            (&0.into(), &0.into()),
            "{told}"
        );
        assert_eq!(told["drawings"], 4, "{told}");
        assert!(told["bars"].as_u64().unwrap() > 40, "{told}");
    }
    assert_eq!(light["paper"], "rgb(255, 255, 255)", "{light}");
    assert_eq!(dark["paper"], "rgb(20, 24, 29)", "{dark}");
    assert_ne!(light["ink"], dark["ink"]);
}

/// The error was that of a temporary file, whose name nobody had given.
#[test]
fn folder_that_is_missing_is_named() {
    let folder = after_a_run("return 1;");
    let ended = folder.ciel(&["report", "-o", "no/such/page.html"]);
    expect_refused(
        &ended,
        "cannot write the report to no/such/page.html: there is no folder no/such\n",
    );
    let ended = folder.ciel(&["pack", "-o", "none/results.tar"]);
    expect_refused(
        &ended,
        "cannot pack results into none/results.tar: there is no folder none\n",
    );
}
