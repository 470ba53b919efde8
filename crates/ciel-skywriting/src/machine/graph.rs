//! Between the heap and bytes: everything that some roots reach, with sharing and cycles.
//!
//! Both ways walk with explicit queues, so depth costs no stack. It does not know what the roots
//! are for. Read next: `crate::wire` for the form.

use num_bigint::BigInt;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::Hash;

use super::heap::Heap;
use crate::code::{CodeCaptureMode, CodeHash};
use crate::host::Handle;
use crate::value::{Closure, Dictionary, Index, KeyView, Object, Text, Thunk, Value};
use crate::wire::{self, Item, KeyItem, LoadError, Node, SHORT_TEXT_BYTES_MAX, damaged};

/// What the bytes are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Equal texts are written once, so that equal values give equal bytes.
    Value,
    /// Texts keep their spare end, so that a thousand prefixes of one text stay one text.
    Machine,
}

/// A value that would take more than its heap may.
#[derive(Debug)]
pub(crate) struct TooLarge;

/// What [`encode`] gives.
#[derive(Debug, PartialEq)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    /// The references by their numbers in the bytes.
    pub(crate) references: Vec<Handle>,
}

/// Encodes what the roots reach.
pub(crate) fn encode(heap: &Heap, roots: &[Value], form: Form) -> Result<Encoded, TooLarge> {
    let mut encoder = Encoder {
        heap,
        form,
        out: Vec::with_capacity(64),
        has_functions: false,
        queue: VecDeque::new(),
        nodes: 0,
        objects: Numbers::default(),
        texts: FxHashMap::default(),
        integers: FxHashMap::default(),
        references: Vec::new(),
        numbers: Numbers::default(),
    };
    wire::put(
        &mut encoder.out,
        &u32::try_from(roots.len()).map_err(|_| TooLarge)?,
    );
    for root in roots {
        encoder.item(*root);
    }
    while let Some(queued) = encoder.queue.pop_front() {
        if form == Form::Value && encoder.out.len() > heap.bytes_max() {
            return Err(TooLarge);
        }
        encoder.node(queued);
    }
    let flags = if encoder.has_functions {
        wire::WITH_FUNCTIONS
    } else {
        0
    };
    let mut bytes = Vec::with_capacity(encoder.out.len() + 24);
    bytes.extend_from_slice(&[wire::VERSION, flags]);
    wire::put(&mut bytes, &encoder.nodes);
    bytes.append(&mut encoder.out);
    if encoder.has_functions {
        bytes.extend_from_slice(&heap.code.hash().0);
    }
    Ok(Encoded {
        bytes,
        references: encoder.references,
    })
}

/// Numbers of things already seen: a list while they are few, then a table.
struct Numbers<T> {
    few: Vec<(T, u32)>,
    many: FxHashMap<T, u32>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Numbers<T> {
        Numbers {
            few: Vec::new(),
            many: FxHashMap::default(),
        }
    }
}

impl<T: Copy + Eq + Hash> Numbers<T> {
    const FEW: usize = 8;

    /// The number of `thing`, which is `next` if it is new.
    fn number(&mut self, thing: T, next: u32) -> u32 {
        if let Some((_, known)) = self.few.iter().find(|(known, _)| *known == thing) {
            return *known;
        }
        if self.few.len() < Self::FEW {
            self.few.push((thing, next));
            return next;
        }
        *self.many.entry(thing).or_insert(next)
    }
}

enum Queued<'h> {
    Object(Index),
    Text(&'h str),
    Integer(Vec<u8>),
}

struct Encoder<'h> {
    heap: &'h Heap,
    form: Form,
    /// Roots and nodes; the head is known last.
    out: Vec<u8>,
    has_functions: bool,
    queue: VecDeque<Queued<'h>>,
    nodes: u32,
    objects: Numbers<Index>,
    texts: FxHashMap<&'h str, u32>,
    integers: FxHashMap<Vec<u8>, u32>,
    references: Vec<Handle>,
    numbers: Numbers<Handle>,
}

impl<'h> Encoder<'h> {
    fn item(&mut self, value: Value) {
        let value = self.heap.settled(value);
        let item = match value {
            Value::Unset => Item::Unset,
            Value::Null => Item::Null,
            Value::Bool(value) => Item::Bool(value),
            Value::Int(number) => Item::Int(number),
            Value::Float(number) => Item::Float(number),
            Value::Constant(_) | Value::Text { .. } => self.text(value),
            Value::Big(index) => Item::Integer(self.integer(index)),
            Value::List(index) => Item::List(self.object(index)),
            Value::Dictionary(index) => Item::Dictionary(self.object(index)),
            Value::Closure(index) => {
                self.has_functions = true;
                Item::Closure(self.object(index))
            }
            Value::Cell(index) => Item::Cell(self.object(index)),
            Value::Thunk(index) => Item::Thunk(self.object(index)),
            Value::Builtin(builtin) => Item::Builtin(builtin),
            Value::Reference(handle) => Item::Reference(self.reference(handle)),
        };
        wire::put(&mut self.out, &item);
    }

