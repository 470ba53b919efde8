//! The heap of one machine: allocation, its budget, and the compacting collector.
//!
//! Every byte is charged before it is taken. When the charge passes the threshold, the machine
//! collects between two instructions; what is still too much then is `OutOfMemory`. It does not
//! know what keeps objects alive besides the values it is handed. Read next: `crate::value`.

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::sync::Arc;

use super::collector::{OBJECT_BYTES, VALUE_BYTES, besides, collected};
use super::failure::{Failure, Pause};
use crate::code::{Code, Constant};
use crate::host::Handle;
use crate::value::{Closure, Dictionary, Index, Key, KeyView, Object, Text, Thunk, Value};

/// The collector does not run for less.
const COLLECT_BYTES_MIN: usize = 64 * 1024;
/// Objects for which there is room at the start: what a small function needs.
const OBJECTS_MIN: usize = 8;
/// Texts carry their length in 32 bits.
const BUDGET_BYTES_MAX: usize = u32::MAX as usize / 2;
/// Larger integers are refused: arithmetic on them would take seconds per operation.
pub(crate) const INTEGER_BYTES_MAX: usize = 256 * 1024;

/// See the module.
pub(crate) struct Heap {
    pub(crate) code: Arc<Code>,
    objects: Vec<Object>,
    /// Bytes charged: live ones at the last collection, and everything since.
    used: usize,
    /// Bytes of the live objects at the last collection.
    live: u32,
    /// Bytes that were in use outside the heap at that time.
    outside: u32,
    threshold: u32,
    bytes_max: u32,
}

impl Heap {
    pub(crate) fn new(code: Arc<Code>, bytes_max: usize) -> Heap {
        let bytes_max = bytes_max.min(BUDGET_BYTES_MAX) as u32;
        let threshold = bytes_max.min(COLLECT_BYTES_MIN as u32);
        Heap {
            code,
            objects: Vec::with_capacity(OBJECTS_MIN),
            used: 0,
            live: 0,
            outside: 0,
            threshold,
            bytes_max,
        }
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max as usize
    }

    /// Bytes of the budget in use, garbage included.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Bytes of its objects, garbage included: what a search looks at.
    pub(crate) fn object_bytes(&self) -> usize {
        self.used - self.outside as usize
    }

    /// Whether more than half of them came since the last collection, and may be garbage.
    pub(crate) fn has_doubled(&self) -> bool {
        self.object_bytes() / 2 > self.live as usize
    }

    pub(crate) fn is_over(&self) -> bool {
        self.used > self.threshold as usize
    }

    /// Asks whether so many bytes may be taken now.
    pub(crate) fn room(&self, bytes: usize) -> Result<(), Pause> {
        match self.used.saturating_add(bytes) > self.threshold as usize {
            true => Err(Pause::Collect(bytes)),
            false => Ok(()),
        }
    }

    pub(crate) fn charge(&mut self, bytes: usize) {
        self.used = self.used.saturating_add(bytes);
    }

    fn add(&mut self, object: Object, besides: usize) -> Index {
        self.used += OBJECT_BYTES + besides;
        self.objects.push(object);
        Index(u32::try_from(self.objects.len() - 1).expect("the budget bounds the objects"))
    }

    pub(crate) fn object(&self, index: Index) -> &Object {
        &self.objects[index.0 as usize]
    }

    pub(crate) fn object_mut(&mut self, index: Index) -> &mut Object {
        &mut self.objects[index.0 as usize]
    }

    pub(crate) fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Gives back memory that no object takes.
    pub(crate) fn shrink(&mut self) {
        self.objects.shrink_to_fit();
    }

    pub(crate) fn objects_mut(&mut self) -> &mut [Object] {
        &mut self.objects
    }

