//! The builtin functions: which does what.
//!
//! Each looks at its arguments on the stack and gives a result; the caller takes the arguments. A
//! builtin that calls the host does so last, when it cannot fail any more. Read next: `tasks`,
//! `objects`, `collections`, `slices`, `strings`, `scalars`.

mod collections;
mod format;
mod objects;
mod options;
mod scalars;
mod slices;
mod strings;
mod tasks;

use super::failure::{Failure, Pause, fail};
use super::json::{self, brief};
use super::{Machine, calls};
use crate::builtins::Builtin;
use crate::host::{Host, NoPackage};
use crate::value::Value;

impl Machine {
    /// The result of a builtin called with the topmost operands, of which there are as many as it
    /// allows.
    pub(super) fn call_builtin(
        &mut self,
        host: &mut dyn Host,
        builtin: Builtin,
        arguments: usize,
    ) -> Result<Value, Pause> {
        let (least, most) = builtin.arity();
        if !(least..=most).contains(&arguments) {
            return calls::wrong_arity(builtin.name(), least, most, arguments);
        }
        let first = self.stack.len() - arguments;
        self.prepare(builtin, first)?;
        let before = self.heap.used();
        let result = self.dispatch(host, builtin, first)?;
        self.burn(self.heap.used().saturating_sub(before) / 64);
        Ok(result)
    }

    /// Forces the arguments as deeply as the builtin uses them.
    fn prepare(&mut self, builtin: Builtin, first: usize) -> Result<(), Pause> {
        match builtin {
            Builtin::Text | Builtin::IsError | Builtin::Cancel => return Ok(()),
            Builtin::Print
            | Builtin::Append
            | Builtin::Str
            | Builtin::Min
            | Builtin::Max
            | Builtin::Sort
            | Builtin::Join
            | Builtin::Find
            | Builtin::Format
            | Builtin::ToJson
            | Builtin::SpawnExec
            | Builtin::SpawnOther
            | Builtin::Exec => {
                let values = self.stack[first..].to_vec();
                self.force_deeply(&values, false)?;
            }
            Builtin::GetKey | Builtin::Remove => return self.force_at(first..first + 2),
            Builtin::Spawn
            | Builtin::Package
            | Builtin::Int
            | Builtin::Float
            | Builtin::Len
            | Builtin::Range
            | Builtin::HasKey
            | Builtin::Keys
            | Builtin::Env
            | Builtin::Argv
            | Builtin::Abs
            | Builtin::Floor
            | Builtin::Sqrt
            | Builtin::Split
            | Builtin::Slice
            | Builtin::Replace
            | Builtin::Trim
            | Builtin::Lower
            | Builtin::Upper
            | Builtin::StartsWith
            | Builtin::EndsWith
            | Builtin::FromJson
            | Builtin::Glob
            | Builtin::Export
            | Builtin::Type => {}
        }
        self.force_at(first..self.stack.len())
    }

    fn dispatch(
        &mut self,
        host: &mut dyn Host,
        builtin: Builtin,
        first: usize,
    ) -> Result<Value, Pause> {
        match builtin {
            Builtin::Spawn => self.spawn(host, first),
            Builtin::SpawnExec | Builtin::Exec => self.spawn_exec(host, builtin, first),
            Builtin::SpawnOther => self.spawn_other(host, first),
            Builtin::Glob => self.glob(host, first),
            Builtin::Export => self.export(host, first),
            Builtin::Package => self.package(host, first),
            Builtin::Print => self.print(host, first),
            Builtin::Append => self.append(host, first),
            Builtin::Text => self.text_of_reference(first),
            Builtin::IsError => self.is_error(first),
            Builtin::Cancel => self.cancel(host, first),
            Builtin::Int => self.int(first),
            Builtin::Float => self.float(first),
            Builtin::Str => self.string(first),
            Builtin::Abs => self.absolute(first),
            Builtin::Floor => self.floor(first),
            Builtin::Sqrt => self.square_root(first),
            Builtin::Type => Ok(self.type_of(first)),
            Builtin::Env => self.environment(first),
            Builtin::Argv => self.argument_list(first),
            Builtin::Len => self.length(first),
            Builtin::Range => self.range(first),
            Builtin::HasKey => self.has_key(first),
            Builtin::GetKey => self.get_key(first),
            Builtin::Keys => self.keys(first),
            Builtin::Min | Builtin::Max => self.extreme(builtin, first),
            Builtin::Sort => self.sort(first),
            Builtin::Remove => self.remove(first),
            Builtin::Slice => self.slice(first),
            Builtin::Find => self.find(first),
            Builtin::Join => self.join(first),
            Builtin::Split => self.split(first),
            Builtin::Replace => self.replace_text(first),
            Builtin::Trim | Builtin::Lower | Builtin::Upper => self.changed(builtin, first),
            Builtin::StartsWith | Builtin::EndsWith => self.has_affix(builtin, first),
            Builtin::Format => self.format(first),
            Builtin::ToJson => self.write_json(first),
            Builtin::FromJson => self.read_json(first),
        }
    }

    /// The failure of an argument of the wrong type.
    fn wrong_argument<T>(&self, builtin: Builtin, wanted: &str, value: Value) -> Result<T, Pause> {
        let shown = brief(&self.heap, value);
        let name = builtin.name();
        let message = format!("`{name}` takes {wanted}, not {}: {shown}", value.a_type());
        let failure = Failure::new("TypeError", message);
        Err(match value {
            Value::Reference(_) => failure.hint("dereference it to get its value: *reference"),
            Value::List(_) if wanted.starts_with("a reference") => {
                failure.hint("spawn_exec gives a list of references: take one of them with [0]")
            }
            _ => failure,
        }
        .into())
    }

