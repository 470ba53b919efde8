//! The names that every script has, with their numbers of arguments: declared once, here.
//!
//! It does not know what they do. Read next: `machine`.

macro_rules! builtins {
    ($(#[doc = $usage:literal] $variant:ident $name:literal $least:literal $most:expr;)*) => {
        /// A builtin function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum Builtin { $(#[doc = $usage] $variant,)* }

        impl Builtin {
            /// All of them, in the order of declaration.
            pub const ALL: &'static [Builtin] = &[$(Builtin::$variant,)*];

            /// The name in scripts.
            pub fn name(self) -> &'static str {
                match self { $(Builtin::$variant => $name,)* }
            }

            /// Least and most number of arguments.
            pub fn arity(self) -> (usize, usize) {
                match self { $(Builtin::$variant => ($least, $most),)* }
            }

            /// How it is called, for messages.
            pub fn usage(self) -> &'static str {
                match self { $(Builtin::$variant => $usage.trim_ascii(),)* }
            }

            /// The builtin of that name.
            pub fn by_name(name: &str) -> Option<Builtin> {
                match name { $($name => Some(Builtin::$variant),)* _ => None }
            }
        }
    };
}

builtins! {
    /// `spawn(f, [args], {options})`
    Spawn "spawn" 1 3;
    /// `spawn_exec(executor, args, n, {options})`
    SpawnExec "spawn_exec" 3 4;
    /// `spawn_other(executor, {args, n_outputs, …})`
    SpawnOther "spawn_other" 2 2;
    /// `exec(executor, args, n, {options})`
    Exec "exec" 3 4;
    /// `package(name)`: what the job was given under that name (`--package name=file`).
    Package "package" 1 1;
    /// `int(x)`
    Int "int" 1 1;
    /// `float(x)`
    Float "float" 1 1;
    /// `str(x)`
    Str "str" 1 1;
    /// `len(x)`
    Len "len" 1 1;
    /// `range(stop)`, `range(start, stop)`, `range(start, stop, step)`
    Range "range" 1 3;
    /// `has_key(dict, key)`
    HasKey "has_key" 2 2;
    /// `get_key(dict, key, default)`
    GetKey "get_key" 2 3;
    /// `keys(dict)`
    Keys "keys" 1 1;
    /// `print(x, …)`
    Print "print" 0 usize::MAX;
    /// `env(name)` and `env(name, otherwise)`; `env()` is the whole dictionary.
    Env "env" 0 2;
    /// `argv()` the list of arguments, `argv(i)` one of them.
    Argv "argv" 0 1;
    /// `abs(x)`
    Abs "abs" 1 1;
    /// `min(list)` or `min(a, b, …)`
    Min "min" 1 usize::MAX;
    /// `max(list)` or `max(a, b, …)`
    Max "max" 1 usize::MAX;
    /// `floor(x)`
    Floor "floor" 1 1;
    /// `sqrt(x)`
    Sqrt "sqrt" 1 1;
    /// `sort(list)`
    Sort "sort" 1 1;
    /// `join(list, separator)`
    Join "join" 2 2;
    /// `split(string)` at white space, `split(string, separator)`
    Split "split" 1 2;
    /// `type(x)` gives its name
    Type "type" 1 1;
    /// `text(ref)`: the bytes of an object as a string
    Text "text" 1 1;
    /// `is_error(ref)`: waits, then whether the task failed
    IsError "is_error" 1 1;
    /// `cancel(ref)`: whether the task is cancelled by then
    Cancel "cancel" 1 1;
    /// `remove(x, key)`, `remove(dict, key, otherwise)`: gives what it takes out
    Remove "remove" 2 3;
    /// `slice(x, start, stop)`: the same as `x[start:stop]`
    Slice "slice" 2 3;
    /// `find(x, wanted)`, `find(x, wanted, start)`: an index, or null
    Find "find" 2 3;
    /// `replace(string, old, new)`
    Replace "replace" 3 3;
    /// `trim(string)`
    Trim "trim" 1 1;
    /// `lower(string)`
    Lower "lower" 1 1;
    /// `upper(string)`
    Upper "upper" 1 1;
    /// `starts_with(string, start)`
    StartsWith "starts_with" 2 2;
    /// `ends_with(string, end)`
    EndsWith "ends_with" 2 2;
    /// `format(template, x, …)`
    Format "format" 1 usize::MAX;
    /// `to_json(x)`
    ToJson "to_json" 1 1;
    /// `from_json(string)`
    FromJson "from_json" 1 1;
    /// `glob(pattern)`: the sorted paths of the files that match
    Glob "glob" 1 1;
    /// `export(ref, path, {options})`: a reference to the path, when the file holds the result
    Export "export" 2 3;
    /// `append(path, x, …)`: what `print` would show of each `x`, at the end of an ordered file
    Append "append" 1 usize::MAX;
}

impl Builtin {
    /// Whether it does what only a host can do, so that a function with it is no mere call.
    pub(crate) fn needs_host(self) -> bool {
        matches!(
            self,
            Builtin::SpawnExec
                | Builtin::SpawnOther
                | Builtin::Exec
                | Builtin::Package
                | Builtin::Print
                | Builtin::Append
                | Builtin::Cancel
                | Builtin::Glob
                | Builtin::Export
        )
    }
}
