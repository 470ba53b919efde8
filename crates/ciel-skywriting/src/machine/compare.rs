//! Equality, order and truth of values whose thunks have been forced.
//!
//! It walks at most [`NESTING_MAX`](super::json::NESTING_MAX) deep. Read next: `force`.

use num_bigint::BigInt;
use num_traits::FromPrimitive;
use std::cmp::Ordering;

use super::failure::{Pause, fail};
use super::heap::Heap;
use super::json::{NESTING_MAX, too_deep};
use super::numbers::mismatch;
use crate::code::Operator;
use crate::value::{Object, Value};

/// Whether a condition holds: null, false, zero and what is empty do not.
pub(crate) fn is_true(heap: &Heap, value: Value) -> bool {
    match value {
        Value::Unset | Value::Null => false,
        Value::Bool(value) => value,
        Value::Int(number) => number != 0,
        Value::Float(number) => number != 0.0,
        Value::Constant(_) | Value::Text { .. } => !heap.text(value).is_empty(),
        Value::List(index) => !heap.list(index).is_empty(),
        Value::Dictionary(index) => heap.count(index) > 0,
        Value::Big(_)
        | Value::Closure(_)
        | Value::Builtin(_)
        | Value::Cell(_)
        | Value::Thunk(_)
        | Value::Reference(_) => true,
    }
}

/// Compares pairs of values, counting them, so that shared structure cannot take for ever.
pub(crate) struct Comparison<'h> {
    heap: &'h Heap,
    pub(crate) visited: usize,
}

impl<'h> Comparison<'h> {
    pub(crate) fn new(heap: &'h Heap) -> Comparison<'h> {
        Comparison { heap, visited: 0 }
    }

    fn visit(&mut self, depth: usize) -> Result<(), Pause> {
        self.visited += 1;
        if depth > NESTING_MAX {
            return Err(too_deep().into());
        }
        match self.visited > self.heap.bytes_max() / size_of::<Value>() {
            true => fail("OutOfMemory", "the values are too large to compare"),
            false => Ok(()),
        }
    }

    /// Equality by value: 1 equals 1.0, lists by element, dictionaries whatever their order.
    pub(crate) fn equal(&mut self, left: Value, right: Value) -> Result<bool, Pause> {
        self.equal_at(left, right, 0)
    }

    fn equal_at(&mut self, left: Value, right: Value, depth: usize) -> Result<bool, Pause> {
        self.visit(depth)?;
        let heap = self.heap;
        let (left, right) = (heap.settled(left), heap.settled(right));
        if left == right {
            return Ok(true);
        }
        match (left, right) {
            _ if left.is_text() && right.is_text() => Ok(heap.text(left) == heap.text(right)),
            (Value::List(left), Value::List(right)) => {
                let (left, right) = (heap.list(left), heap.list(right));
                if left.len() != right.len() {
                    return Ok(false);
                }
                self.all_equal(left.iter().copied().zip(right.iter().copied()), depth)
            }
            (Value::Dictionary(left), Value::Dictionary(right)) => {
                let pairs: Option<Vec<_>> = heap
                    .entries(left)
                    .map(|(key, value)| Some((*value, heap.lookup(right, key.view())?)))
                    .collect();
                match pairs {
                    Some(pairs) if heap.count(left) == heap.count(right) => {
                        self.all_equal(pairs.into_iter(), depth)
                    }
                    _ => Ok(false),
                }
            }
            (Value::Closure(left), Value::Closure(right)) => {
                self.equal_closures(left, right, depth)
            }
            _ => Ok(numbers(heap, left, right) == Some(Ordering::Equal)),
        }
    }

    fn equal_closures(
        &mut self,
        left: crate::value::Index,
        right: crate::value::Index,
        depth: usize,
    ) -> Result<bool, Pause> {
        match (self.heap.object(left), self.heap.object(right)) {
            (Object::Closure(left), Object::Closure(right)) if left.function == right.function => {
                let (left, right) = (left.captures.iter(), right.captures.iter());
                self.all_equal(left.copied().zip(right.copied()), depth)
            }
            _ => Ok(false),
        }
    }

    fn all_equal(
        &mut self,
        mut pairs: impl Iterator<Item = (Value, Value)>,
        depth: usize,
    ) -> Result<bool, Pause> {
        pairs.try_fold(true, |so_far, (left, right)| {
            Ok(so_far && self.equal_at(left, right, depth + 1)?)
        })
    }

    /// Order of numbers, of strings by code point, and of lists by element.
    pub(crate) fn order(
        &mut self,
        operator: Operator,
        left: Value,
        right: Value,
    ) -> Result<Ordering, Pause> {
        self.order_at(operator, left, right, 0)
    }

    fn order_at(
        &mut self,
        operator: Operator,
        left: Value,
        right: Value,
        depth: usize,
    ) -> Result<Ordering, Pause> {
        self.visit(depth)?;
        let heap = self.heap;
        let (left, right) = (heap.settled(left), heap.settled(right));
        if left.is_text() && right.is_text() {
            return Ok(heap.text(left).cmp(heap.text(right)));
        }
        if let (Value::List(left), Value::List(right)) = (left, right) {
            let (left, right) = (heap.list(left), heap.list(right));
            for (left, right) in left.iter().zip(right) {
                let order = self.order_at(operator, *left, *right, depth + 1)?;
                if order != Ordering::Equal {
                    return Ok(order);
                }
            }
            return Ok(left.len().cmp(&right.len()));
        }
        match numbers(heap, left, right) {
            Some(order) => Ok(order),
            None => mismatch(heap, operator, left, right).map(|_| Ordering::Equal),
        }
    }
}

/// Exact order of two numbers; nothing when one is none.
fn numbers(heap: &Heap, left: Value, right: Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(&right)),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(&right),
        (Value::Float(float), _) => integer_and_float(heap, right, float).map(Ordering::reverse),
        (_, Value::Float(float)) => integer_and_float(heap, left, float),
        _ => Some(heap.integer(left)?.cmp(&heap.integer(right)?)),
    }
}

fn integer_and_float(heap: &Heap, integer: Value, float: f64) -> Option<Ordering> {
    let integer = heap.integer(integer)?;
    let whole = BigInt::from_f64(float.trunc())?;
    let fraction = float - float.trunc();
    Some(integer.cmp(&whole).then(0.0.partial_cmp(&fraction)?))
}

/// Whether an order satisfies a comparison.
pub(crate) fn satisfies(operator: Operator, order: Ordering) -> bool {
    match operator {
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
        Operator::Equal => order.is_eq(),
        _ => order.is_ne(),
    }
}