    /// The string of a string value; empty for anything else.
    pub(crate) fn text(&self, value: Value) -> &str {
        match value {
            Value::Constant(number) => match self.code.constants.get(number as usize) {
                Some(Constant::Text { text, .. }) => text,
                _ => "",
            },
            Value::Text { object, bytes } => match self.object(object) {
                Object::Text(text) => text.text.get(..bytes as usize).unwrap_or(""),
                _ => "",
            },
            _ => "",
        }
    }

    /// Whether every byte of the string is a character. May say no when it is so.
    pub(crate) fn is_ascii(&self, value: Value) -> bool {
        match value {
            Value::Constant(number) => matches!(
                self.code.constants.get(number as usize),
                Some(Constant::Text { is_ascii: true, .. })
            ),
            Value::Text { object, .. } => {
                matches!(
                    self.object(object),
                    Object::Text(Text { is_ascii: true, .. })
                )
            }
            _ => false,
        }
    }

    /// What is in a cell.
    pub(crate) fn content(&self, cell: Index) -> Value {
        match self.object(cell) {
            Object::Cell(value) | Object::Fixed(value) => *value,
            _ => Value::Unset,
        }
    }

    pub(crate) fn list(&self, index: Index) -> &[Value] {
        match self.object(index) {
            Object::List(items) => items,
            _ => &[],
        }
    }

    /// The number of a function of which [`Heap::set_plain`] has been told.
    #[inline]
    pub(crate) fn plain_function(&self, value: Value) -> Option<u32> {
        match value {
            Value::Closure(index) => match self.object(index) {
                Object::Closure(closure) if closure.is_plain => Some(closure.function),
                _ => None,
            },
            _ => None,
        }
    }

    /// Nothing that this function reaches can change, and it is not much.
    pub(crate) fn set_plain(&mut self, function: Value) {
        if let Value::Closure(index) = function
            && let Object::Closure(closure) = self.object_mut(index)
        {
            closure.is_plain = true;
        }
    }

    /// The elements of a list, to be changed to no more than they are.
    pub(crate) fn items_mut(&mut self, index: Index) -> &mut Vec<Value> {
        match self.object_mut(index) {
            Object::List(items) => items,
            other => unreachable!("a list, not {other:?}"),
        }
    }

    fn dictionary(&self, index: Index) -> Option<&Dictionary> {
        match self.object(index) {
            Object::Dictionary(dictionary) => Some(dictionary),
            _ => None,
        }
    }

    /// The entries of a dictionary; none of anything else.
    pub(crate) fn entries(
        &self,
        index: Index,
    ) -> impl DoubleEndedIterator<Item = &(Key, Value)> + Clone {
        self.dictionary(index)
            .into_iter()
            .flat_map(Dictionary::entries)
    }

    /// How many entries a dictionary has.
    pub(crate) fn count(&self, index: Index) -> usize {
        self.dictionary(index).map_or(0, Dictionary::len)
    }

    pub(crate) fn lookup(&self, index: Index, key: KeyView<'_>) -> Option<Value> {
        self.dictionary(index)?.get(key)
    }

    /// An integer of any size, or nothing.
    pub(crate) fn integer(&self, value: Value) -> Option<BigInt> {
        match value {
            Value::Int(number) => Some(BigInt::from(number)),
            Value::Big(index) => self.big(index).cloned(),
            _ => None,
        }
    }

