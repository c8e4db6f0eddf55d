//! Lines of delimited text into rows of numbers.

use std::borrow::Cow;

use super::dialect::Dialect;
use super::header::{is_date, stands_for_nothing};
use super::plain::plain_fields;
use crate::block::{Labels, RowBlock, Values};
use crate::roles::Role;
use crate::text::{Fault, Stored, number};
use crate::{MissingFields, NumberStyle, Precision};

/// What to do with each line.
pub(crate) struct Plan {
    pub(super) dialect: Dialect,
    pub(super) roles: Vec<Role>,
    names: Option<Vec<String>>,
    n_values: usize,
    has_label: bool,
    /// Whether numbers are as programs write them.
    plain_numbers: bool,
    /// Whether values are met in the order of the matrix's columns.
    ascending: bool,
    /// How many values follow each other from each field on, the last field left out, where a byte delimits them.
    runs: Vec<usize>,
    /// The columns that travel beside the matrix: field and name.
    kept: Vec<(usize, String)>,
    /// For each field its place among them.
    kept_slots: Vec<Option<usize>>,
    /// What becomes of fields that say nothing.
    missing: MissingFields,
}

impl Plan {
    pub(super) fn new(
        dialect: Dialect,
        roles: Vec<Role>,
        names: Option<Vec<String>>,
        kept: Vec<(usize, String)>,
        missing: MissingFields,
    ) -> Self {
        let mut kept_slots = vec![None; roles.len()];
        kept.iter().enumerate().for_each(|(slot, (j, _))| kept_slots[*j] = Some(slot));
        let slots: Vec<usize> = roles
            .iter()
            .filter_map(|role| if let Role::Value(slot) = role { Some(*slot) } else { None })
            .collect();
        let ascending = slots.windows(2).all(|pair| pair[0] < pair[1]);
        let has_label = roles.contains(&Role::Label);
        // Blanks may come in numbers; every other delimiter is one byte.
        let one_byte = ascending && dialect.delimiter != b' ';
        let mut runs = vec![0; roles.len()];
        for j in (0..roles.len().saturating_sub(1)).rev() {
            if one_byte && matches!(roles[j], Role::Value(_)) && kept_slots[j].is_none() {
                runs[j] = runs[j + 1] + 1;
            }
        }
        Self {
            plain_numbers: dialect.numbers.is_plain(),
            dialect,
            names,
            n_values: slots.len(),
            has_label,
            ascending,
            runs,
            kept,
            kept_slots,
            missing,
            roles,
        }
    }

    /// d.
    pub(super) fn n_values(&self) -> usize {
        self.n_values
    }

    /// The names of the columns that travel beside the matrix.
    pub(super) fn kept_names(&self) -> Vec<String> {
        self.kept.iter().map(|(_, name)| name.clone()).collect()
    }

    /// The names of the matrix's columns, from those of the fields.
    pub(super) fn chosen_names(&self, names: &[String]) -> Vec<String> {
        let mut chosen = vec![String::new(); self.n_values];
        for (role, name) in self.roles.iter().zip(names) {
            if let Role::Value(slot) = *role {
                chosen[slot].clone_from(name);
            }
        }
        chosen
    }

    /// Field j as messages call it.
    pub(super) fn describe(&self, j: usize) -> String {
        match self.names.as_ref().and_then(|names| names.get(j)) {
            Some(name) => format!("column `{name}`"),
            None => format!("column {j} (counted from 0)"),
        }
    }
}

/// What travels beside the values of some rows.
struct Beside {
    labels: Labels,
    kept: Vec<Labels>,
    /// Whether a value was rounded to single precision.
    narrowed: bool,
}

/// The rows of a chunk of `n_lines` whole lines.
///
/// Values are single where that loses nothing and nothing else was asked for. Pieces of which most will not be are
/// read as double at once if they are `expected_double`, which changes nothing else.
pub(super) fn parse_piece(
    piece: &[u8],
    n_lines: usize,
    plan: &Plan,
    precision: Precision,
    expected_double: bool,
) -> Result<RowBlock, Fault> {
    let (values, beside) = if precision != Precision::F64 && !expected_double {
        match Rows::<f32>::read(piece, n_lines, plan, precision) {
            Ok((values, beside)) => (Values::F32(values), beside),
            Err(Stop::Fault(fault)) => return Err(fault),
            Err(Stop::Inexact) => doubles(piece, n_lines, plan, precision)?,
        }
    } else {
        doubles(piece, n_lines, plan, precision)?
    };
    let Beside { labels, kept, narrowed } = beside;
    let labels = plan.has_label.then_some(labels);
    Ok(RowBlock { labels, kept, narrowed, ..RowBlock::dense(plan.n_values, values) })
}

