//! Loadings: the entries of the components, each a unit vector, under the names of their columns.

use hbpca_io::StoredModel;
use hbpca_lab::fit_report::{column_names, leading_columns};

use super::number;
use super::table::{Side, Table};

/// Half a bar, in characters.
const HALF: usize = 12;
/// Components shown; the rest is counted.
const SHOWN: usize = 20;

/// For every component the `top` columns with the largest loadings, as signed bars.
pub fn lists(stored: &StoredModel, top: usize) -> String {
    let model = &stored.model;
    let names = column_names(stored, None);
    let shares = model.explained_variance_ratio();
    let shown = shares.iter().enumerate().take(SHOWN).map(|(i, share)| {
        let component = model.component(i);
        let columns = leading_columns(component, top);
        let largest = columns.first().map_or(0.0, |j| component[*j].abs());
        let mut table = Table::new(&[("column", Side::Left), ("loading", Side::Right), ("", Side::Left)]);
        for j in &columns {
            table.row([names[*j].clone(), format!("{:+.4}", component[*j]), bar(component[*j], largest)]);
        }
        let more = match component.len() - columns.len() {
            0 => String::new(),
            more => format!("… and {} more columns\n", number::count(more)),
        };
        format!(
            "component {} ({} of the variance)\n{}{more}\n",
            i + 1,
            number::percent(*share),
            table.render()
        )
    });
    let more = match shares.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("… and {more} more components\n"),
    };
    shown.chain([more]).collect::<Vec<_>>().concat()
}

/// A bar to the left for negative, to the right for positive values.
fn bar(value: f64, largest: f64) -> String {
    let length = if largest > 0.0 { (value.abs() / largest * HALF as f64).round() as usize } else { 0 };
    if value < 0.0 {
        format!("{:>HALF$}│", "█".repeat(length))
    } else {
        format!("{:>HALF$}│{}", "", "█".repeat(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_a_side_for_each_sign() {
        assert_eq!(bar(1.0, 1.0), format!("{}│{}", " ".repeat(HALF), "█".repeat(HALF)));
        assert_eq!(bar(-0.5, 1.0), format!("{}{}│", " ".repeat(HALF / 2), "█".repeat(HALF / 2)));
        assert_eq!(bar(0.0, 0.0), format!("{}│", " ".repeat(HALF)));
    }
}
