//! JSON of values, and values of JSON.
//!
//! Showing walks at most [`NESTING_MAX`] deep and charges what it makes against the heap's room,
//! so cycles and shared giants end in an error. It does not force thunks: the caller has. Read
//! next: `crate::wire`.

use num_bigint::BigInt;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use std::fmt;

use super::failure::{Failure, Pause, fail};
use super::graph::Refusal;
use super::heap::Heap;
use crate::host::{Handle, References};
use crate::value::{Dictionary, Index, KeyView, Object, Value};
use crate::wire::{LoadError, damaged};

/// Deepest nesting that is shown, compared or handed to other languages.
pub(crate) const NESTING_MAX: usize = 400;
/// Rough cost of one JSON node.
const NODE_BYTES: usize = 72;
/// The key under which serde_json hands over numbers of any size.
const NUMBER_KEY: &str = "$serde_json::private::Number";

/// How references and functions appear.
pub(crate) enum Style<'a> {
    /// For display: `<reference>` and `<function f>`.
    Shown,
    /// The job's result: functions are an error, references are replaced by their values.
    Result,
    /// The text that `to_json` gives: references and functions are an error.
    Written,
    /// For other languages: `{"$ref": i}` into this table; functions are an error.
    Spelled(&'a mut Vec<Handle>),
    /// For other languages: `{"$ref": i}` with the handle's own number.
    Numbered,
}

/// The JSON tree of a value whose thunks have been forced.
pub(crate) fn tree(heap: &Heap, value: Value, style: Style<'_>) -> Result<Json, Pause> {
    Tree {
        heap,
        style,
        spent: 0,
    }
    .node(value, 0)
}

/// For display: strings unchanged, anything else as JSON.
pub(crate) fn shown(heap: &Heap, value: Value) -> Result<String, Pause> {
    let value = heap.settled(value);
    match value {
        Value::Constant(_) | Value::Text { .. } => {
            heap.room(heap.text(value).len())?;
            Ok(heap.text(value).to_owned())
        }
        Value::Reference(_) | Value::Thunk(_) => Ok("<reference>".to_owned()),
        Value::Closure(_) | Value::Builtin(_) => Ok(function_text(heap, value)),
        _ => {
            let text = tree(heap, value, Style::Shown)?.to_string();
            heap.room(text.len())?;
            Ok(text)
        }
    }
}

/// A few characters of a value for messages; never fails.
pub(crate) fn brief(heap: &Heap, value: Value) -> String {
    const CHARACTERS_MAX: usize = 40;
    let value = heap.settled(value);
    let text = match value {
        Value::Constant(_) | Value::Text { .. } => {
            let start: String = heap.text(value).chars().take(CHARACTERS_MAX + 1).collect();
            Json::String(start).to_string()
        }
        Value::Reference(_) | Value::Thunk(_) => "<reference>".to_owned(),
        Value::Closure(_) | Value::Builtin(_) => function_text(heap, value),
        Value::List(index) if heap.list(index).len() > CHARACTERS_MAX => "[…]".to_owned(),
        Value::Dictionary(index) if heap.count(index) > CHARACTERS_MAX => "{…}".to_owned(),
        Value::Big(_) => "a large integer".to_owned(),
        _ => {
            tree(heap, value, Style::Shown).map_or_else(|_| "…".to_owned(), |json| json.to_string())
        }
    };
    if text.chars().count() <= CHARACTERS_MAX {
        return text;
    }
    text.chars()
        .take(CHARACTERS_MAX)
        .chain(std::iter::once('…'))
        .collect()
}

fn function_text(heap: &Heap, value: Value) -> String {
    match value {
        Value::Builtin(builtin) => format!("<function {}>", builtin.name()),
        Value::Closure(index) => match heap.object(index) {
            Object::Closure(closure) => {
                format!(
                    "<function {}>",
                    heap.code.functions[closure.function as usize].shown_name()
                )
            }
            _ => "<function>".to_owned(),
        },
        _ => "<function>".to_owned(),
    }
}

struct Tree<'h, 'a> {
    heap: &'h Heap,
    style: Style<'a>,
    spent: usize,
}

impl Tree<'_, '_> {
    fn spend(&mut self, bytes: usize) -> Result<(), Pause> {
        self.spent = self.spent.saturating_add(bytes);
        self.heap.room(self.spent)
    }