fn doubles(
    piece: &[u8],
    n_lines: usize,
    plan: &Plan,
    precision: Precision,
) -> Result<(Values, Beside), Fault> {
    match Rows::<f64>::read(piece, n_lines, plan, precision) {
        Ok((values, beside)) => Ok((Values::from_text(values, precision), beside)),
        Err(Stop::Fault(fault)) => Err(fault),
        Err(Stop::Inexact) => unreachable!("a double holds every number that is read"),
    }
}

/// Why a chunk was not read to its end.
enum Stop {
    Fault(Fault),
    /// The type does not hold a value exactly.
    Inexact,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Why a field is no number, and the flag with which it would be one.
fn complaint(numbers: NumberStyle, field: &[u8]) -> String {
    const WAYS_OUT: &str = "choose what becomes of missing values with --missing drop-rows, mean or em";
    let shown: String = String::from_utf8_lossy(field).chars().take(40).collect();
    if shown.trim().is_empty() {
        return format!("a value is missing here: {WAYS_OUT}");
    }
    if stands_for_nothing(field) {
        return format!("expected a number, found the missing value `{shown}`: {WAYS_OUT}");
    }
    if is_date(field) {
        return format!("expected a number, found the date `{shown}`: leave the column out with --exclude");
    }
    match numbers.way_out(field) {
        Some(way_out) => format!("expected a number, found `{shown}`: {way_out}"),
        None if !numbers.is_plain() && number::parse(field, 0).is_some_and(|(_, end)| end == field.len()) => {
            format!("expected a number with the decimal mark `{}`, found `{shown}`", numbers.decimal)
        }
        None => number::complaint(field),
    }
}

struct Rows<'a, T> {
    plan: &'a Plan,
    precision: Precision,
    values: Vec<T>,
    /// The current row, when values must be put in another order.
    row: Vec<T>,
    beside: Beside,
}

impl<'a, T: Stored> Rows<'a, T> {
    fn read(
        piece: &[u8],
        n_lines: usize,
        plan: &'a Plan,
        precision: Precision,
    ) -> Result<(Vec<T>, Beside), Stop> {
        // A field takes two bytes, so that lines without data take no more memory than they are long.
        let room = n_lines.saturating_mul(plan.n_values).min(piece.len() / 2 + 1);
        let mut rows = Self {
            plan,
            precision,
            values: Vec::with_capacity(room),
            row: vec![T::default(); if plan.ascending { 0 } else { plan.n_values }],
            beside: Beside {
                labels: Labels::Numbers(Vec::new()),
                kept: vec![Labels::Numbers(Vec::new()); plan.kept.len()],
                narrowed: false,
            },
        };
        let mut i = 0;
        while i < piece.len() {
            let first = plan.dialect.skip_blanks(piece, i);
            match piece.get(first) {
                None | Some(b'\n') => i = first + 1,
                Some(b'#') if first == i => {
                    i = memchr::memchr(b'\n', &piece[first..]).map_or(piece.len(), |k| first + k + 1);
                }
                Some(_) => i = rows.line(piece, first)?,
            }
        }
        Ok((rows.values, rows.beside))
    }

    /// Reads the line that starts at `i` and says where the next one does.
    #[inline]
    fn line(&mut self, piece: &[u8], mut i: usize) -> Result<usize, Stop> {
        let dialect = self.plan.dialect;
        let start = i;
        let last = self.plan.roles.len() - 1;
        let mut j = 0;
        loop {
            let run = self.plan.runs[j];
            if run > 0 {
                let before = self.values.len();
                i = plain_fields(piece, i, run, dialect.delimiter, &mut self.values);
                j += self.values.len() - before;
            }
            let end = match self.plan.roles[j] {
                Role::Value(slot) => self.value(piece, i, j, slot)?,
                Role::Skip => dialect.field(piece, i).end,
                Role::Label => self.label(piece, i)?,
            };
            if let Some(slot) = self.plan.kept_slots[j] {
                self.keep(piece, i, slot)?;
            }
            match dialect.next_field(piece, end) {
                Some(next) if j < last => i = next,
                None if j == last => {
                    self.values.extend_from_slice(&self.row);
                    if piece.get(end) == Some(&b'\n') {
                        return Ok(end + 1);
                    }
                    return Ok(memchr::memchr(b'\n', &piece[end..]).map_or(piece.len(), |k| end + k + 1));
                }
                _ => return Err(self.ragged(piece, start).into()),
            }
            j += 1;
        }
    }

