//! Lines of delimited text into rows of numbers.

use super::dialect::Dialect;
use crate::Precision;
use crate::block::{Labels, RowBlock, Values};
use crate::roles::Role;
use crate::text::{Fault, digits, number};

/// What to do with each line.
pub(crate) struct Plan {
    pub(super) dialect: Dialect,
    pub(super) roles: Vec<Role>,
    names: Option<Vec<String>>,
    n_values: usize,
    has_label: bool,
    /// Whether values are met in the order of the matrix's columns.
    ascending: bool,
    /// Whether four values in a row start at this field, none of them the last field, and a byte delimits them.
    four_values: Vec<bool>,
}

impl Plan {
    pub(super) fn new(dialect: Dialect, roles: Vec<Role>, names: Option<Vec<String>>) -> Self {
        let slots: Vec<usize> = roles
            .iter()
            .filter_map(|role| if let Role::Value(slot) = role { Some(*slot) } else { None })
            .collect();
        let ascending = slots.windows(2).all(|pair| pair[0] < pair[1]);
        let has_label = roles.contains(&Role::Label);
        // Blanks may come in runs; every other delimiter is one byte.
        let looks_ahead = ascending && dialect.delimiter != b' ';
        let is_value = |role: &Role| matches!(role, Role::Value(_));
        let four_values = (0..roles.len())
            .map(|j| looks_ahead && j + 4 < roles.len() && roles[j..j + 4].iter().all(is_value))
            .collect();
        Self { dialect, names, n_values: slots.len(), has_label, ascending, four_values, roles }
    }

    #[inline]
    fn four_values_from(&self, j: usize) -> bool {
        self.four_values[j]
    }

    /// d.
    pub(super) fn n_values(&self) -> usize {
        self.n_values
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

/// The rows of a piece of whole lines.
pub(super) fn parse_piece(piece: &[u8], plan: &Plan, precision: Precision) -> Result<RowBlock, Fault> {
    let mut rows = Rows {
        plan,
        precision,
        values: Vec::with_capacity(piece.len() / 4),
        row: vec![0.0; if plan.ascending { 0 } else { plan.n_values }],
        labels: Labels::Numbers(Vec::new()),
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
    let values = Values::from_text(rows.values, precision);
    Ok(RowBlock { labels: plan.has_label.then_some(rows.labels), ..RowBlock::dense(plan.n_values, values) })
}

struct Rows<'a> {
    plan: &'a Plan,
    precision: Precision,
    values: Vec<f64>,
    /// The current row, when values must be put in another order.
    row: Vec<f64>,
    labels: Labels,
}

impl Rows<'_> {
    /// Reads the line that starts at `i` and says where the next one does.
    #[inline]
    fn line(&mut self, piece: &[u8], mut i: usize) -> Result<usize, Fault> {
        let dialect = self.plan.dialect;
        let start = i;
        let last = self.plan.roles.len() - 1;
        let mut j = 0;
        let mut after_single = false;
        loop {
            // Single digits come in company (indicators, grades, counts): one after another is worth a look ahead.
            if after_single
                && self.plan.four_values_from(j)
                && let Some(four) = digits::word(piece, i)
                    .and_then(|word| digits::four_single_digits(word, dialect.delimiter))
            {
                self.values.extend(four.map(f64::from));
                i += 8;
                j += 4;
                continue;
            }
            let end = match self.plan.roles[j] {
                Role::Value(slot) => self.value(piece, i, j, slot)?,
                Role::Skip => dialect.field(piece, i).end,
                Role::Label => self.label(piece, i),
            };
            after_single = end - i == 1;
            match dialect.next_field(piece, end) {
                Some(next) if j < last => i = next,
                None if j == last => {
                    self.values.extend_from_slice(&self.row);
                    return Ok(memchr::memchr(b'\n', &piece[end..]).map_or(piece.len(), |k| end + k + 1));
                }
                _ => return Err(self.ragged(piece, start)),
            }
            j += 1;
        }
    }

    /// Reads the number in the field that starts at `i` and says where the field ends.
    #[inline(always)]
    fn value(&mut self, piece: &[u8], i: usize, j: usize, slot: usize) -> Result<usize, Fault> {
        let dialect = self.plan.dialect;
        if let Some((value, end)) = number::parse(piece, i)
            && dialect.ends_at(piece, end)
        {
            self.push(value, slot, &piece[i..end]);
            return Ok(end);
        }
        self.odd_value(piece, i, j, slot)
    }

    /// Reads a number with blanks or quotes around it.
    #[cold]
    fn odd_value(&mut self, piece: &[u8], i: usize, j: usize, slot: usize) -> Result<usize, Fault> {
        let dialect = self.plan.dialect;
        let start = dialect.skip_blanks(piece, i);
        let field = dialect.field(piece, i);
        match number::parse(&field.text, 0) {
            Some((value, end)) if end == field.text.len() => self.push(value, slot, &field.text),
            _ => {
                let complaint = number::complaint(&field.text);
                return Err(Fault::new(start, format!("{}: {complaint}", self.plan.describe(j))));
            }
        }
        Ok(field.end)
    }

    #[inline]
    fn push(&mut self, value: f64, slot: usize, token: &[u8]) {
        let value =
            if self.precision == Precision::F32 { f64::from(number::to_f32(value, token)) } else { value };
        if self.plan.ascending { self.values.push(value) } else { self.row[slot] = value }
    }

    fn label(&mut self, piece: &[u8], i: usize) -> usize {
        let field = self.plan.dialect.field(piece, i);
        let number = number::parse(&field.text, 0).filter(|&(_, end)| end == field.text.len());
        match (&mut self.labels, number) {
            (Labels::Numbers(numbers), Some((value, _))) => numbers.push(value),
            (labels, _) => labels.push_text(String::from_utf8_lossy(&field.text).into_owned()),
        }
        field.end
    }

    fn ragged(&self, piece: &[u8], start: usize) -> Fault {
        let end = super::records(&piece[start..]).next().map_or(piece.len(), |(_, line)| start + line.len());
        let found = self.plan.dialect.fields(&piece[start..end]).len();
        let expected = self.plan.roles.len();
        Fault::new(start, format!("expected {expected} fields as in the first line, found {found}"))
    }
}
