//! From bytes to the heap. The bytes are not trusted.
//!
//! Read next: `check`.

use num_bigint::BigInt;

use super::check::Check;
use crate::host::{Handle, References};
use crate::machine::heap::{Heap, INTEGER_BYTES_MAX};
use crate::value::{Closure, Dictionary, Index, KeyView, Object, Text, Thunk, Value};
use crate::wire::{self, Item, KeyItem, LoadError, Node, damaged};

impl References {
    pub(crate) fn handle(self, number: u32) -> Result<Handle, LoadError> {
        match number < self.count {
            true => Ok(Handle(self.first.0.saturating_add(number))),
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
    references: References,
    roots: &mut Vec<Value>,
) -> Result<(), Refusal> {
    let mut rest = wire::open(bytes, heap.code.hash())?;
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
        references,
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

struct Decoder<'h, 'b> {
    heap: &'h mut Heap,
    /// Bytes of the budget in use when it began.
    start: usize,
    rest: &'b [u8],
    first: u32,
    nodes: u32,
    references: References,
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
            false => Err(damaged("an object that does not exist")),
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
            Item::Reference(number) => Value::Reference(self.references.handle(number)?),
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
                Object::Closure(Closure {
                    function,
                    is_plain: false,
                    captures,
                })
            }
            Node::Cell => Object::Cell(self.item()?),
            Node::Thunk(number) => Object::Thunk(Thunk::Waiting(self.references.handle(number)?)),
            Node::Text(text) => {
                self.room(text.len())?;
                Object::Text(Text {
                    text: text.to_owned(),
                    is_ascii: text.is_ascii(),
                })
            }
            Node::Integer(bytes) => {
                self.room(bytes.len())?;
                if bytes.len() > INTEGER_BYTES_MAX + 1 {
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
        let mut bytes = 0;
        for _ in 0..count {
            let key = match wire::take(&mut self.rest)? {
                KeyItem::Text(text) => KeyView::Text(text),
                KeyItem::Int(number) => KeyView::Int(number),
            };
            bytes += key.bytes();
            self.room(bytes)?;
            let value = self.item()?;
            dictionary.insert(key, value);
        }
        Ok(dictionary)
    }
}