    fn text(&mut self, value: Value) -> Item<'h> {
        let heap: &'h Heap = self.heap;
        let text = heap.text(value);
        if text.len() <= SHORT_TEXT_BYTES_MAX {
            return Item::Text(text);
        }
        let bytes = u32::try_from(text.len()).expect("the budget bounds a text");
        let object = match (value, self.form) {
            (Value::Text { object, .. }, Form::Machine) => self.object(object),
            _ => match self.texts.get(text) {
                Some(known) => *known,
                None => {
                    let number = self.enqueue(Queued::Text(text));
                    self.texts.insert(text, number);
                    number
                }
            },
        };
        Item::LongText { object, bytes }
    }

    fn integer(&mut self, index: Index) -> u32 {
        let bytes = self
            .heap
            .big(index)
            .map(BigInt::to_signed_bytes_le)
            .unwrap_or_default();
        if let Some(known) = self.integers.get(&bytes) {
            return *known;
        }
        let number = self.enqueue(Queued::Integer(bytes.clone()));
        self.integers.insert(bytes, number);
        number
    }

    fn object(&mut self, index: Index) -> u32 {
        let number = self.objects.number(index, self.nodes);
        if number == self.nodes {
            self.enqueue(Queued::Object(index));
        }
        number
    }

    fn enqueue(&mut self, queued: Queued<'h>) -> u32 {
        self.queue.push_back(queued);
        self.nodes += 1;
        self.nodes - 1
    }

    fn reference(&mut self, handle: Handle) -> u32 {
        let next = u32::try_from(self.references.len()).expect("handles fit in 32 bits");
        let number = self.numbers.number(handle, next);
        if number == next {
            self.references.push(handle);
        }
        number
    }

    fn node(&mut self, queued: Queued<'h>) {
        match queued {
            Queued::Text(text) => wire::put(&mut self.out, &Node::Text(text)),
            Queued::Integer(bytes) => wire::put(&mut self.out, &Node::Integer(&bytes)),
            Queued::Object(index) => {
                let heap: &'h Heap = self.heap;
                self.object_node(heap.object(index));
            }
        }
    }

    fn object_node(&mut self, object: &'h Object) {
        let count = |length: usize| u32::try_from(length).expect("the budget bounds objects");
        match object {
            Object::Gone | Object::Integer(_) => wire::put(&mut self.out, &Node::Text("")),
            Object::Text(text) => wire::put(&mut self.out, &Node::Text(&text.text)),
            Object::List(items) => {
                wire::put(&mut self.out, &Node::List(count(items.len())));
                items.iter().for_each(|item| self.item(*item));
            }
            Object::Dictionary(dictionary) => {
                let entries = dictionary.entries();
                wire::put(&mut self.out, &Node::Dictionary(count(entries.len())));
                for (key, value) in entries {
                    let key = match key.view() {
                        KeyView::Text(text) => KeyItem::Text(text),
                        KeyView::Int(number) => KeyItem::Int(number),
                    };
                    wire::put(&mut self.out, &key);
                    self.item(*value);
                }
            }
            Object::Closure(Closure { function, captures }) => {
                let captured = count(captures.len());
                let node = Node::Closure {
                    function: *function,
                    captures: captured,
                };
                wire::put(&mut self.out, &node);
                captures.iter().for_each(|value| self.item(*value));
            }
            Object::Cell(value) => {
                wire::put(&mut self.out, &Node::Cell);
                self.item(*value);
            }
            Object::Thunk(Thunk::Waiting(handle)) => {
                let number = self.reference(*handle);
                wire::put(&mut self.out, &Node::Thunk(number));
            }
            Object::Thunk(Thunk::Forced(_)) => wire::put(&mut self.out, &Node::Text("")),
        }
    }
}

/// Which handles the references in some bytes get: number `i` becomes `first + i`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbering {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl Numbering {
    pub(crate) fn handle(self, number: u32) -> Result<Handle, LoadError> {
        match number < self.count {
            true => Ok(Handle(self.first.saturating_add(number))),
            false => Err(damaged("a reference that was not given")),
        }
    }
}

/// Why bytes were not read.
#[derive(Debug)]
pub(crate) enum Refusal {
    Load(LoadError),
    /// So many bytes of heap are needed at least.
    Room(usize),
}

impl Refusal {
    pub(crate) fn into_load_error(self, bytes_max: usize) -> LoadError {
        match self {
            Refusal::Load(error) => error,
            Refusal::Room(_) => LoadError::TooLarge { bytes_max },
        }
    }
}