    pub(crate) fn big(&self, index: Index) -> Option<&BigInt> {
        match self.object(index) {
            Object::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// Looks through thunks that have been forced.
    pub(crate) fn settled(&self, mut value: Value) -> Value {
        while let Value::Thunk(index) = value {
            match self.object(index) {
                Object::Thunk(Thunk::Forced(inside)) => value = *inside,
                _ => break,
            }
        }
        value
    }

    /// The reference that a thunk still waits for.
    pub(crate) fn waiting(&self, value: Value) -> Option<Handle> {
        match value {
            Value::Thunk(index) => match self.object(index) {
                Object::Thunk(Thunk::Waiting(handle)) => Some(*handle),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn key<'a>(&'a self, value: Value) -> Option<KeyView<'a>> {
        match value {
            Value::Int(number) => Some(KeyView::Int(number)),
            _ if value.is_text() => Some(KeyView::Text(self.text(value))),
            _ => None,
        }
    }

    pub(crate) fn new_text(&mut self, text: &str) -> Result<Value, Pause> {
        self.room(text.len())?;
        Ok(self.adopt_text(text.to_owned()))
    }

    /// Takes a string that has been made already.
    pub(crate) fn adopt_text(&mut self, text: String) -> Value {
        let bytes = u32::try_from(text.len()).expect("the budget bounds a text");
        let is_ascii = text.is_ascii();
        let besides = text.capacity();
        Value::Text {
            object: self.add(Object::Text(Text { text, is_ascii }), besides),
            bytes,
        }
    }

    pub(crate) fn new_key(&mut self, key: &Key) -> Result<Value, Pause> {
        match key {
            Key::Text(text) => self.new_text(text),
            Key::Int(number) => Ok(Value::Int(*number)),
        }
    }

    pub(crate) fn new_list(&mut self, items: Vec<Value>) -> Value {
        let besides = items.capacity() * VALUE_BYTES;
        Value::List(self.add(Object::List(items), besides))
    }

    pub(crate) fn new_dictionary(&mut self, dictionary: Dictionary) -> Value {
        let besides = dictionary.bytes();
        Value::Dictionary(self.add(Object::Dictionary(Box::new(dictionary)), besides))
    }

    pub(crate) fn new_closure(&mut self, closure: Closure) -> Value {
        let besides = closure.captures.len() * VALUE_BYTES;
        Value::Closure(self.add(Object::Closure(closure), besides))
    }

    pub(crate) fn new_cell(&mut self, value: Value) -> Value {
        Value::Cell(self.add(Object::Cell(value), 0))
    }

    pub(crate) fn new_thunk(&mut self, handle: Handle) -> Value {
        Value::Thunk(self.add(Object::Thunk(Thunk::Waiting(handle)), 0))
    }

    /// The value of an integer, in the small form when it fits.
    pub(crate) fn new_integer(&mut self, number: BigInt) -> Result<Value, Pause> {
        if let Some(small) = number.to_i64() {
            return Ok(Value::Int(small));
        }
        let bytes = usize::try_from(number.bits() / 8 + 1).unwrap_or(usize::MAX);
        if bytes > INTEGER_BYTES_MAX {
            let message = format!("an integer of more than {} KiB", INTEGER_BYTES_MAX / 1024);
            return Err(Failure::new("OutOfMemory", message).into());
        }
        self.room(bytes)?;
        Ok(Value::Big(
            self.add(Object::Integer(Box::new(number)), bytes + 32),
        ))
    }

    /// Adds a decoded or empty object as it is.
    pub(crate) fn adopt(&mut self, object: Object) -> Index {
        let besides = besides(&object);
        self.add(object, besides)
    }

    /// Puts an object into a place made before.
    pub(crate) fn fill(&mut self, place: Index, object: Object) {
        self.used += besides(&object);
        *self.object_mut(place) = object;
    }

    /// A thunk has this value.
    #[inline]
    pub(crate) fn set_forced(&mut self, thunk: Index, value: Value) {
        if let Object::Thunk(thunk) = self.object_mut(thunk) {
            *thunk = Thunk::Forced(value);
        }
    }

    /// Room for a dictionary's new entry, taken at once.
    pub(crate) fn room_for_entry(&mut self, key: KeyView<'_>) -> Result<(), Pause> {
        let bytes = key.bytes();
        self.room(bytes)?;
        self.charge(bytes);
        Ok(())
    }

    /// Appends to a list.
    pub(crate) fn append(&mut self, index: Index, value: Value) -> Result<(), Pause> {
        self.reserve_in_list(index, 1)?;
        if let Object::List(items) = self.object_mut(index) {
            items.push(value);
        }
        Ok(())
    }

    /// Makes room for more elements; a list that has too little of it at least doubles.
    pub(crate) fn reserve_in_list(&mut self, index: Index, more: usize) -> Result<(), Pause> {
        let Object::List(items) = self.object(index) else {
            return Ok(());
        };
        let needed = items.len().saturating_add(more);
        if needed <= items.capacity() {
            return Ok(());
        }
        let wanted = needed.max(items.capacity() * 2).max(4);
        let bytes = (wanted - items.capacity()).saturating_mul(VALUE_BYTES);
        self.room(bytes)?;
        self.charge(bytes);
        if let Object::List(items) = self.object_mut(index) {
            items.reserve_exact(wanted - items.len());
        }
        Ok(())
    }

    /// Joins two strings. The left one grows in place if it reaches to the end of its text.
    pub(crate) fn join_texts(&mut self, left: Value, right: Value) -> Result<Value, Pause> {
        let (left_bytes, right_bytes) = (self.text(left).len(), self.text(right).len());
        let total = left_bytes + right_bytes;
        if let Value::Text { object, bytes } = left
            && let Object::Text(text) = self.object(object)
            && text.text.len() == bytes as usize
        {
            let wanted = if total > text.text.capacity() {
                total.max(left_bytes * 2)
            } else {
                0
            };
            let more = wanted.saturating_sub(text.text.capacity());
            self.room(if wanted > 0 { wanted } else { 0 })?;
            self.charge(more);
            self.extend_text(object, right, wanted);
            let bytes = u32::try_from(total).expect("the budget bounds a text");
            return Ok(Value::Text { object, bytes });
        }
        self.room(total)?;
        let mut joined = String::with_capacity(total);
        joined.push_str(self.text(left));
        joined.push_str(self.text(right));
        Ok(self.adopt_text(joined))
    }

    fn extend_text(&mut self, object: Index, right: Value, capacity: usize) {
        let Object::Text(mut text) = std::mem::replace(self.object_mut(object), Object::Gone)
        else {
            return;
        };
        if capacity > 0 {
            text.text.reserve_exact(capacity - text.text.len());
        }
        match right {
            Value::Text {
                object: same,
                bytes,
            } if same == object => {
                let piece = text.text[..bytes as usize].to_owned();
                text.text.push_str(&piece);
            }
            _ => {
                let piece = self.text(right);
                text.is_ascii = text.is_ascii && piece.is_ascii();
                text.text.push_str(piece);
            }
        }
        *self.object_mut(object) = Object::Text(text);
    }

    /// Drops everything that the roots do not reach, and moves the rest together. Of the values of
    /// kept children those are roots that are `named`, and those that a root reaches by a
    /// reference; they are marked then. `other` bytes of the budget are in use outside the heap.
    /// Gives the number of live objects; fails when `need` more bytes do not fit.
    pub(crate) fn collect(
        &mut self,
        roots: &mut [Value],
        (kept, named): (&mut [Value], &mut [bool]),
        other: usize,
        need: usize,
    ) -> Result<usize, Box<Failure>> {
        let (objects, bytes) = collected(std::mem::take(&mut self.objects), roots, kept, named);
        self.objects = objects;
        let short = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        (self.live, self.outside) = (short(bytes), short(other));
        self.used = bytes + other;
        let spare = need
            .saturating_mul(2)
            .saturating_add(COLLECT_BYTES_MIN)
            .max(self.used);
        let threshold = self.used.saturating_add(spare).min(self.bytes_max());
        self.threshold = short(threshold);
        if self.used.saturating_add(need) > self.bytes_max() {
            let budget = self.bytes_max / (1024 * 1024);
            let message = format!("the script needs more than its {budget} MiB of memory");
            let failure = Failure::new("OutOfMemory", message)
                .hint("keep fewer values at once, or raise the limit with --heap");
            return Err(Box::new(failure));
        }
        Ok(self.objects.len())
    }
}