    fn print(&mut self, host: &mut dyn Host, first: usize) -> Result<Value, Pause> {
        self.at_host()?;
        let mut line = String::new();
        for at in first..self.stack.len() {
            if at > first {
                line.push(' ');
            }
            line.push_str(&json::shown(&self.heap, self.stack[at])?);
            self.heap.room(line.len())?;
        }
        self.promote_pending(host, usize::MAX)?;
        host.print(self.strand().actions, &line);
        self.burn(line.len() / 64);
        Ok(Value::Bool(true))
    }

    /// Nothing is written between the parts, nor behind them.
    fn append(&mut self, host: &mut dyn Host, first: usize) -> Result<Value, Pause> {
        self.at_host()?;
        let path = self.stack[first];
        if !path.is_text() {
            return self.wrong_argument(Builtin::Append, "a path, a string", path);
        }
        let mut text = String::new();
        for at in first + 1..self.stack.len() {
            text.push_str(&json::shown(&self.heap, self.stack[at])?);
            self.heap.room(text.len())?;
        }
        self.promote_pending(host, usize::MAX)?;
        let path = self.heap.text(path);
        if let Err(refused) = host.append(self.strand().actions, path, &text) {
            let failure = Failure::new("TaskError", refused.message);
            return Err(failure.hint(refused.hint).into());
        }
        self.burn(text.len() / 64);
        Ok(Value::Bool(true))
    }

    fn package(&mut self, host: &mut dyn Host, first: usize) -> Result<Value, Pause> {
        self.at_host()?;
        self.promote_pending(host, usize::MAX)?;
        let value = self.stack[first];
        if !value.is_text() {
            return self.wrong_argument(Builtin::Package, "a string", value);
        }
        let name = self.heap.text(value);
        let handle = match host.package(self.strand().actions, name) {
            Ok(handle) => handle,
            Err(NoPackage::Unknown) => {
                let message = format!("the job has no package {name:?}");
                return Err(Failure::new("KeyError", message)
                    .hint(format!("start it with --package {name}=FILE"))
                    .into());
            }
            Err(NoPackage::Unusable(why)) => {
                let message = format!("the package {name:?} cannot be used: {why}");
                return Err(Failure::new("TaskError", message).into());
            }
        };
        let next = self.table.next();
        if handle >= next {
            self.add_references(handle.0 - next.0 + 1);
        }
        Ok(Value::Reference(handle))
    }

    /// `env` and `argv` without a call mean their value without arguments.
    pub(in crate::machine) fn as_container(&mut self, value: Value) -> Result<Value, Pause> {
        match value {
            Value::Builtin(Builtin::Env) => self.all_variables(),
            Value::Builtin(Builtin::Argv) => self.all_arguments(),
            other => Ok(other),
        }
    }

    fn environment(&mut self, first: usize) -> Result<Value, Pause> {
        match self.stack[first..] {
            [] => self.all_variables(),
            [name, ..] => self.environment_variable(name, self.stack.get(first + 1).copied()),
        }
    }

    fn all_variables(&mut self) -> Result<Value, Pause> {
        let surroundings = std::sync::Arc::clone(&self.surroundings);
        let variables = surroundings.env.iter();
        let bytes = variables.clone().map(|(k, v)| k.len() + v.len() + 200);
        self.heap.room(bytes.sum())?;
        let mut dictionary = crate::value::Dictionary::default();
        for (name, value) in variables {
            let value = self.heap.adopt_text(value.clone());
            dictionary.insert(crate::value::KeyView::Text(name), value);
        }
        Ok(self.heap.new_dictionary(dictionary))
    }

    /// One variable of the environment, or the default if it is not set.
    pub(in crate::machine) fn environment_variable(
        &mut self,
        name: Value,
        otherwise: Option<Value>,
    ) -> Result<Value, Pause> {
        let surroundings = std::sync::Arc::clone(&self.surroundings);
        if !name.is_text() {
            return self.wrong_argument(Builtin::Env, "the name of a variable", name);
        }
        let text = self.heap.text(name);
        match (surroundings.env.get(text), otherwise) {
            (Some(value), _) => self.heap.new_text(value),
            (None, Some(otherwise)) => Ok(otherwise),
            (None, None) => {
                let message = format!("the environment has no variable {text:?}");
                Err(Failure::new("KeyError", message)
                    .hint_closest(text, surroundings.env.keys().map(String::as_str))
                    .into())
            }
        }
    }

    fn argument_list(&mut self, first: usize) -> Result<Value, Pause> {
        match self.stack[first..] {
            [] => self.all_arguments(),
            [number, ..] => self.argument(number),
        }
    }

    fn all_arguments(&mut self) -> Result<Value, Pause> {
        let surroundings = std::sync::Arc::clone(&self.surroundings);
        let texts = surroundings.argv.iter();
        self.heap
            .room(texts.clone().map(|text| text.len() + 64).sum())?;
        let items = texts.map(|text| self.heap.adopt_text(text.clone()));
        let items = items.collect();
        Ok(self.heap.new_list(items))
    }

    /// One argument of the script; negative numbers count from the end.
    pub(in crate::machine) fn argument(&mut self, number: Value) -> Result<Value, Pause> {
        let surroundings = std::sync::Arc::clone(&self.surroundings);
        let argv = &surroundings.argv;
        let Value::Int(number) = number else {
            return self.wrong_argument(Builtin::Argv, "an integer", number);
        };
        let at = match number < 0 {
            true => number + argv.len() as i64,
            false => number,
        };
        match usize::try_from(at).ok().and_then(|at| argv.get(at)) {
            Some(text) => self.heap.new_text(text),
            None => fail(
                "IndexError",
                format!(
                    "argument {number} does not exist: the script got {}",
                    argv.len()
                ),
            ),
        }
    }
}
