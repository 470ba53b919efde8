//! The bytes of a call, taken apart without a heap, and digests of what is in them.
//!
//! It does not know what functions mean. Read next: `crate::wire`, which declares the bytes.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::code::{Code, CodeHash, CodeHasher};
use crate::wire::{self, Item, KeyItem, LoadError, Node, damaged};

/// A call, as its bytes say.
#[derive(Default)]
pub(super) struct Call<'b> {
    /// The function and its arguments.
    pub(super) roots: Vec<Item<'b>>,
    pub(super) nodes: Vec<Parsed<'b>>,
}

/// A node with its items.
pub(super) enum Parsed<'b> {
    List(Vec<Item<'b>>),
    Dictionary(Vec<(KeyItem<'b>, Item<'b>)>),
    Closure {
        function: u32,
        captures: Vec<Item<'b>>,
    },
    Cell(Item<'b>),
    Thunk(u32),
    Text(&'b str),
    Integer(&'b [u8]),
}

impl<'b> Call<'b> {
    /// Reads the bytes, which must be of that program.
    pub(super) fn read(code: &Code, bytes: &'b [u8]) -> Result<Call<'b>, LoadError> {
        let mut rest = wire::open(bytes, code.hash())?;
        let count: u32 = wire::take(&mut rest)?;
        let roots: u32 = wire::take(&mut rest)?;
        let roots = items(&mut rest, roots)?;
        let mut nodes = Vec::new();
        for _ in 0..count {
            nodes.push(Parsed::read(code, &mut rest)?);
        }
        Ok(Call { roots, nodes })
    }

    /// The number of the called function.
    pub(super) fn function(&self) -> Option<u32> {
        let Some(Item::Closure(called)) = self.roots.first() else {
            return None;
        };
        match self.nodes.get(*called as usize) {
            Some(Parsed::Closure { function, .. }) => Some(*function),
            _ => None,
        }
    }

    /// Whether a value is a function, or a variable that is one.
    pub(super) fn is_function(&self, item: Item<'_>) -> bool {
        match item {
            Item::Closure(_) => true,
            Item::Cell(number) => {
                let cell = self.nodes.get(number as usize);
                matches!(cell, Some(Parsed::Cell(Item::Closure(_) | Item::Unset)))
            }
            _ => false,
        }
    }

    /// Of all that is in the call, with what stands for the code of a function if one is
    /// `versioned`; the order of nodes follows from the values alone.
    pub(super) fn digest(&self, code: &Code, versioned: Option<(u32, CodeHash)>) -> CodeHash {
        let mut hasher = CodeHasher::default();
        hasher.put(&(self.roots.len(), self.nodes.len()));
        for item in &self.roots {
            hash_item(&mut hasher, *item, &mut |number| number);
        }
        for node in &self.nodes {
            if let Parsed::Closure { function, .. } = node {
                match versioned.filter(|(called, _)| called == function) {
                    Some((_, version)) => hasher.put(&("version", version)),
                    None => hasher.put(&code.functions[*function as usize].meaning.whole),
                }
            }
            node.hash(&mut hasher, &mut |number| number);
        }
        hasher.finish()
    }

    /// Of what one value reaches, in which functions are only names.
    pub(super) fn digest_of(&self, code: &Code, root: Item<'b>) -> CodeHash {
        let mut hasher = CodeHasher::default();
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let mut queue = VecDeque::new();
        let mut number_of = |object: u32, queue: &mut VecDeque<u32>| {
            let next = numbers.len() as u32;
            *numbers.entry(object).or_insert_with(|| {
                queue.push_back(object);
                next
            })
        };
        hash_item(&mut hasher, root, &mut |object| {
            number_of(object, &mut queue)
        });
        while let Some(object) = queue.pop_front() {
            match self.nodes.get(object as usize) {
                Some(Parsed::Closure { function, .. }) => {
                    hasher.put(&code.functions[*function as usize].shown_name());
                }
                Some(node) => node.hash(&mut hasher, &mut |object| number_of(object, &mut queue)),
                None => {}
            }
        }
        hasher.finish()
    }
}

impl<'b> Parsed<'b> {
    fn read(code: &Code, rest: &mut &'b [u8]) -> Result<Parsed<'b>, LoadError> {
        Ok(match wire::take(rest)? {
            Node::List(count) => Parsed::List(items(rest, count)?),
            Node::Dictionary(count) => {
                let mut entries = Vec::new();
                for _ in 0..count {
                    entries.push((wire::take(rest)?, wire::take(rest)?));
                }
                Parsed::Dictionary(entries)
            }
            Node::Closure { function, captures } => {
                if function as usize >= code.functions.len() {
                    return Err(damaged("a function that does not exist"));
                }
                let captures = items(rest, captures)?;
                Parsed::Closure { function, captures }
            }
            Node::Cell => Parsed::Cell(wire::take(rest)?),
            Node::Thunk(reference) => Parsed::Thunk(reference),
            Node::Text(text) => Parsed::Text(text),
            Node::Integer(bytes) => Parsed::Integer(bytes),
        })
    }

    /// Adds the node with its items, but not which function a closure has.
    fn hash(&self, hasher: &mut CodeHasher, number: &mut impl FnMut(u32) -> u32) {
        let captures_of = |captures: &[Item<'_>]| Node::Closure {
            function: 0,
            captures: captures.len() as u32,
        };
        match self {
            Parsed::List(items) => {
                hasher.put(&Node::List(items.len() as u32));
                items
                    .iter()
                    .for_each(|item| hash_item(hasher, *item, number));
            }
            Parsed::Dictionary(entries) => {
                hasher.put(&Node::Dictionary(entries.len() as u32));
                for (key, item) in entries {
                    hasher.put(key);
                    hash_item(hasher, *item, number);
                }
            }
            Parsed::Closure { captures, .. } => {
                hasher.put(&captures_of(captures));
                captures
                    .iter()
                    .for_each(|item| hash_item(hasher, *item, number));
            }
            Parsed::Cell(item) => {
                hasher.put(&Node::Cell);
                hash_item(hasher, *item, number);
            }
            Parsed::Thunk(reference) => hasher.put(&Node::Thunk(*reference)),
            Parsed::Text(text) => hasher.put(&Node::Text(text)),
            Parsed::Integer(bytes) => hasher.put(&Node::Integer(bytes)),
        }
    }
}

fn items<'b>(rest: &mut &'b [u8], count: u32) -> Result<Vec<Item<'b>>, LoadError> {
    (0..count).map(|_| wire::take(rest)).collect()
}

/// Adds an item, whose object has the number that `number` says.
fn hash_item(hasher: &mut CodeHasher, item: Item<'_>, number: &mut impl FnMut(u32) -> u32) {
    let numbered = match item {
        Item::LongText { object, bytes } => Item::LongText {
            object: number(object),
            bytes,
        },
        Item::Integer(object) => Item::Integer(number(object)),
        Item::List(object) => Item::List(number(object)),
        Item::Dictionary(object) => Item::Dictionary(number(object)),
        Item::Closure(object) => Item::Closure(number(object)),
        Item::Cell(object) => Item::Cell(number(object)),
        Item::Thunk(object) => Item::Thunk(number(object)),
        plain => plain,
    };
    hasher.put(&numbered);
}
