//! The names of variants and fields, as a type reports them to its deserializer.
//!
//! A derived `Deserialize` says the names of what it is about to read before it reads anything. So
//! a reader that has nothing to give can listen to them. It does not know any type.

use std::fmt;

use serde::de::value::U32Deserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer,
    VariantAccess, Visitor,
};

/// Fields of a structure, in the order in which they are written.
pub fn fields<T: DeserializeOwned>() -> Vec<&'static str> {
    match T::deserialize(Listener { variant: 0 }) {
        Err(Heard::Fields(fields)) => fields.to_vec(),
        _ => panic!("not a structure"),
    }
}

/// Variants of an enumeration by number, each with its fields if they have names.
pub fn variants<T: DeserializeOwned>() -> Vec<(String, Vec<&'static str>)> {
    let mut variants = Vec::new();
    loop {
        let variant = variants.len();
        let heard = T::deserialize(Listener { variant });
        let fields = match heard {
            Err(Heard::Variant(_, fields)) => fields.to_vec(),
            Err(Heard::OverTheEnd) => return variants,
            Ok(_) => Vec::new(),
            Err(Heard::Fields(_) | Heard::Other) => panic!("not an enumeration"),
        };
        let Err(Heard::Variant(names, _)) = T::deserialize(Listener { variant: ASK_NAMES }) else {
            panic!("an enumeration has names")
        };
        variants.push((names[variant].to_string(), fields));
    }
}

/// The index of no variant, for which only the names of all are reported.
const ASK_NAMES: usize = usize::MAX;

struct Listener {
    variant: usize,
}

/// The names so far.
#[derive(Debug)]
enum Heard {
    Fields(&'static [&'static str]),
    /// Names of all variants, and fields of the requested one.
    Variant(&'static [&'static str], &'static [&'static str]),
    OverTheEnd,
    Other,
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Heard {}

impl Error for Heard {
    fn custom<T: fmt::Display>(_: T) -> Heard {
        Heard::Other
    }
}

impl<'de> Deserializer<'de> for Listener {
    type Error = Heard;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Heard> {
        Err(Heard::Other)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Heard> {
        Err(Heard::Fields(fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Heard> {
        match self.variant {
            ASK_NAMES => Err(Heard::Variant(names, &[])),
            variant if variant >= names.len() => Err(Heard::OverTheEnd),
            variant => visitor.visit_enum(Chosen { variant, names }),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Chosen {
    variant: usize,
    names: &'static [&'static str],
}

impl<'de> EnumAccess<'de> for Chosen {
    type Error = Heard;
    type Variant = Chosen;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Chosen), Heard> {
        let number: U32Deserializer<Heard> = (self.variant as u32).into_deserializer();
        Ok((seed.deserialize(number)?, self))
    }
}

impl<'de> VariantAccess<'de> for Chosen {
    type Error = Heard;

    fn unit_variant(self) -> Result<(), Heard> {
        Err(Heard::Variant(self.names, &[]))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, Heard> {
        Err(Heard::Variant(self.names, &[]))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Heard> {
        Err(Heard::Variant(self.names, &[]))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Heard> {
        Err(Heard::Variant(self.names, fields))
    }
}