impl From<LoadError> for Refusal {
    fn from(error: LoadError) -> Refusal {
        Refusal::Load(error)
    }
}

/// Adds the encoded values to the heap and their roots to `roots`. When it fails, what it added
/// is garbage for the collector.
pub(crate) fn decode(
    heap: &mut Heap,
    bytes: &[u8],
    numbering: Numbering,
    roots: &mut Vec<Value>,
) -> Result<(), Refusal> {
    let mut rest = open(heap, bytes)?;
    let nodes: u32 = wire::take(&mut rest)?;
    if nodes as usize > rest.len() {
        return Err(damaged("more objects than bytes").into());
    }
    let first = u32::try_from(heap.objects().len()).map_err(|_| Refusal::Room(usize::MAX))?;
    let mut decoder = Decoder {
        start: heap.used(),
        heap,
        rest,
        first,
        nodes,
        numbering,
    };
    decoder.room(nodes as usize * size_of::<Object>())?;
    for _ in 0..nodes {
        decoder.heap.adopt(Object::Gone);
    }
    let count: u32 = wire::take(&mut decoder.rest)?;
    let start = roots.len();
    for _ in 0..count {
        let root = decoder.item()?;
        roots.push(root);
    }
    for number in 0..nodes {
        decoder.node(Index(first + number))?;
    }
    if !decoder.rest.is_empty() {
        return Err(damaged("bytes are left over").into());
    }
    let check = Check { heap, first };
    roots[start..]
        .iter()
        .try_for_each(|root| check.value(*root))?;
    check.objects()?;
    Ok(())
}

/// Checks version and code; gives what is between.
fn open<'b>(heap: &Heap, bytes: &'b [u8]) -> Result<&'b [u8], LoadError> {
    let [version, flags, body @ ..] = bytes else {
        return Err(damaged("they are too short"));
    };
    if *version != wire::VERSION {
        return Err(LoadError::OtherVersion { found: *version });
    }
    match *flags {
        0 => Ok(body),
        wire::WITH_FUNCTIONS => {
            let (body, hash) = body
                .split_last_chunk::<16>()
                .ok_or(damaged("they are too short"))?;
            let (expected, found) = (heap.code.hash(), CodeHash(*hash));
            match expected == found {
                true => Ok(body),
                false => Err(LoadError::OtherProgram { expected, found }),
            }
        }
        _ => Err(damaged("unknown flags")),
    }
}

struct Decoder<'h, 'b> {
    heap: &'h mut Heap,
    /// Bytes of the budget in use when it began.
    start: usize,
    rest: &'b [u8],
    first: u32,
    nodes: u32,
    numbering: Numbering,
}

impl Decoder<'_, '_> {
    /// So many more bytes, besides what it has taken already.
    fn room(&self, bytes: usize) -> Result<(), Refusal> {
        let spent = self.heap.used() - self.start;
        self.heap
            .room(bytes)
            .map_err(|_| Refusal::Room(spent.saturating_add(bytes)))
    }

    fn index(&self, number: u32) -> Result<Index, LoadError> {
        match number < self.nodes {
            true => Ok(Index(self.first + number)),
            false => Err(damaged("an object that is not there")),
        }
    }

    fn item(&mut self) -> Result<Value, Refusal> {
        let item: Item<'_> = wire::take(&mut self.rest)?;
        Ok(match item {
            Item::Unset => Value::Unset,
            Item::Null => Value::Null,
            Item::Bool(value) => Value::Bool(value),
            Item::Int(number) => Value::Int(number),
            Item::Float(number) if number.is_finite() => Value::Float(number),
            Item::Float(_) => return Err(damaged("a float that is not finite").into()),
            Item::Text(text) => {
                self.room(text.len() + size_of::<Object>())?;
                self.heap.adopt_text(text.to_owned())
            }
            Item::LongText { object, bytes } => Value::Text {
                object: self.index(object)?,
                bytes,
            },
            Item::Integer(number) => Value::Big(self.index(number)?),
            Item::List(number) => Value::List(self.index(number)?),
            Item::Dictionary(number) => Value::Dictionary(self.index(number)?),
            Item::Closure(number) => Value::Closure(self.index(number)?),
            Item::Cell(number) => Value::Cell(self.index(number)?),
            Item::Thunk(number) => Value::Thunk(self.index(number)?),
            Item::Builtin(builtin) => Value::Builtin(builtin),
            Item::Reference(number) => Value::Reference(self.numbering.handle(number)?),
        })
    }

