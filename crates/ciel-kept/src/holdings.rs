//! Which objects entries hold; one that no entry holds any more is removed.
//!
//! Files are removed inside the transaction of that, so none goes that another process has just
//! begun to hold. It does not know what an entry is. Read first: `schema`, `objects`.

use ciel_model::Digest;
use rusqlite::{Transaction, params};

use crate::error::KeptError;
use crate::objects::Objects;

/// Removes the objects of an entry that no other entry needs.
pub(crate) fn drop_objects(
    change: &Transaction<'_>,
    objects: &Objects,
    id: i64,
) -> Result<(), KeptError> {
    let held = release(change, id)?;
    remove_unheld(change, objects, held)
}

/// An entry holds no objects any more; gives those that it held.
pub(crate) fn release(change: &Transaction<'_>, id: i64) -> Result<Vec<Vec<u8>>, KeptError> {
    let mut query = change.prepare_cached("SELECT digest FROM holds WHERE entry = ?1")?;
    let rows = query.query_map(params![id], |row| row.get::<_, Vec<u8>>(0))?;
    let held = rows.collect::<Result<_, _>>()?;
    change
        .prepare_cached("DELETE FROM holds WHERE entry = ?1")?
        .execute(params![id])?;
    Ok(held)
}

/// Removes those of these objects that no entry needs.
pub(crate) fn remove_unheld(
    change: &Transaction<'_>,
    objects: &Objects,
    released: Vec<Vec<u8>>,
) -> Result<(), KeptError> {
    for digest in released {
        let mut others = change.prepare_cached("SELECT 1 FROM holds WHERE digest = ?1")?;
        if !others.exists(params![digest])?
            && let Ok(bytes) = <[u8; 16]>::try_from(digest.as_slice())
        {
            objects.remove(Digest(u128::from_be_bytes(bytes)))?;
        }
    }
    Ok(())
}
