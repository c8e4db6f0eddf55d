//! Rows coloured by a column: as categories, or along a scale.

use std::collections::HashMap;

use hbpca_io::Labels;

/// Categories with a colour of their own; the palettes have as many.
pub const MOST_CATEGORIES: usize = 10;

/// The colours of rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Colouring {
    /// Each row belongs to a category.
    Categories {
        /// The categories; the last may stand for all rare ones.
        names: Vec<String>,
        /// The category of each row.
        of: Vec<usize>,
    },
    /// Each row has a number.
    Scale(Vec<f64>),
}

impl Colouring {
    /// Texts are categories, and so are a few whole numbers; other numbers form a scale.
    pub fn of(labels: &Labels) -> Self {
        match labels {
            Labels::Numbers(values) => few_whole(values).map_or_else(
                || Self::Scale(values.clone()),
                |distinct| {
                    let position = |x: &f64| distinct.partition_point(|d| d < x);
                    let names = distinct.iter().map(f64::to_string).collect();
                    Self::Categories { names, of: values.iter().map(position).collect() }
                },
            ),
            Labels::Texts(texts) => Self::of_texts(texts),
        }
    }

    /// The most frequent texts, in alphabetical order; the rest together.
    fn of_texts(texts: &[String]) -> Self {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for text in texts {
            *counts.entry(text).or_default() += 1;
        }
        let mut frequent: Vec<(&str, usize)> = counts.into_iter().collect();
        frequent.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let rare =
            if frequent.len() > MOST_CATEGORIES { frequent.split_off(MOST_CATEGORIES - 1).len() } else { 0 };
        let mut names: Vec<String> = frequent.iter().map(|(text, _)| (*text).to_owned()).collect();
        names.sort_unstable();
        let last = names.len();
        let position = |text: &String| names.binary_search(text).unwrap_or(last);
        let of = texts.iter().map(position).collect();
        if rare > 0 {
            names.push(format!("{rare} others"));
        }
        Self::Categories { names, of }
    }
}

/// The distinct values in order, where they are few and whole.
fn few_whole(values: &[f64]) -> Option<Vec<f64>> {
    let mut distinct: Vec<f64> = Vec::new();
    for value in values {
        if value.fract() != 0.0 {
            return None;
        }
        let at = distinct.partition_point(|x| x < value);
        if distinct.get(at).is_none_or(|x| x > value) {
            if distinct.len() == MOST_CATEGORIES {
                return None;
            }
            distinct.insert(at, *value);
        }
    }
    Some(distinct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_whole_numbers_and_texts_are_categories_and_other_numbers_a_scale() {
        let categories = Colouring::of(&Labels::Numbers(vec![3.0, 0.0, 3.0]));
        let names = vec!["0".to_owned(), "3".to_owned()];
        assert_eq!(categories, Colouring::Categories { names, of: vec![1, 0, 1] });
        let scale =
            |values: Vec<f64>| Colouring::of(&Labels::Numbers(values.clone())) == Colouring::Scale(values);
        assert!(scale(vec![0.5, 1.0]) && scale((0..11).map(f64::from).collect()));
        let texts = Colouring::of(&Labels::Texts(["b", "a", "b"].map(String::from).to_vec()));
        let names = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(texts, Colouring::Categories { names, of: vec![1, 0, 1] });
    }

    #[test]
    fn rare_texts_share_the_last_colour() {
        let mut texts: Vec<String> = (0..14).map(|i| format!("t{i:02}")).collect();
        texts.extend(texts.clone().into_iter().take(9));
        let Colouring::Categories { names, of } = Colouring::of(&Labels::Texts(texts)) else {
            panic!("no categories")
        };
        assert_eq!((names.len(), names[9].as_str()), (10, "5 others"));
        assert_eq!((of[0], of[8], of[9], of[13]), (0, 8, 9, 9));
    }
}
