//! Tables whose columns line up.

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of text under a header.
#[derive(Clone, Debug)]
pub struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[(&str, Side)]) -> Self {
        let header = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self { sides: columns.iter().map(|(_, side)| *side).collect(), rows: vec![header] }
    }

    /// Adds a row, one cell a column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut cells: Vec<String> = cells.into_iter().collect();
        cells.resize(self.sides.len(), String::new());
        self.rows.push(cells);
    }

    /// The table as lines; nothing trails behind the last cell of a line.
    pub fn render(&self) -> String {
        let width = |c: usize| self.rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.sides.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            // `{:<}` and `{:>}` pad by characters, as counted above.
            let cells = row.iter().zip(&widths).zip(&self.sides).map(|((cell, width), side)| match side {
                Side::Left => format!("{cell:<width$}"),
                Side::Right => format!("{cell:>width$}"),
            });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// Facts under each other: names on the left, values on the right of them.
pub fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| format!("{name:<width$}  {value}\n");
    facts.iter().map(line).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_the_letters() {
        let mut table = Table::new(&[("solver", Side::Left), ("θ₁", Side::Right), ("note", Side::Left)]);
        table.row(["oja".into(), "1".into(), String::new()]);
        table.row(["power-m".into(), "12345".into(), "ε".into()]);
        assert_eq!(table.render(), "solver      θ₁  note\noja          1\npower-m  12345  ε\n");
    }

    #[test]
    fn missing_cells_are_empty() {
        let mut table = Table::new(&[("a", Side::Right), ("b", Side::Right)]);
        table.row(["1".into()]);
        assert_eq!(table.render(), "a  b\n1\n");
    }

    #[test]
    fn facts_line_up() {
        assert_eq!(facts(&[("n", "3".into()), ("rows", "4".into())]), "n     3\nrows  4\n");
    }
}
