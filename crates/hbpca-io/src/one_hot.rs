//! Categories as columns of zeros and ones.
//!
//! A column of categories travels beside the matrix while it is read. Then each category becomes a column named `column=category`, after all others, in the order
//! in which the columns were named and, within one, in the order of the categories: numbers by size, then texts by their characters. A model knows them, so that other
//! data gets the same columns.

use hbpca::{Dense, Matrix, Real};
use serde::{Deserialize, Serialize};

use crate::block::Labels;
use crate::{ColumnRef, MissingFields, ReadError, ReadOptions};

/// Categories that a column may have.
const MOST_CATEGORIES: usize = 10_000;

/// A column of categories.
#[derive(Clone, Debug, PartialEq)]
pub enum OneHot {
    /// Its categories are those of the data.
    Found(ColumnRef),
    /// Its categories are known.
    Known(Categories),
}

/// A column and its categories, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Categories {
    /// The name of the column.
    pub column: String,
    /// What it holds.
    pub categories: Vec<String>,
}

impl Categories {
    /// The names of the columns that it becomes.
    pub fn column_names(&self) -> impl Iterator<Item = String> + '_ {
        self.categories.iter().map(|category| format!("{}={category}", self.column))
    }
}

impl OneHot {
    fn column(&self) -> ColumnRef {
        match self {
            Self::Found(column) => column.clone(),
            Self::Known(categories) => ColumnRef::Name(categories.column.clone()),
        }
    }
}

impl ReadOptions {
    /// The columns of categories, which are kept beside the matrix while it is read.
    pub(crate) fn columns_of_categories(&self) -> impl Iterator<Item = ColumnRef> + '_ {
        self.one_hot.iter().map(OneHot::column)
    }
}

/// Puts the categories of `columns` behind the columns of `matrix`, and says which they are.
pub(crate) fn encode(
    file: &str,
    matrix: &Matrix<'static>,
    columns: &[(String, Labels)],
    options: &ReadOptions,
) -> Result<(Matrix<'static>, Vec<Categories>), ReadError> {
    let mut encoded = Vec::new();
    for ((name, labels), asked) in columns.iter().zip(&options.one_hot) {
        let categories = match asked {
            OneHot::Known(known) => known.clone(),
            OneHot::Found(_) => found(file, name, labels)?,
        };
        encoded.push(Encoded::new(file, labels, categories, options.missing)?);
    }
    let matrix = match matrix {
        Matrix::DenseF32(x) => joined(x, &encoded).map(Matrix::from),
        Matrix::DenseF64(x) => joined(x, &encoded).map(Matrix::from),
        _ => return Err(ReadError::option(file, "categories can be coded in dense tables only")),
    };
    let matrix = matrix.map_err(|error| ReadError::malformed(file, error.to_string()))?;
    Ok((matrix, encoded.into_iter().map(|column| column.categories).collect()))
}

/// The categories that a column holds, in order.
fn found(file: &str, name: &str, labels: &Labels) -> Result<Categories, ReadError> {
    let mut categories: Vec<String> = (0..labels.len()).map(|row| labels.text(row).into_owned()).collect();
    categories.retain(|text| !is_gap(text));
    // Numbers by size, then texts.
    let key = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite());
    categories.sort_by(|a, b| match (key(a), key(b)) {
        (Some(x), Some(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => a.cmp(b),
    });
    categories.dedup();
    if categories.is_empty() {
        return Err(ReadError::malformed(
            file,
            format!("column `{name}` holds nothing: there are no categories"),
        ));
    }
    if categories.len() > MOST_CATEGORIES {
        let text = format!(
            "column `{name}` holds {} different values, and {MOST_CATEGORIES} can be categories: leave it out with --exclude",
            categories.len()
        );
        return Err(ReadError::option(file, text));
    }
    Ok(Categories { column: name.to_owned(), categories })
}

/// Whether a field says nothing.
fn is_gap(text: &str) -> bool {
    crate::csv::stands_for_nothing(text.as_bytes())
}

/// A column and the place of every row among its categories.
struct Encoded {
    categories: Categories,
    /// Nothing where the row has none.
    places: Vec<Option<u32>>,
}

impl Encoded {
    fn new(
        file: &str,
        labels: &Labels,
        categories: Categories,
        missing: MissingFields,
    ) -> Result<Self, ReadError> {
        let known: std::collections::HashMap<&str, u32> =
            categories.categories.iter().zip(0..).map(|(text, place)| (text.as_str(), place)).collect();
        let name = &categories.column;
        let place = |row: usize| {
            let text = labels.text(row);
            if let Some(&place) = known.get(&*text) {
                return Ok(Some(place));
            }
            if is_gap(&text) {
                if missing == MissingFields::Nan {
                    return Ok(None);
                }
                let text = format!(
                    "column `{name}`, row {} (counted from 1) holds nothing: choose what becomes of missing values with --missing",
                    row + 1
                );
                return Err(ReadError::malformed(file, text));
            }
            let shown: String = text.chars().take(40).collect();
            let known = crate::column_names::listed(&categories.categories);
            let text = format!(
                "column `{name}`, row {} (counted from 1) holds the category `{shown}`, which the model does not know: it knows {known}",
                row + 1
            );
            Err(ReadError::malformed(file, text))
        };
        let places = (0..labels.len()).map(place).collect::<Result<_, _>>()?;
        Ok(Self { categories, places })
    }
}

fn joined<T: Real>(x: &Dense<'_, T>, encoded: &[Encoded]) -> Result<Dense<'static, T>, hbpca::Error> {
    let (n, d) = (x.n_rows(), x.n_cols());
    let more: usize = encoded.iter().map(|column| column.categories.categories.len()).sum();
    let mut values = Vec::with_capacity(n * (d + more));
    for l in 0..n {
        values.extend_from_slice(x.row(l));
        for column in encoded {
            let place = column.places[l];
            let value = |c: u32| match place {
                None => f64::NAN,
                Some(place) => f64::from(u8::from(place == c)),
            };
            let count = column.categories.categories.len() as u32;
            values.extend((0..count).map(|c| T::from_f64(value(c))));
        }
    }
    Dense::deferring_finite_check(values.into(), n, d + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Labels {
        Labels::Texts(texts.iter().map(|&text| text.to_owned()).collect())
    }

    #[test]
    fn categories_are_ordered_numbers_first() {
        let order = |labels: &Labels| found("x.csv", "c", labels).unwrap().categories;
        assert_eq!(order(&texts(&["b", "10", "a", "9", "b", "NA", ""])), ["9", "10", "a", "b"]);
        assert_eq!(order(&Labels::Numbers(vec![3.0, 1.0, 10.0, 3.0])), ["1", "3", "10"]);
        assert!(found("x.csv", "c", &texts(&["", "NA"])).unwrap_err().to_string().contains("holds nothing"));
    }

    #[test]
    fn an_unknown_category_is_named_with_its_row() {
        let known = Categories { column: "kind".into(), categories: vec!["a".into(), "b".into()] };
        let error = |labels: &Labels, missing| {
            Encoded::new("x.csv", labels, known.clone(), missing).err().map(|error| error.to_string())
        };
        let said = error(&texts(&["a", "z"]), MissingFields::Nan).unwrap();
        assert!(
            said.contains("column `kind`, row 2") && said.contains("`z`, which the model does not know"),
            "{said}"
        );
        let said = error(&texts(&["a", ""]), MissingFields::Refused).unwrap();
        assert!(said.contains("holds nothing") && said.contains("--missing"), "{said}");
        assert_eq!(error(&texts(&["a", "", "b"]), MissingFields::Nan), None);
    }
}
