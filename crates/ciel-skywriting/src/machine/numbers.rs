//! Arithmetic on forced values.
//!
//! Integers have any size up to a limit, floats are always finite, and the two mix. Remainders
//! have the sign of the divisor. It does not know the stack. Read next: `compare`.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use super::failure::{Failure, Pause, fail};
use super::heap::{Heap, INTEGER_BYTES_MAX};
use super::json::brief;
use crate::code::Operator;
use crate::value::Value;

/// `left operator right` for the arithmetic operators.
pub(crate) fn arithmetic(
    heap: &mut Heap,
    operator: Operator,
    left: Value,
    right: Value,
) -> Result<Value, Pause> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => small(heap, operator, left, right),
        (Value::Float(left), Value::Float(right)) => float(operator, left, right),
        _ if operator == Operator::Add && left.is_text() && right.is_text() => {
            heap.join_texts(left, right)
        }
        (Value::List(_), Value::List(_)) if operator == Operator::Add => {
            join_lists(heap, left, right)
        }
        _ => mixed(heap, operator, left, right),
    }
}

fn small(heap: &mut Heap, operator: Operator, left: i64, right: i64) -> Result<Value, Pause> {
    let fast = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide if right != 0 && left.checked_rem(right) == Some(0) => {
            left.checked_div(right)
        }
        Operator::Remainder if right != 0 => left.checked_rem(right).map(|rest| {
            if rest != 0 && (rest < 0) != (right < 0) {
                rest + right
            } else {
                rest
            }
        }),
        _ => None,
    };
    let is_exact = |number: i64| number.unsigned_abs() < 1 << 53;
    match fast {
        Some(number) => Ok(Value::Int(number)),
        None if operator == Operator::Divide && right != 0 && is_exact(left) && is_exact(right) => {
            Ok(Value::Float(left as f64 / right as f64))
        }
        None => large(heap, operator, &BigInt::from(left), &BigInt::from(right)),
    }
}

fn mixed(heap: &mut Heap, operator: Operator, left: Value, right: Value) -> Result<Value, Pause> {
    if let (Some(left), Some(right)) = (heap.integer(left), heap.integer(right)) {
        return large(heap, operator, &left, &right);
    }
    match (as_float(heap, left)?, as_float(heap, right)?) {
        (Some(left), Some(right)) => float(operator, left, right),
        _ => mismatch(heap, operator, left, right),
    }
}

/// A number as a float; nothing for other values.
pub(crate) fn as_float(heap: &Heap, value: Value) -> Result<Option<f64>, Pause> {
    match value {
        Value::Int(number) => Ok(Some(number as f64)),
        Value::Float(number) => Ok(Some(number)),
        Value::Big(index) => match heap.big(index).and_then(ToPrimitive::to_f64) {
            Some(number) if number.is_finite() => Ok(Some(number)),
            _ => fail("OutOfRange", "the integer is too large for a float"),
        },
        _ => Ok(None),
    }
}

fn large(
    heap: &mut Heap,
    operator: Operator,
    left: &BigInt,
    right: &BigInt,
) -> Result<Value, Pause> {
    let bits = match operator {
        Operator::Multiply => left.bits() + right.bits(),
        _ => left.bits().max(right.bits()) + 1,
    };
    if bits / 8 > INTEGER_BYTES_MAX as u64 {
        let message = format!("an integer of more than {} KiB", INTEGER_BYTES_MAX / 1024);
        return fail("OutOfMemory", message);
    }
    match operator {
        Operator::Add => heap.new_integer(left + right),
        Operator::Subtract => heap.new_integer(left - right),
        Operator::Multiply => heap.new_integer(left * right),
        _ if right.is_zero() => division_by_zero(),
        Operator::Remainder => {
            let rest = left % right;
            let crosses = !rest.is_zero() && rest.is_negative() != right.is_negative();
            heap.new_integer(if crosses { rest + right } else { rest })
        }
        _ => {
            let rest = left % right;
            if rest.is_zero() {
                return heap.new_integer(left / right);
            }
            finite(quotient(left, right))
        }
    }
}

