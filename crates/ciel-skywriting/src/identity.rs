//! What the result of a call of a function depends on: the code that it may reach, the variables
//! which that captures, and its arguments; neither layout nor the places of functions in the file.
//!
//! Functions are values here, so all code that a call may reach is in the bytes of the call, or is
//! made by such code, or comes by a reference, whose value then names the whole program. It does
//! not know what an identity is for. Read next: `call`, and `compiler` for what functions mean.

mod call;

use std::sync::Arc;

use rustc_hash::FxHashSet;

use self::call::{Call, Parsed};
use crate::code::{Code, CodeHash, CodeHasher, Location, Question};
use crate::machine::ScriptEnvironment;
use crate::wire::{Item, LoadError};

/// What a call depends on beside the values of its references.
#[derive(Debug, Clone, PartialEq)]
pub struct CallIdentity {
    /// Of the whole call: functions by their code, captured variables and arguments by their
    /// values.
    pub whole: CodeHash,
    /// Functions that it may reach, the called one first, and what they ask of their environment.
    pub functions: Vec<Piece>,
    /// The captured variables that are no functions.
    pub variables: Vec<Piece>,
    /// Its arguments by the names of the parameters.
    pub arguments: Vec<(Arc<str>, CodeHash)>,
    /// The parameters that are references, by the numbers of these.
    pub references: Vec<(u32, Arc<str>)>,
    /// Whether it may ask for what is known only when it runs: a package, a variable of the
    /// environment whose name it computes, or to cancel a task.
    pub is_open: bool,
}

/// A part of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The name of a function or variable.
    pub name: Arc<str>,
    /// Where a function begins; where a variable is first named.
    pub location: Location,
    /// Of its code or its value.
    pub digest: CodeHash,
}

/// The functions of a program, in the order of their numbers.
pub fn functions(code: &Code) -> Vec<Piece> {
    let numbers = 0..code.functions.len() as u32;
    numbers.map(|number| function_piece(code, number)).collect()
}

/// The identity of a call, as [`crate::host::Work::Call`] has it. A version stands for the code of
/// the called function with all functions that are written in it, whatever they do.
///
/// # Errors
/// The bytes are damaged, or belong to another program.
pub fn of_call(
    code: &Code,
    surroundings: &ScriptEnvironment,
    bytes: &[u8],
    version: Option<CodeHash>,
) -> Result<CallIdentity, LoadError> {
    let call = Call::read(code, bytes)?;
    let versioned = version.and_then(|version| Some((call.function()?, version)));
    let whole = call.digest(code, versioned);
    let mut gathered = Gathered::new(code, surroundings, &call, whole);
    gathered.versioned = versioned;
    for node in &call.nodes {
        if let Parsed::Closure { function, captures } = node {
            gathered.function(*function);
            gathered.captures(*function, captures);
        }
    }
    gathered.arguments();
    Ok(gathered.identity)
}

/// The identity of a whole script that is called with the arguments in its surroundings.
pub fn of_script(code: &Code, surroundings: &ScriptEnvironment) -> CallIdentity {
    let call = Call::default();
    let mut hasher = CodeHasher::default();
    hasher.put(&surroundings.argv);
    let arguments = hasher.finish();
    let mut gathered = Gathered::new(code, surroundings, &call, arguments);
    gathered.is_script = true;
    gathered.function(BODY);
    let mut identity = gathered.identity;
    identity.arguments.push(("args".into(), arguments));
    identity
}

/// The function that is the body of a script.
const BODY: u32 = 0;

struct Gathered<'c> {
    code: &'c Code,
    surroundings: &'c ScriptEnvironment,
    call: &'c Call<'c>,
    /// The called function, and what stands for its code.
    versioned: Option<(u32, CodeHash)>,
    /// The arguments of the script are those of the call.
    is_script: bool,
    seen: FxHashSet<u32>,
    identity: CallIdentity,
}

