//! Predicts jobs: reads `{"costs": …, "jobs": [{"job": …, "machine": …}, …]}` from standard input,
//! and writes a JSON list with the course of each, and its efficiency.

use std::io::Read;

use ciel_sim::growth::{Costs, Job, Machine, course};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Question {
    costs: Costs,
    jobs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    job: Job,
    machine: Machine,
}

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let question: Question = serde_json::from_str(&text)?;
    let courses = question.jobs.iter().map(|run| {
        let found = course(&question.costs, &run.job, &run.machine);
        json!({
            "elapsed_ns": found.elapsed_ns,
            "tasks": found.tasks,
            "efficiency": found.efficiency(),
            "engine_load": found.engine_load(),
        })
    });
    let courses: Vec<serde_json::Value> = courses.collect();
    println!("{}", serde_json::Value::from(courses));
    Ok(())
}
