//! What the programs of bench/ordered share: options, pools, the median.
//!
//! It does not know what they measure.

#![allow(dead_code, reason = "no program uses all of it")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;

/// The options of a program: `--name value`, and `--serial`.
pub struct Arguments {
    program: &'static str,
    values: HashMap<String, String>,
}

impl Arguments {
    /// Those of the command line. Ends the program if they are no options.
    pub fn of_command(program: &'static str) -> Arguments {
        let mut arguments = Arguments {
            program,
            values: HashMap::new(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else {
                arguments.refuse(&format!("{word} is no option"))
            };
            let value = match name {
                "serial" => Some(String::new()),
                _ => words.next(),
            };
            match value {
                Some(value) => arguments.values.insert(name.to_owned(), value),
                None => arguments.refuse(&format!("--{name} has no value")),
            };
        }
        arguments
    }

    /// Says what is wrong with the command line and ends the program with code 2.
    pub fn refuse(&self, what: &str) -> ! {
        eprintln!("{}: {what}", self.program);
        std::process::exit(2)
    }

    /// The value of an option, or its default.
    pub fn text(&self, name: &str, default: &str) -> String {
        let value = self.values.get(name).map_or(default, String::as_str);
        value.to_owned()
    }

    /// The number that an option has, or its default.
    pub fn number<T: FromStr>(&self, name: &str, default: T) -> T {
        match self.values.get(name).map(|text| text.parse()) {
            None => default,
            Some(Ok(number)) => number,
            Some(Err(_)) => self.refuse(&format!("--{name} is no number")),
        }
    }

    /// A file that has to be named.
    pub fn path(&self, name: &str) -> PathBuf {
        match self.values.get(name) {
            Some(path) => path.into(),
            None => self.refuse(&format!("--{name} FILE is missing")),
        }
    }

    /// Whether the serial elision is wanted.
    pub fn is_serial(&self) -> bool {
        self.values.contains_key("serial")
    }

    /// A pool of `--threads N`, by default 2.
    pub fn pool(&self) -> rayon::ThreadPool {
        let threads = self.number("threads", 2);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap_or_else(|error| self.refuse(&format!("no pool: {error}")))
    }
}

/// The one in the middle.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
