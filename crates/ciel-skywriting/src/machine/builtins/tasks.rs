//! Builtins that make tasks, and those that look at what became of them.
//!
//! Read next: `options`, then `crate::host`.

use serde_json::Value as Json;
use std::sync::Arc;

use super::options;
use crate::builtins::Builtin;
use crate::host::{Handle, Host, Keeping, SpawnRequest, Work};
use crate::machine::failure::{Failure, Pause, fail};
use crate::machine::graph::{self, Form};
use crate::machine::json::{self, Style, brief};
use crate::machine::{Machine, calls};
use crate::value::{Index, KeyView, Object, Value};

/// Most outputs of one task.
const OUTPUTS_MAX: i64 = 10_000;

/// The executors with more than one name.
fn executor_name(name: &str) -> &str {
    match name {
        "env" => "environ",
        other => other,
    }
}

impl Machine {
    /// `spawn(f, [args], {options})`
    pub(super) fn spawn(&mut self, host: &mut dyn Host, first: usize) -> Result<Value, Pause> {
        let callee = self.stack[first];
        let Value::Closure(index) = callee else {
            return self.not_a_function(callee);
        };
        let arguments = match self.stack.get(first + 1) {
            None => &[],
            Some(Value::List(arguments)) => self.heap.list(*arguments),
            Some(&value) => {
                return self.wrong_argument(Builtin::Spawn, "a list of arguments", value);
            }
        };
        let roots = [&[callee], arguments].concat();
        let options = match self.stack.get(first + 2).copied() {
            None => Json::Null,
            Some(value) => self.options(value)?,
        };
        let Object::Closure(closure) = self.heap.object(index) else {
            return self.not_a_function(callee);
        };
        let function = &self.code.functions[closure.function as usize];
        let (wanted, given) = (function.parameters as usize, roots.len() - 1);
        if wanted != given {
            return calls::wrong_arity(&function.shown_name(), wanted, wanted, given);
        }
        let number = closure.function;
        let keeping = match options {
            Json::Null => self.keeping(host, number, &roots),
            _ => Keeping::Promoted,
        };
        if keeping != Keeping::Promoted {
            return self.keep(roots, keeping == Keeping::Sealed);
        }
        let label = self.code.functions[number as usize].shown_name();
        self.at_host()?;
        let encoded = graph::encode(&self.heap, &roots, Form::Value)
            .map_err(|_| Failure::new("OutOfMemory", "the arguments are too large"))?;
        self.burn(encoded.bytes.len() / 64);
        let work = Work::Call(encoded.bytes);
        let first = self.asked(host, (work, label), &encoded.references, 1, options)?;
        Ok(Value::Reference(first))
    }

    /// Spawns a task that the host runs; gives the handle of its first output.
    fn asked(
        &mut self,
        host: &mut dyn Host,
        (work, label): (Work, Arc<str>),
        references: &[Handle],
        outputs: u32,
        options: Json,
    ) -> Result<Handle, Pause> {
        self.at_host()?;
        self.promote_pending(host, usize::MAX)?;
        let action = self.strand().actions;
        let references = self.outer_all(host, action, references)?;
        let location = self.location();
        host.spawn(SpawnRequest {
            action,
            work,
            references,
            outputs,
            options,
            label,
            line: location.line,
            file: location.file,
        });
        self.strand_mut().actions += 1;
        Ok(self.add_references(outputs))
    }

    fn not_a_function(&self, callee: Value) -> Result<Value, Pause> {
        let shown = brief(&self.heap, callee);
        let message = format!("`spawn` takes a function of the script, not {shown}");
        let failure = Failure::new("TypeError", message);
        Err(match callee {
            Value::Builtin(builtin) => {
                let name = builtin.name();
                failure.hint(format!("wrap it in one: spawn(lambda x: {name}(x), […])"))
            }
            _ => failure.hint("write spawn(f, [arguments]), without calling f"),
        }
        .into())
    }

    fn options(&mut self, value: Value) -> Result<Json, Pause> {
        self.force_deeply(&[value], false)?;
        let value = self.force(value, false)?;
        let options = json::tree(&self.heap, value, Style::Shown)?;
        options::check(&options)?;
        Ok(options)
    }

    /// `spawn_exec(executor, args, n, {options})`, and `exec`.
    pub(super) fn spawn_exec(
        &mut self,
        host: &mut dyn Host,
        builtin: Builtin,
        first: usize,
    ) -> Result<Value, Pause> {
        let outputs = self.outputs(builtin, self.stack[first + 2])?;
        let mut references = Vec::new();
        let style = Style::Spelled(&mut references);
        let arguments = json::tree(&self.heap, self.stack[first + 1], style)?;
        let options = match self.stack.get(first + 3).copied() {
            None => Json::Null,
            Some(value) => self.options(value)?,
        };
        self.request(
            host, builtin, first, arguments, references, outputs, options,
        )
    }

    /// `spawn_other(executor, {args, n_outputs, …options})`
    pub(super) fn spawn_other(
        &mut self,
        host: &mut dyn Host,
        first: usize,
    ) -> Result<Value, Pause> {
        let value = self.stack[first + 1];
        let Value::Dictionary(index) = value else {
            return self.wrong_argument(
                Builtin::SpawnOther,
                "a dictionary as second argument",
                value,
            );
        };
        let field = |machine: &Machine, name: &str| {
            machine
                .heap
                .lookup(index, KeyView::Text(name))
                .map(|v| machine.heap.settled(v))
        };
        let Some(arguments) = field(self, "args") else {
            return Err(
                Failure::new("KeyError", "`spawn_other` needs the key \"args\"")
                    .hint("spawn_other(executor, {\"args\": {…}, \"n_outputs\": 1})")
                    .into(),
            );
        };
        let outputs = match field(self, "n_outputs") {
            None => 1,
            Some(value) => self.outputs(Builtin::SpawnOther, value)?,
        };
        let mut references = Vec::new();
        let arguments = json::tree(&self.heap, arguments, Style::Spelled(&mut references))?;
        let options = self.other_options(index)?;
        self.request(
            host,
            Builtin::SpawnOther,
            first,
            arguments,
            references,
            outputs,
            options,
        )
    }

