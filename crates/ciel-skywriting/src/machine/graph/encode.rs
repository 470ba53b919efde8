//! From the heap to bytes.
//!
//! Read next: `decode`.

use num_bigint::BigInt;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

use crate::host::Handle;
use crate::machine::heap::Heap;
use crate::machine::seen::Seen;
use crate::value::{Closure, Index, KeyView, Object, Thunk, Value};
use crate::wire::{self, Item, KeyItem, Node, SHORT_TEXT_BYTES_MAX};

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
        objects: Seen::default(),
        texts: FxHashMap::default(),
        integers: FxHashMap::default(),
        references: Vec::new(),
        numbers: Seen::default(),
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
    objects: Seen<Index>,
    texts: FxHashMap<&'h str, u32>,
    integers: FxHashMap<Vec<u8>, u32>,
    references: Vec<Handle>,
    numbers: Seen<Handle>,
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
                wire::put(&mut self.out, &Node::Dictionary(count(dictionary.len())));
                for (key, value) in dictionary.entries() {
                    let key = match key.view() {
                        KeyView::Text(text) => KeyItem::Text(text),
                        KeyView::Int(number) => KeyItem::Int(number),
                    };
                    wire::put(&mut self.out, &key);
                    self.item(*value);
                }
            }
            Object::Closure(Closure {
                function, captures, ..
            }) => {
                let captured = count(captures.len());
                let node = Node::Closure {
                    function: *function,
                    captures: captured,
                };
                wire::put(&mut self.out, &node);
                captures.iter().for_each(|value| self.item(*value));
            }
            Object::Cell(value) | Object::Fixed(value) => {
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
