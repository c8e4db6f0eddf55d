//! Tables: cells are text already, for Markdown, CSV and HTML alike.

use serde::Serialize;

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Name of its file.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
    /// How to read it.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table.
    pub fn new(name: &str, title: &str, header: &[&str]) -> Self {
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        Self { name: name.into(), title: title.into(), header, rows: Vec::new(), notes: Vec::new() }
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule = format!("|{}\n", "---|".repeat(self.header.len()));
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        let notes: String = self.notes.iter().flat_map(|note| ["\n", note, "\n"]).collect();
        format!("{}{rule}{rows}{notes}", line(&self.header))
    }

    /// As CSV.
    pub fn csv(&self) -> String {
        let cell = |text: &String| {
            if text.contains([',', '"', '\n']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.clone()
            }
        };
        let line = |cells: &[String]| cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
        std::iter::once(&self.header).chain(&self.rows).map(|cells| line(cells)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_separators_are_escaped() {
        let mut table = Table::new("t", "T", &["|S|", "b"]);
        table.rows.push(vec!["1,5".into(), "say \"x\"".into()]);
        table.notes.push("Note.".into());
        assert_eq!(table.csv(), "|S|,b\n\"1,5\",\"say \"\"x\"\"\"\n");
        assert_eq!(table.markdown(), "| \\|S\\| | b |\n|---|---|\n| 1,5 | say \"x\" |\n\nNote.\n");
    }
}
