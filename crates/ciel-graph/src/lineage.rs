//! Lineage: how the lost file of an object is recomputed.
//!
//! A file keeps the task that produced it and the inputs of this task, which in turn keep theirs.
//! The chain is cut at a bounded depth: there, as for data that tasks imported themselves, the file
//! is a *source*, which stays on disk as long as objects derived from it. It does not know when a
//! file is lost. Read next: `reconstruct`.

use std::sync::Arc;

use ciel_model::{
    Class, Content, Descriptor, Digest, Fact, FactAct, FileContent, Label, Name, ObjectKey, Purity,
    TaskKey, Value, limits,
};
use serde::{Deserialize, Serialize};

use crate::graph::Graph;
use crate::objects::{ObjectState, Stored};
use crate::task::Task;

/// A file, and how it is recomputed. `O` is the type that names other files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OriginOf<O> {
    pub(crate) name: Name,
    /// Length in bytes.
    pub(crate) length: u64,
    pub(crate) digest: Option<Digest>,
    /// Recipes from here to the nearest sources.
    pub(crate) depth: u32,
    /// The output of the recipe's task that the file is, whatever its name; 0 for a source.
    pub(crate) output: u32,
    /// None for a source.
    pub(crate) recipe: Option<Recipe<O>>,
    /// Where a source comes from.
    pub(crate) source: Option<Arc<Source>>,
}

/// Where a file comes from that cannot be recomputed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Source {
    /// The task that gave it.
    pub(crate) task: Label,
    pub(crate) why: Unmakeable,
}

/// Why a task does not recompute what it gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Unmakeable {
    /// It is data of its own, and nobody's result.
    Stored,
    Impure,
    /// It asked for the time or the like.
    Asked,
    /// Something that it was given is gone.
    InputGone,
    /// So many tasks would have to be rerun for it.
    TooDeep,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let task = &self.task;
        match self.why {
            Unmakeable::Stored => write!(f, "{task} stored it by itself"),
            Unmakeable::Impure => write!(f, "{task} is impure"),
            Unmakeable::Asked => write!(f, "{task} asked for the time or the like"),
            Unmakeable::InputGone => write!(f, "an input of {task} is gone"),
            Unmakeable::TooDeep => write!(f, "too many tasks before {task} would be rerun"),
        }
    }
}

/// Origins are shared: one file may be an ingredient of many.
#[derive(Clone, Debug)]
pub(crate) struct Origin(pub(crate) Arc<OriginOf<Origin>>);

/// A task that can be rerun.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recipe<O> {
    pub(crate) task: Name,
    pub(crate) descriptor: Arc<Descriptor>,
    pub(crate) parent: Option<Arc<Label>>,
    /// The strand's name, and the index of the task's first action.
    pub(crate) strand: Name,
    pub(crate) begun_at: u64,
    pub(crate) tails: u64,
    pub(crate) inputs: Vec<Ingredient<O>>,
}

/// Something that a task was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ingredient<O> {
    pub(crate) name: Name,
    pub(crate) value: Value<Ingredient<O>>,
    /// Of its file, if it has one.
    pub(crate) origin: Option<O>,
}

impl Origin {
    /// A file that cannot be recomputed.
    fn source(name: Name, content: FileContent, source: Source) -> Origin {
        Origin(Arc::new(OriginOf {
            name,
            length: content.length,
            digest: content.digest,
            depth: 0,
            output: 0,
            recipe: None,
            source: Some(Arc::new(source)),
        }))
    }

    /// Whether it must stay on disk although it has no holder: other objects were derived from it,
    /// and it cannot be recomputed.
    pub(crate) fn is_needed(&self) -> bool {
        self.0.recipe.is_none() && Arc::strong_count(&self.0) > 1
    }
}

impl<O> OriginOf<O> {
    /// The same with others named otherwise.
    pub(crate) fn map<P, E>(
        &self,
        name: &mut impl FnMut(&O) -> Result<P, E>,
    ) -> Result<OriginOf<P>, E> {
        let recipe = self.recipe.as_ref().map(|recipe| recipe.map(name));
        Ok(OriginOf {
            name: self.name,
            length: self.length,
            digest: self.digest,
            depth: self.depth,
            output: self.output,
            recipe: recipe.transpose()?,
            source: self.source.clone(),
        })
    }
}

