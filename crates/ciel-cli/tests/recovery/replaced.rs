//! A file that is to be replaced when the job is over.

use crate::support::{Place, appended, shell};
use crate::{expect_told, expect_well};

#[test]
fn run_whose_output_cannot_take_its_place_is_not_over() {
    // The run was marked as ended before its draft took the file's place: what it had written was
    // lost if that failed, or if the process died in between.
    let place = Place::new();
    place.file("out", "old\n");
    let spoil = shell(&format!(
        "{}; rm out && mkdir out",
        appended("ran", "marks")
    ));
    place.file(
        "job.sw",
        format!("print(\"begun\"); x = *{spoil}; print(\"done\");"),
    );
    let words = ["run", "-q", "--overwrite", "-o", "out", "job.sw"];
    expect_told(&place.run(&words), 1, &["out cannot be replaced"]);
    let runs = place.run(&["runs"]).stdout;
    assert!(runs.contains("can be resumed"), "{runs}");

    std::fs::remove_dir(place.path("out")).unwrap();
    expect_well(&place.run(&words), "");
    assert_eq!(place.read("out"), "begun\ndone\n");
    assert_eq!(place.read("marks"), "ran\n");
}