impl<'c> Gathered<'c> {
    fn new(
        code: &'c Code,
        surroundings: &'c ScriptEnvironment,
        call: &'c Call<'c>,
        whole: CodeHash,
    ) -> Gathered<'c> {
        Gathered {
            code,
            surroundings,
            call,
            versioned: None,
            is_script: false,
            seen: FxHashSet::default(),
            identity: CallIdentity {
                whole,
                functions: Vec::new(),
                variables: Vec::new(),
                arguments: Vec::new(),
                references: Vec::new(),
                is_open: false,
            },
        }
    }

    /// Adds a function, and those that it makes.
    fn function(&mut self, number: u32) {
        let versioned = self.versioned.filter(|(called, _)| *called == number);
        let mut todo = vec![number];
        while let Some(number) = todo.pop() {
            if !self.seen.insert(number) {
                continue;
            }
            let piece = function_piece(self.code, number);
            let asked = self.asked(number, &piece.location);
            let pieces = &mut self.identity.functions;
            match versioned {
                None => pieces.push(piece),
                Some((called, digest)) if called == number => {
                    pieces.push(Piece { digest, ..piece });
                }
                Some(_) => {}
            }
            pieces.extend(asked);
            let function = &self.code.functions[number as usize];
            todo.extend(function.made().rev());
        }
    }

    /// What a function asks.
    fn asked(&mut self, number: u32, location: &Location) -> Vec<Piece> {
        let mut asked = Vec::new();
        for question in &self.code.functions[number as usize].meaning.asks {
            if self.is_script && *question == Question::Arguments {
                continue;
            }
            match self.answer(question) {
                Some((name, digest)) => asked.push(Piece {
                    name,
                    location: location.clone(),
                    digest,
                }),
                None => self.identity.is_open = true,
            }
        }
        asked
    }

    /// What is asked, and what the answer is for now; none if that is not known.
    fn answer(&self, question: &Question) -> Option<(Arc<str>, CodeHash)> {
        let mut hasher = CodeHasher::default();
        let name = match question {
            Question::Variable(name) => {
                hasher.put(&self.surroundings.env.get(&**name));
                format!("env {name}").into()
            }
            Question::Arguments => {
                hasher.put(&self.surroundings.argv);
                "argv".into()
            }
            Question::Open => return None,
        };
        Some((name, hasher.finish()))
    }

    /// Adds what a function captures that is no function itself.
    fn captures(&mut self, number: u32, captures: &[Item<'_>]) {
        let function = &self.code.functions[number as usize];
        for (at, item) in captures.iter().enumerate() {
            if self.call.is_function(*item) || matches!(item, Item::Unset) {
                continue;
            }
            let slot = function
                .captures
                .get(at)
                .map(|capture| capture.inner as usize);
            let name = slot.and_then(|slot| function.slots.get(slot));
            let (Some(name), Some(span)) = (name, function.meaning.captured.get(at)) else {
                continue;
            };
            let piece = Piece {
                name: name.clone(),
                location: self.code.locate(*span),
                digest: self.call.digest_of(self.code, *item),
            };
            if !self.identity.variables.contains(&piece) {
                self.identity.variables.push(piece);
            }
        }
    }

    fn arguments(&mut self) {
        let Some(function) = self.call.function() else {
            return;
        };
        let names = &self.code.functions[function as usize].slots;
        for (name, item) in names.iter().zip(self.call.roots.iter().skip(1)) {
            if let Item::Reference(number) = item {
                self.identity.references.push((*number, name.clone()));
            }
            let digest = self.call.digest_of(self.code, *item);
            self.identity.arguments.push((name.clone(), digest));
        }
    }
}

fn function_piece(code: &Code, number: u32) -> Piece {
    let function = &code.functions[number as usize];
    // The last instruction stands for the head of the function.
    let head = function.spans.last().copied().unwrap_or_default();
    Piece {
        name: function.shown_name(),
        location: code.locate(head),
        digest: function.meaning.own,
    }
}