impl<O> Recipe<O> {
    fn map<P, E>(&self, name: &mut impl FnMut(&O) -> Result<P, E>) -> Result<Recipe<P>, E> {
        let inputs = self.inputs.iter().map(|input| input.map(name));
        Ok(Recipe {
            task: self.task,
            descriptor: self.descriptor.clone(),
            parent: self.parent.clone(),
            strand: self.strand,
            begun_at: self.begun_at,
            tails: self.tails,
            inputs: inputs.collect::<Result<_, E>>()?,
        })
    }
}

impl<O> Ingredient<O> {
    fn map<P, E>(&self, name: &mut impl FnMut(&O) -> Result<P, E>) -> Result<Ingredient<P>, E> {
        let inner = self.value.references.iter().map(|inner| inner.map(name));
        Ok(Ingredient {
            name: self.name,
            value: Value {
                form: self.value.form.clone(),
                content: self.value.content.clone(),
                references: inner.collect::<Result<_, E>>()?,
            },
            origin: self.origin.as_ref().map(name).transpose()?,
        })
    }
}

/// What may still be taken down in a recipe.
struct Room {
    ingredients: usize,
}

impl Graph {
    /// The origin of what a running task gives as that output, if that is a file.
    pub(crate) fn origin_of(&self, key: TaskKey, output: u32, content: &Content) -> Option<Origin> {
        let (name, content) = content.file()?;
        let FileContent { length, digest } = content;
        let task = &self.tasks[&key];
        let source = |why| {
            let task = task.label();
            Origin::source(name, content, Source { task, why })
        };
        let recipe = match self.recipe_of(task) {
            Ok(recipe) => recipe,
            Err(why) => return Some(source(why)),
        };
        let depth = 1 + deepest(&recipe.inputs);
        Some(match depth > limits::LINEAGE_DEPTH_MAX {
            true => source(Unmakeable::TooDeep),
            false => Origin(Arc::new(OriginOf {
                name,
                length,
                digest,
                depth,
                output,
                recipe: Some(recipe),
                source: None,
            })),
        })
    }

    /// The origin of data that a task brought in, if that is a file.
    pub(crate) fn source_of(&self, key: TaskKey, content: &Content) -> Option<Origin> {
        let (name, content) = content.file()?;
        let (task, why) = (self.tasks[&key].label(), Unmakeable::Stored);
        Some(Origin::source(name, content, Source { task, why }))
    }

    fn recipe_of(&self, task: &Task) -> Result<Recipe<Origin>, Unmakeable> {
        let asked = |fact: &Fact| matches!(fact.act, FactAct::Input { .. });
        let pooled = matches!(task.descriptor.class, Class::Pooled(_));
        let again =
            task.descriptor.purity != Purity::Impure && (task.descriptor.replayable || !pooled);
        if !again {
            return Err(Unmakeable::Impure);
        }
        if task.course.facts.iter().any(asked) {
            return Err(Unmakeable::Asked);
        }
        let mut room = Room {
            ingredients: limits::LINEAGE_INGREDIENTS_MAX,
        };
        let given = task.inputs.iter();
        let given = given.map(|object| self.ingredient(*object, 0, &mut room));
        let inputs: Option<_> = given.collect();
        Ok(Recipe {
            task: task.name,
            descriptor: task.descriptor.clone(),
            parent: task.parent.clone(),
            strand: task.strand.name,
            begun_at: task.course.begun_at,
            tails: task.strand.tails,
            inputs: inputs.ok_or(Unmakeable::InputGone)?,
        })
    }

    fn ingredient(
        &self,
        object: ObjectKey,
        nested: u32,
        room: &mut Room,
    ) -> Option<Ingredient<Origin>> {
        let ObjectState::Ready(stored) = self.objects.settled_state(object) else {
            return None;
        };
        room.ingredients = room.ingredients.checked_sub(1)?;
        if nested > limits::LINEAGE_DEPTH_MAX {
            return None;
        }
        let Stored {
            name,
            value,
            origin,
        } = &**stored;
        let inner = value.references.iter();
        let inner = inner.map(|inner| self.ingredient(*inner, nested + 1, room));
        Some(Ingredient {
            name: *name,
            value: Value {
                form: value.form.clone(),
                content: value.content.clone(),
                references: inner.collect::<Option<_>>()?,
            },
            origin: origin.clone(),
        })
    }
}

fn deepest(inputs: &[Ingredient<Origin>]) -> u32 {
    let depths = inputs.iter().map(|input| {
        let own = input.origin.as_ref().map_or(0, |origin| origin.0.depth);
        own.max(deepest(&input.value.references))
    });
    depths.max().unwrap_or(0)
}
