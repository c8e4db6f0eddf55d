//! The parts of one matrix: every part has the columns of the first.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::input::Part;
use crate::source::{self, OpenSource};
use crate::{NamesOf, NamesToMatch, ReadError, ReadOptions};

/// Opens one part after the other; those after the first are matched with its names.
pub(crate) struct Parts {
    options: ReadOptions,
    first: Option<First>,
    /// What a person should know of the columns.
    pub(crate) notes: Vec<String>,
}

struct First {
    name: String,
    has_names: bool,
}

impl Parts {
    pub(crate) fn new(options: &ReadOptions) -> Self {
        Self { options: options.clone(), first: None, notes: Vec::new() }
    }

    pub(crate) fn open(&mut self, part: Part, counter: &Arc<AtomicU64>) -> Result<OpenSource, ReadError> {
        let mut open = source::open(part, &self.options, counter)?;
        self.notes.append(&mut open.notes);
        let names = open.rows.stated().column_names;
        match &self.first {
            None => {
                self.first = Some(First { name: open.name.clone(), has_names: names.is_some() });
                if let (None, Some(names)) = (&self.options.match_names, names) {
                    let of = NamesOf::Part(open.name.clone());
                    self.options.match_names = Some(NamesToMatch { names, of });
                }
            }
            Some(first) if !first.has_names && names.is_some() => self.notes.push(format!(
                "{} has no column names: the columns of {} are taken in the same order",
                first.name, open.name
            )),
            Some(_) => {}
        }
        Ok(open)
    }
}
