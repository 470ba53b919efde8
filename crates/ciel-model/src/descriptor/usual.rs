//! Options as they are written: most tasks have one of the two usual ones, of which there is one
//! copy in memory. Read next: `written`.

use std::sync::Arc;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::task::Options;

#[derive(serde::Serialize)]
enum Written<'a> {
    Default,
    Live,
    Other(&'a Options),
}

#[derive(serde::Deserialize)]
enum Read {
    Default,
    Live,
    Other(Options),
}

pub(super) fn serialize<S: Serializer>(
    options: &Arc<Options>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let (default, live) = (Options::shared_default(), Options::shared_live());
    let written = match &**options {
        options if *options == *default => Written::Default,
        options if *options == *live => Written::Live,
        other => Written::Other(other),
    };
    written.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<Options>, D::Error> {
    Ok(match Read::deserialize(deserializer)? {
        Read::Default => Options::shared_default(),
        Read::Live => Options::shared_live(),
        Read::Other(options) => Arc::new(options),
    })
}