/// The float nearest to the quotient, also when neither side fits a float.
fn quotient(left: &BigInt, right: &BigInt) -> f64 {
    const BITS_KEPT: i64 = 66;
    let bits = |number: &BigInt| i64::try_from(number.bits()).unwrap_or(i64::MAX / 2);
    let shift = BITS_KEPT - (bits(left) - bits(right));
    let (scaled, divisor) = match shift > 0 {
        true => (left << shift, right.clone()),
        false => (left.clone(), right << -shift),
    };
    let rest = &scaled % &divisor;
    let mut whole = scaled / divisor;
    if !rest.is_zero() {
        // A bit far below the precision keeps a tie from being one.
        whole.set_bit(0, true);
    }
    let power = i32::try_from(-shift).unwrap_or(i32::MAX).clamp(-2200, 2200);
    let half = power / 2;
    whole.to_f64().unwrap_or(f64::NAN) * 2f64.powi(half) * 2f64.powi(power - half)
}

fn float(operator: Operator, left: f64, right: f64) -> Result<Value, Pause> {
    match operator {
        Operator::Add => finite(left + right),
        Operator::Subtract => finite(left - right),
        Operator::Multiply => finite(left * right),
        _ if right == 0.0 => division_by_zero(),
        Operator::Remainder => {
            let rest = left % right;
            let crosses = rest != 0.0 && (rest < 0.0) != (right < 0.0);
            finite(if crosses { rest + right } else { rest })
        }
        _ => finite(left / right),
    }
}

/// A float that is a value.
pub(crate) fn finite(number: f64) -> Result<Value, Pause> {
    match number.is_finite() {
        true => Ok(Value::Float(number)),
        false => fail(
            "OutOfRange",
            "the result is too large for a float, or is not a number",
        ),
    }
}

fn division_by_zero() -> Result<Value, Pause> {
    fail("DivisionByZero", "division by zero")
}

fn join_lists(heap: &mut Heap, left: Value, right: Value) -> Result<Value, Pause> {
    let (Value::List(left), Value::List(right)) = (left, right) else {
        return Ok(Value::Null);
    };
    let count = heap.list(left).len() + heap.list(right).len();
    heap.room(count * size_of::<Value>())?;
    let mut items = Vec::with_capacity(count);
    items.extend_from_slice(heap.list(left));
    items.extend_from_slice(heap.list(right));
    Ok(heap.new_list(items))
}

/// `-value`
pub(crate) fn negate(heap: &mut Heap, value: Value) -> Result<Value, Pause> {
    match value {
        Value::Int(number) if number != i64::MIN => Ok(Value::Int(-number)),
        Value::Float(number) => Ok(Value::Float(-number)),
        Value::Int(_) | Value::Big(_) => {
            let number = heap.integer(value).unwrap_or_default();
            heap.new_integer(-number)
        }
        _ => {
            let message = format!("cannot negate {}: {}", value.a_type(), brief(heap, value));
            fail("TypeError", message)
        }
    }
}

/// The failure of an operator on kinds that do not go together.
pub(crate) fn mismatch(
    heap: &Heap,
    operator: Operator,
    left: Value,
    right: Value,
) -> Result<Value, Pause> {
    let (shown_left, shown_right) = (brief(heap, left), brief(heap, right));
    let sign = operator.sign();
    let message = format!(
        "`{sign}` cannot be applied to {} and {}: {shown_left} {sign} {shown_right}",
        left.a_type(),
        right.a_type()
    );
    let failure = Failure::new("TypeError", message);
    let is_reference = |value| matches!(value, Value::Reference(_));
    Err(match (left, right) {
        _ if is_reference(left) || is_reference(right) => {
            failure.hint("dereference the reference to get its value: *reference")
        }
        _ if operator == Operator::Add && (left.is_text() || right.is_text()) => failure.hint(
            "str(x) converts a value to a string, int(x) and float(x) convert a string to a number",
        ),
        (Value::List(_), _) if operator == Operator::Add => {
            failure.hint("write list + [element], or list += element")
        }
        _ => failure,
    }
    .into())
}