    fn node(&mut self, value: Value, depth: usize) -> Result<Json, Pause> {
        self.spend(NODE_BYTES)?;
        if depth > NESTING_MAX {
            return Err(too_deep().into());
        }
        let heap = self.heap;
        let value = heap.settled(value);
        Ok(match value {
            Value::Unset | Value::Cell(_) | Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(value),
            Value::Int(number) => Json::from(number),
            Value::Float(number) => Json::from(number),
            Value::Constant(_) | Value::Text { .. } => {
                let text = heap.text(value);
                self.spend(text.len())?;
                Json::String(text.to_owned())
            }
            Value::Big(index) => self.big(heap.big(index))?,
            Value::List(index) => self.array(heap.list(index), depth + 1)?,
            Value::Dictionary(index) => self.object(index, depth + 1)?,
            Value::Thunk(_) | Value::Reference(_) => self.reference(value)?,
            Value::Closure(_) | Value::Builtin(_) => return self.function(value),
        })
    }

    /// A loop and no chain of iterators: builds without optimisation have a frame of the stack for
    /// each link of one, at each level of the value.
    fn array(&mut self, items: &[Value], depth: usize) -> Result<Json, Pause> {
        let mut array = Vec::with_capacity(items.len());
        for item in items {
            array.push(self.node(*item, depth)?);
        }
        Ok(Json::Array(array))
    }

    /// A loop as in `array`.
    fn object(&mut self, dictionary: Index, depth: usize) -> Result<Json, Pause> {
        let mut object = serde_json::Map::new();
        let heap = self.heap;
        for (key, value) in heap.entries(dictionary) {
            object.insert(self.key(key.view()), self.node(*value, depth)?);
        }
        Ok(Json::Object(object))
    }

    fn big(&mut self, number: Option<&BigInt>) -> Result<Json, Pause> {
        let digits = number.map(BigInt::to_string).unwrap_or_default();
        self.spend(digits.len())?;
        Ok(digits.parse().map(Json::Number).unwrap_or(Json::Null))
    }

    fn key(&self, key: KeyView<'_>) -> String {
        let spelling = key.spelling();
        match self.style {
            Style::Shown | Style::Result | Style::Written => spelling,
            Style::Spelled(_) | Style::Numbered if spelling.starts_with('$') => {
                format!("${spelling}")
            }
            Style::Spelled(_) | Style::Numbered => spelling,
        }
    }

    fn reference(&mut self, value: Value) -> Result<Json, Pause> {
        let handle = match value {
            Value::Reference(handle) => handle,
            _ => self.heap.waiting(value).unwrap_or(Handle(u32::MAX)),
        };
        let number = match &mut self.style {
            Style::Shown | Style::Result => return Ok(Json::from("<reference>")),
            Style::Written => {
                return Err(Failure::new("TypeError", "a reference has no JSON form")
                    .hint("dereference it to get its value: *reference")
                    .into());
            }
            Style::Numbered => handle.0 as usize,
            Style::Spelled(table) => table
                .iter()
                .position(|known| *known == handle)
                .unwrap_or_else(|| {
                    table.push(handle);
                    table.len() - 1
                }),
        };
        Ok(serde_json::json!({ "$ref": number }))
    }

    fn function(&self, value: Value) -> Result<Json, Pause> {
        match self.style {
            Style::Shown => Ok(Json::String(function_text(self.heap, value))),
            Style::Result => {
                let text = function_text(self.heap, value);
                let message = format!("a function cannot be the job's result: {text}");
                Err(Failure::new("TypeError", message)
                    .hint("return the result of a call: f(…)")
                    .into())
            }
            Style::Written => {
                let text = function_text(self.heap, value);
                fail("TypeError", format!("a function has no JSON form: {text}"))
            }
            Style::Spelled(_) | Style::Numbered => {
                let text = function_text(self.heap, value);
                let message = format!("a function cannot be passed to another language: {text}");
                Err(Failure::new("TypeError", message)
                    .hint("pass the result of a call, or spawn the function: spawn(f, […])")
                    .into())
            }
        }
    }
}

/// The failure of a value that is nested too deep, or contains itself.
pub(crate) fn too_deep() -> Failure {
    Failure::new(
        "TooDeep",
        format!("the value is nested more than {NESTING_MAX} deep"),
    )
    .hint("does a list or dictionary contain itself?")
}

/// For [`crate::wire::to_json`].
pub(crate) fn spelled(heap: &Heap, value: Value) -> Result<Json, String> {
    tree(heap, value, Style::Numbered).map_err(|pause| match pause {
        Pause::Failed(failure) => failure.thrown.message,
        Pause::Blocked(_)
        | Pause::Cancels(_)
        | Pause::Collect(_)
        | Pause::NeedsHost
        | Pause::Offered => "it is too large".to_owned(),
    })
}