    /// Reads the number in the field that starts at `i` and says where the field ends.
    #[inline(always)]
    fn value(&mut self, piece: &[u8], i: usize, j: usize, slot: usize) -> Result<usize, Stop> {
        let dialect = self.plan.dialect;
        if self.plan.plain_numbers
            && let Some((value, end)) = number::parse(piece, i)
            && dialect.ends_at(piece, end)
        {
            self.push(value, slot, &piece[i..end])?;
            return Ok(end);
        }
        self.odd_value(piece, i, j, slot)
    }

    /// Reads a number with blanks or quotes around it.
    #[cold]
    fn odd_value(&mut self, piece: &[u8], i: usize, j: usize, slot: usize) -> Result<usize, Stop> {
        let dialect = self.plan.dialect;
        let start = dialect.skip_blanks(piece, i);
        let field = dialect.field(piece, i);
        let plain = if dialect.numbers.is_plain() {
            Some(field.text)
        } else {
            dialect.numbers.plain(&field.text).map(Cow::Owned)
        };
        match plain.as_deref().and_then(|token| Some((token, number::parse(token, 0)?))) {
            Some((token, (value, end))) if end == token.len() => self.push(value, slot, token)?,
            _ => {
                let text = dialect.field(piece, i).text;
                if self.plan.missing == MissingFields::Nan && stands_for_nothing(&text) {
                    self.push_missing(slot);
                    return Ok(field.end);
                }
                let Some(value) = truth(&text) else {
                    let complaint = complaint(dialect.numbers, &text);
                    return Err(Fault::new(start, format!("{}: {complaint}", self.plan.describe(j))).into());
                };
                self.push(value, slot, if value > 0.0 { b"1" } else { b"0" })?;
            }
        }
        Ok(field.end)
    }

    #[inline]
    fn push(&mut self, value: f64, slot: usize, token: &[u8]) -> Result<(), Stop> {
        let stored =
            if self.precision == Precision::F32 { f64::from(number::to_f32(value, token)) } else { value };
        self.beside.narrowed |= stored.to_bits() != value.to_bits();
        let value = T::exactly(stored).ok_or(Stop::Inexact)?;
        if self.plan.ascending {
            self.values.push(value);
        } else {
            self.row[slot] = value;
        }
        Ok(())
    }

    fn push_missing(&mut self, slot: usize) {
        let nan = T::exactly(f64::NAN).unwrap_or_else(|| unreachable!("both types have a NaN"));
        if self.plan.ascending {
            self.values.push(nan);
        } else {
            self.row[slot] = nan;
        }
    }

    fn label(&mut self, piece: &[u8], i: usize) -> Result<usize, Stop> {
        let dialect = self.plan.dialect;
        let field = dialect.field(piece, i);
        push_label(&mut self.beside.labels, dialect, &field.text, i)?;
        Ok(field.end)
    }

    fn keep(&mut self, piece: &[u8], i: usize, slot: usize) -> Result<(), Stop> {
        let dialect = self.plan.dialect;
        push_label(&mut self.beside.kept[slot], dialect, &dialect.field(piece, i).text, i)
    }

    fn ragged(&self, piece: &[u8], start: usize) -> Fault {
        let end = super::records(&piece[start..]).next().map_or(piece.len(), |(_, line)| start + line.len());
        let found = self.plan.dialect.fields(&piece[start..end]).len();
        let expected = self.plan.roles.len();
        Fault::new(start, format!("expected {expected} fields as in the first line, found {found}"))
    }
}

/// Adds a field: a number as long as all are, else a text.
fn push_label(labels: &mut Labels, dialect: Dialect, field: &[u8], at: usize) -> Result<(), Stop> {
    match (&mut *labels, dialect.numbers.number(field)) {
        (Labels::Numbers(numbers), Some(value)) => numbers.push(value),
        (labels, _) => {
            let Ok(text) = std::str::from_utf8(field) else {
                let advice = "give the file's --encoding, such as latin1 or windows-1252";
                return Err(Fault::new(at, format!("the label is not UTF-8: {advice}")).into());
            };
            labels.push_text(text.to_owned());
        }
    }
    Ok(())
}

/// True and False, as pandas and R write them, are 1 and 0.
pub(super) fn truth(field: &[u8]) -> Option<f64> {
    match field {
        b"True" | b"true" | b"TRUE" => Some(1.0),
        b"False" | b"false" | b"FALSE" => Some(0.0),
        _ => None,
    }
}
