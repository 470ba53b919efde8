//! The structured form of an ordered file: `.cio`.
//!
//! Strands of a parallel program write their data side by side, each byte once, and commit in any
//! order what their *segments* consist of: own bytes, and children at the places of their spawns.
//! The *flat view* of the file is what the serial program writes. A closed file ends with an index
//! of the flat view; any other is read by the log of its commits, up to the *frontier*: the longest
//! prefix of the flat view that is committed.
//!
//! ```
//! use ciel_cio::{Item, ROOT, Reader, Writer};
//!
//! let file = tempfile::tempfile().unwrap();
//! let writer = Writer::create(file.try_clone().unwrap()).unwrap();
//! let child = writer.segment();
//! let after = Item::Data(writer.write(b"after the child\n").unwrap());
//! writer.commit(ROOT, &[Item::Child(child), after], true).unwrap();
//! let own = Item::Data(writer.write(b"the child\n").unwrap());
//! writer.commit(child, &[own], true).unwrap();
//! writer.close().unwrap();
//! let text = std::io::read_to_string(Reader::open(file).unwrap()).unwrap();
//! assert_eq!(text, "the child\nafter the child\n");
//! ```
//!
//! The form is that of the thesis on parallel input and output, Cheerio (chapter 5), with a log
//! instead of linked nodes, so that a crash leaves a prefix, and an index instead of a walk. The
//! page `docs/reference/cio.md` describes every byte. It knows no engine, no strands and no names
//! of files. Read next: `format`, `order`, `extents` (pure), then `writer` and `reader`.

mod error;
mod extents;
mod flatten;
pub mod format;
pub mod limits;
mod order;
mod reader;
mod recovery;
mod source;
mod writer;

pub use error::CioError;
pub use extents::{Extent, Extents};
pub use flatten::flatten;
pub use format::{Data, Item, ROOT, Segment};
pub use order::{Ended, Frontier, Order, Unreached, Walk};
pub use reader::{Reader, is_structured};
pub use recovery::{Ending, Recovered, recover};
pub use source::Source;
pub use writer::Writer;