/// Reads JSON text into the heap. With references, `{"$ref": i}` is a reference and keys that
/// begin with `$` lose one; without, they are plain data.
pub(crate) fn read(
    heap: &mut Heap,
    text: &[u8],
    references: Option<References>,
) -> Result<Value, Refusal> {
    let start = heap.used();
    let mut reader = Reader {
        heap,
        references,
        start,
        refused: None,
    };
    let mut source = serde_json::Deserializer::from_slice(text);
    let value = Seed(&mut reader).deserialize(&mut source);
    let value = value.and_then(|value| source.end().map(|()| value));
    let refused = reader.refused.take();
    value.map_err(|_| refused.unwrap_or(Refusal::Load(damaged("it is not JSON"))))
}

struct Reader<'h> {
    heap: &'h mut Heap,
    references: Option<References>,
    start: usize,
    refused: Option<Refusal>,
}

impl Reader<'_> {
    fn room<E: de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        let spent = self.heap.used() - self.start;
        if self.heap.room(bytes).is_ok() {
            return Ok(());
        }
        self.refuse(Refusal::Room(spent.saturating_add(bytes)))
    }

    fn refuse<T, E: de::Error>(&mut self, refusal: Refusal) -> Result<T, E> {
        self.refused = Some(refusal);
        Err(E::custom("refused"))
    }

    fn text<E: de::Error>(&mut self, text: &str) -> Result<Value, E> {
        self.room(text.len() + size_of::<Object>())?;
        Ok(self.heap.adopt_text(text.to_owned()))
    }

    fn number<E: de::Error>(&mut self, digits: &str) -> Result<Value, E> {
        if let Ok(small) = digits.parse() {
            return Ok(Value::Int(small));
        }
        if digits.contains(['.', 'e', 'E']) {
            return match digits.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Value::Float(number)),
                _ => Err(E::custom("a number out of range")),
            };
        }
        if digits.len() > super::heap::INTEGER_BYTES_MAX * 2 {
            return Err(E::custom("a number out of range"));
        }
        let number: BigInt = digits.parse().map_err(E::custom)?;
        self.heap
            .new_integer(number)
            .or_else(|_| self.refuse(Refusal::Room(digits.len())))
    }

    fn key<'k>(&self, key: &'k str) -> &'k str {
        match self.references {
            Some(_) if key.starts_with("$$") => &key[1..],
            _ => key,
        }
    }

    fn dictionary<'de, A: MapAccess<'de>>(
        &mut self,
        first: String,
        mut map: A,
    ) -> Result<Value, A::Error> {
        let mut dictionary = Dictionary::default();
        let mut next = Some(first);
        let mut bytes = 0;
        while let Some(key) = next {
            let value = map.next_value_seed(Seed(self))?;
            let view = KeyView::Text(self.key(&key));
            bytes += view.bytes();
            self.room(bytes)?;
            dictionary.insert(view, value);
            next = map.next_key()?;
        }
        self.finished(dictionary)
    }

    fn finished<E: de::Error>(&mut self, dictionary: Dictionary) -> Result<Value, E> {
        let is_reference = self.references.is_some() && dictionary.len() == 1;
        match dictionary.get(KeyView::Text("$ref")) {
            Some(Value::Int(number)) if is_reference => {
                let references = self.references.expect("asked above");
                let handle = u32::try_from(number)
                    .map_err(|_| damaged("a reference that was not given"))
                    .and_then(|number| references.handle(number));
                handle
                    .map(Value::Reference)
                    .or_else(|error| self.refuse(error.into()))
            }
            _ => Ok(self.heap.new_dictionary(dictionary)),
        }
    }
}

/// Reads one JSON value.
struct Seed<'r, 'h>(&'r mut Reader<'h>);

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
        self.0.number(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
        match number.is_finite() {
            true => Ok(Value::Float(number)),
            false => Err(E::custom("a number out of range")),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        self.0.text(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = source.next_element_seed(Seed(self.0))? {
            items.push(item);
            if items.len().is_power_of_two() {
                self.0.room(items.len() * 2 * size_of::<Value>())?;
            }
        }
        Ok(self.0.heap.new_list(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        match map.next_key::<String>()? {
            None => Ok(self.0.heap.new_dictionary(Dictionary::default())),
            Some(key) if key == NUMBER_KEY => {
                let digits: String = map.next_value()?;
                self.0.number(&digits)
            }
            Some(key) => self.0.dictionary(key, map),
        }
    }
}

/// What a task's result that cannot be read throws.
pub(crate) fn unreadable<T>(error: &LoadError) -> Result<T, Pause> {
    fail(
        "DamagedObject",
        format!("the value of a reference cannot be read: {error}"),
    )
}