    /// The options of `spawn_other`: under their own names, or together under `options`. What is no
    /// option is a hint to a scheduler, such as `small_task`, and changes no result.
    fn other_options(&self, index: Index) -> Result<Json, Pause> {
        let mut options = serde_json::Map::new();
        for (key, value) in self.heap.entries(index) {
            let name = key.view().spelling();
            if name == "args" || name == "n_outputs" || options::is_hint(&name) {
                continue;
            }
            let value = json::tree(&self.heap, *value, Style::Shown)?;
            match (name.as_str(), value) {
                ("options", Json::Object(entries)) => options.extend(entries),
                ("options", _) => {
                    return fail("TypeError", "the options of a spawn must be a dictionary");
                }
                (_, value) => {
                    options.insert(name, value);
                }
            }
        }
        let options = if options.is_empty() {
            Json::Null
        } else {
            Json::Object(options)
        };
        options::check(&options)?;
        Ok(options)
    }

    fn outputs(&self, builtin: Builtin, value: Value) -> Result<u32, Pause> {
        let name = builtin.name();
        match value {
            Value::Int(number) if (1..=OUTPUTS_MAX).contains(&number) => Ok(number as u32),
            Value::Int(number) => fail(
                "ArgumentError",
                format!("`{name}` takes between 1 and 10,000 outputs, not {number}"),
            ),
            _ => self.wrong_argument(builtin, "an integer as the number of outputs", value),
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one request, checked apart"
    )]
    fn request(
        &mut self,
        host: &mut dyn Host,
        builtin: Builtin,
        first: usize,
        arguments: Json,
        references: Vec<Handle>,
        outputs: u32,
        options: Json,
    ) -> Result<Value, Pause> {
        options::check_of_executor(&options)?;
        let executor = self.stack[first];
        if !executor.is_text() {
            return self.wrong_argument(
                builtin,
                "the name of an executor as first argument",
                executor,
            );
        }
        if !arguments.is_object() {
            let shown = brief(&self.heap, self.stack[first + 1]);
            let name = builtin.name();
            return Err(Failure::new(
                "TypeError",
                format!("`{name}` takes the executor's arguments as a dictionary, not {shown}"),
            )
            .hint("for instance {\"inputs\": […], \"command_line\": […]}")
            .into());
        }
        let executor = executor_name(self.heap.text(executor)).to_owned();
        self.heap.room(outputs as usize * size_of::<Value>())?;
        let label = Arc::from(executor.as_str());
        let work = Work::Executor {
            executor,
            arguments,
        };
        let first = self
            .asked(host, (work, label), &references, outputs, options)?
            .0;
        let items = (first..first + outputs)
            .map(|at| Value::Reference(Handle(at)))
            .collect();
        Ok(self.heap.new_list(items))
    }

    /// `glob(pattern)`. A task looks at the files, so what it found is a result like any other,
    /// which a replay of this one gets again; no two looks share one.
    pub(super) fn glob(&mut self, host: &mut dyn Host, first: usize) -> Result<Value, Pause> {
        let pattern = self.stack[first];
        if !pattern.is_text() {
            return self.wrong_argument(Builtin::Glob, "a string", pattern);
        }
        let work = Work::Executor {
            executor: Builtin::Glob.name().to_owned(),
            arguments: serde_json::json!({ "pattern": self.heap.text(pattern) }),
        };
        let label = Arc::from(Builtin::Glob.name());
        let options = serde_json::json!({ "pure": false });
        let handle = self.asked(host, (work, label), &[], 1, options)?;
        Ok(self.heap.new_thunk(handle))
    }

    /// `export(ref, path, {"overwrite": …})`. Each call is a task of its own.
    pub(super) fn export(&mut self, host: &mut dyn Host, first: usize) -> Result<Value, Pause> {
        let (result, path) = (self.stack[first], self.stack[first + 1]);
        let Value::Reference(result) = result else {
            return self.wrong_argument(Builtin::Export, "a reference as first argument", result);
        };
        if !path.is_text() {
            return self.wrong_argument(Builtin::Export, "a string as the path of the file", path);
        }
        let mut arguments = match self.stack.get(first + 2).copied() {
            None => Json::Object(serde_json::Map::new()),
            Some(options) => self.export_options(options)?,
        };
        arguments["input"] = serde_json::json!({ "$ref": 0 });
        arguments["path"] = self.heap.text(path).into();
        let name = Builtin::Export.name();
        let work = Work::Executor {
            executor: name.to_owned(),
            arguments,
        };
        let exported = self.asked(host, (work, Arc::from(name)), &[result], 1, Json::Null)?;
        Ok(Value::Reference(exported))
    }

    /// `{"overwrite": true}`, or another truth, or nothing.
    fn export_options(&self, value: Value) -> Result<Json, Pause> {
        let options = json::tree(&self.heap, value, Style::Shown)?;
        let is_right = |(name, value): (&String, &Json)| name == "overwrite" && value.is_boolean();
        match options.as_object() {
            Some(given) if given.iter().all(is_right) => Ok(options),
            _ => self.wrong_argument(Builtin::Export, "{\"overwrite\": true} as options", value),
        }
    }
}