    fn items(&mut self, count: u32) -> Result<Vec<Value>, Refusal> {
        let count = self.at_least_one_byte_each(count)?;
        self.room(count * size_of::<Value>())?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(self.item()?);
        }
        Ok(items)
    }

    fn at_least_one_byte_each(&self, count: u32) -> Result<usize, LoadError> {
        match count as usize <= self.rest.len() {
            true => Ok(count as usize),
            false => Err(damaged("more items than bytes")),
        }
    }

    fn node(&mut self, place: Index) -> Result<(), Refusal> {
        let node: Node<'_> = wire::take(&mut self.rest)?;
        let object = match node {
            Node::List(count) => Object::List(self.items(count)?),
            Node::Dictionary(count) => Object::Dictionary(Box::new(self.dictionary(count)?)),
            Node::Closure { function, captures } => {
                let captures = self.items(captures)?.into_boxed_slice();
                Object::Closure(Closure { function, captures })
            }
            Node::Cell => Object::Cell(self.item()?),
            Node::Thunk(number) => Object::Thunk(Thunk::Waiting(self.numbering.handle(number)?)),
            Node::Text(text) => {
                self.room(text.len())?;
                Object::Text(Text {
                    text: text.to_owned(),
                    is_ascii: text.is_ascii(),
                })
            }
            Node::Integer(bytes) => {
                self.room(bytes.len())?;
                if bytes.len() > super::heap::INTEGER_BYTES_MAX + 1 {
                    return Err(damaged("an integer that is too large").into());
                }
                Object::Integer(Box::new(BigInt::from_signed_bytes_le(bytes)))
            }
        };
        self.heap.fill(place, object);
        Ok(())
    }

    fn dictionary(&mut self, count: u32) -> Result<Dictionary, Refusal> {
        let mut dictionary = Dictionary::default();
        let count = self.at_least_one_byte_each(count)?;
        for _ in 0..count {
            let key = match wire::take(&mut self.rest)? {
                KeyItem::Text(text) => KeyView::Text(text),
                KeyItem::Int(number) => KeyView::Int(number),
            };
            self.room(dictionary.bytes())?;
            let value = self.item()?;
            dictionary.insert(key, value);
        }
        Ok(dictionary)
    }
}

/// Whether every value names an object of its own kind.
struct Check<'h> {
    heap: &'h Heap,
    first: u32,
}

impl Check<'_> {
    fn objects(&self) -> Result<(), LoadError> {
        self.heap.objects()[self.first as usize..]
            .iter()
            .try_for_each(|object| match object {
                Object::Text(_) | Object::Integer(_) | Object::Thunk(Thunk::Waiting(_)) => Ok(()),
                Object::Gone | Object::Thunk(Thunk::Forced(_)) => Err(damaged("a missing object")),
                Object::List(items) => items.iter().try_for_each(|item| self.program_value(*item)),
                Object::Dictionary(dictionary) => dictionary
                    .entries()
                    .iter()
                    .try_for_each(|(_, value)| self.program_value(*value)),
                Object::Cell(Value::Cell(_)) => Err(damaged("a variable in a variable")),
                Object::Cell(value) => self.value(*value),
                Object::Closure(closure) => self.closure(closure),
            })
    }

    fn closure(&self, closure: &Closure) -> Result<(), LoadError> {
        let function = self.heap.code.functions.get(closure.function as usize);
        let function = function.ok_or(damaged("a function that is not there"))?;
        if function.captures.len() != closure.captures.len() {
            return Err(damaged("a function with other captured variables"));
        }
        function
            .captures
            .iter()
            .zip(&closure.captures)
            .try_for_each(|(capture, value)| {
                let is_cell = matches!(value, Value::Cell(_));
                match capture.mode {
                    CodeCaptureMode::Cell if !is_cell => {
                        Err(damaged("a captured variable is none"))
                    }
                    CodeCaptureMode::Value if is_cell => Err(damaged("a captured value is none")),
                    _ => self.value(*value),
                }
            })
    }

    /// A value that programs may see.
    fn program_value(&self, value: Value) -> Result<(), LoadError> {
        match value {
            Value::Unset | Value::Cell(_) => Err(damaged("an unset value")),
            _ => self.value(value),
        }
    }

    fn value(&self, value: Value) -> Result<(), LoadError> {
        let Some(index) = value.index() else {
            return Ok(());
        };
        let fits = match (value, self.heap.object(index)) {
            (Value::Text { bytes, .. }, Object::Text(text)) => {
                text.text.is_char_boundary(bytes as usize)
            }
            (Value::Big(_), Object::Integer(_))
            | (Value::List(_), Object::List(_))
            | (Value::Dictionary(_), Object::Dictionary(_))
            | (Value::Closure(_), Object::Closure(_))
            | (Value::Cell(_), Object::Cell(_))
            | (Value::Thunk(_), Object::Thunk(_)) => true,
            _ => false,
        };
        if fits {
            Ok(())
        } else {
            Err(damaged("an object of another kind"))
        }
    }
}
