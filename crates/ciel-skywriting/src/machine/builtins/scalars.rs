//! Builtins on numbers, and `str` and `type`.
//!
//! Read next: `collections`.

use num_bigint::{BigInt, Sign};
use num_traits::FromPrimitive;

use crate::builtins::Builtin;
use crate::machine::Machine;
use crate::machine::failure::{Pause, fail};
use crate::machine::heap::INTEGER_BYTES_MAX;
use crate::machine::json::{brief, shown};
use crate::machine::numbers::{as_float, finite, negate};
use crate::value::Value;

/// A decimal digit carries 3.3 bits.
const DIGITS_MAX: usize = INTEGER_BYTES_MAX * 2;

impl Machine {
    pub(super) fn int(&mut self, first: usize) -> Result<Value, Pause> {
        let value = self.stack[first];
        match value {
            Value::Int(_) | Value::Big(_) => Ok(value),
            Value::Float(number) => self.whole(number.trunc()),
            Value::Constant(_) | Value::Text { .. } => self.parsed_int(value),
            _ => self.wrong_argument(Builtin::Int, "a number or a string", value),
        }
    }

    fn parsed_int(&mut self, value: Value) -> Result<Value, Pause> {
        let digits = self.heap.text(value).trim();
        let length = digits.len();
        let is_number = digits
            .trim_start_matches(['+', '-'])
            .bytes()
            .all(|b| b.is_ascii_digit());
        let parsed: Option<BigInt> = if is_number && length <= DIGITS_MAX {
            digits.parse().ok()
        } else {
            None
        };
        match parsed {
            Some(number) => {
                self.burn(length * length / 4096);
                self.heap.new_integer(number)
            }
            None => fail(
                "ValueError",
                format!(
                    "`int` cannot read an integer from {}",
                    brief(&self.heap, value)
                ),
            ),
        }
    }

    /// A float without a fraction as an integer.
    fn whole(&mut self, number: f64) -> Result<Value, Pause> {
        match BigInt::from_f64(number) {
            Some(number) => self.heap.new_integer(number),
            None => fail("OutOfRange", "the float is not finite"),
        }
    }

    pub(super) fn float(&mut self, first: usize) -> Result<Value, Pause> {
        let value = self.stack[first];
        if value.is_text() {
            let parsed = self.heap.text(value).trim().parse::<f64>();
            return match parsed {
                Ok(number) => finite(number),
                Err(_) => fail(
                    "ValueError",
                    format!(
                        "`float` cannot read a number from {}",
                        brief(&self.heap, value)
                    ),
                ),
            };
        }
        match as_float(&self.heap, value)? {
            Some(number) => Ok(Value::Float(number)),
            None => self.wrong_argument(Builtin::Float, "a number or a string", value),
        }
    }

    pub(super) fn string(&mut self, first: usize) -> Result<Value, Pause> {
        let value = self.stack[first];
        if value.is_text() {
            return Ok(value);
        }
        let text = shown(&self.heap, value)?;
        Ok(self.heap.adopt_text(text))
    }

    pub(super) fn absolute(&mut self, first: usize) -> Result<Value, Pause> {
        let value = self.stack[first];
        let is_negative = match value {
            Value::Int(number) => number < 0,
            Value::Float(number) => number.is_sign_negative(),
            Value::Big(index) => self
                .heap
                .big(index)
                .is_some_and(|number| number.sign() == Sign::Minus),
            _ => return self.wrong_argument(Builtin::Abs, "a number", value),
        };
        if is_negative {
            negate(&mut self.heap, value)
        } else {
            Ok(value)
        }
    }

    pub(super) fn floor(&mut self, first: usize) -> Result<Value, Pause> {
        let value = self.stack[first];
        match value {
            Value::Int(_) | Value::Big(_) => Ok(value),
            Value::Float(number) => self.whole(number.floor()),
            _ => self.wrong_argument(Builtin::Floor, "a number", value),
        }
    }

    pub(super) fn square_root(&mut self, first: usize) -> Result<Value, Pause> {
        let value = self.stack[first];
        match as_float(&self.heap, value)? {
            Some(number) if number < 0.0 => {
                let shown = brief(&self.heap, value);
                fail(
                    "OutOfRange",
                    format!("`sqrt` of a negative number: {shown}"),
                )
            }
            Some(number) => finite(number.sqrt()),
            None => self.wrong_argument(Builtin::Sqrt, "a number", value),
        }
    }

    pub(super) fn type_of(&mut self, first: usize) -> Value {
        let name = self.stack[first].type_name();
        self.heap.adopt_text(name.to_owned())
    }
}
