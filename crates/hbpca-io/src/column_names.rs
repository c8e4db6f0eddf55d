//! Columns found by their names: those of a model, or of the first of several parts.

use std::collections::HashMap;

use crate::ReadError;

/// The names that columns are to be found by, in the order in which they are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamesToMatch {
    /// The names.
    pub names: Vec<String>,
    /// Whose they are.
    pub of: NamesOf,
}

/// Whose names columns are matched with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamesOf {
    /// A model's features: columns of other names are left out, with a note.
    Model,
    /// A model's scores: so are these, and where no name is known columns are taken by position, with a note.
    Scores,
    /// The part of this name: every other part has the same columns, in any order.
    Part(String),
}

/// Where the wanted columns are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// For each wanted column its position; nothing where they are all there are, in the same order.
    pub(crate) positions: Option<Vec<usize>>,
    /// What a person should know of it.
    pub(crate) note: Option<String>,
}

impl NamesToMatch {
    /// The names of a model's features.
    pub fn of_model(names: &[String]) -> Self {
        Self { names: names.to_vec(), of: NamesOf::Model }
    }

    /// The names of k columns of scores, as they are written.
    pub fn of_scores(k: usize) -> Self {
        Self { names: score_names(k), of: NamesOf::Scores }
    }

    /// Whose the names are, in words.
    fn whose(&self) -> String {
        match &self.of {
            NamesOf::Model => "the model".into(),
            NamesOf::Scores => "the model's scores".into(),
            NamesOf::Part(first) => first.clone(),
        }
    }

    /// Finds the wanted columns among `found`, the columns of `file`. The same names in the same order are taken as they are;
    /// others must be unique.
    pub(crate) fn find(&self, found: Option<&[String]>, file: &str) -> Result<Found, ReadError> {
        let Some(found) = found else {
            let note = format!(
                "{file} has no column names: its columns are taken in the order of those of {}",
                self.whose()
            );
            return Ok(Found { positions: None, note: Some(note) });
        };
        if found == self.names {
            return Ok(Found::default());
        }
        let places = places(found);
        let known = self.names.iter().filter(|name| places.contains_key(name.as_str())).count();
        if known == 0 && self.of == NamesOf::Scores {
            let note = format!(
                "{file}: no column is named `{}` or alike: columns are taken in their order",
                self.names[0]
            );
            return Ok(Found { positions: None, note: Some(note) });
        }
        self.refuse_missing(&places, found, file)?;
        if let Some(name) = first_repeated(&self.names) {
            return Err(self.refused(file, &format!("{} has two columns `{name}`", self.whose())));
        }
        let mut positions = Vec::with_capacity(self.names.len());
        for name in &self.names {
            match places[name.as_str()][..] {
                [place] => positions.push(place),
                _ => return Err(self.refused(file, &format!("it has two columns `{name}`"))),
            }
        }
        let note = self.beside(&positions, found, file)?;
        Ok(Found { positions: Some(positions), note })
    }

    fn refuse_missing(
        &self,
        places: &HashMap<&str, Vec<usize>>,
        found: &[String],
        file: &str,
    ) -> Result<(), ReadError> {
        let missing: Vec<&String> =
            self.names.iter().filter(|name| !places.contains_key(name.as_str())).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let (columns, have) = if missing.len() == 1 { ("column", "is") } else { ("columns", "are") };
        let advice = match self.of {
            NamesOf::Part(_) => {
                "parts of one matrix have the same columns: rename them, or choose with --columns"
            }
            _ => {
                "rename its columns as the model has them, or write it without names, as .npy, to go by position"
            }
        };
        Err(ReadError::malformed(
            file,
            format!(
                "{columns} {} of {} {have} not there; the columns are {}: {advice}",
                listed(&missing),
                self.whose(),
                listed(found)
            ),
        ))
    }

    /// Columns that are not wanted: noted or, in a part, refused.
    fn beside(&self, positions: &[usize], found: &[String], file: &str) -> Result<Option<String>, ReadError> {
        let mut wanted = vec![false; found.len()];
        positions.iter().for_each(|&j| wanted[j] = true);
        let others: Vec<&String> =
            found.iter().zip(&wanted).filter(|(_, wanted)| !**wanted).map(|(name, _)| name).collect();
        if others.is_empty() {
            return Ok(None);
        }
        let columns = if others.len() == 1 { "column" } else { "columns" };
        if let NamesOf::Part(first) = &self.of {
            return Err(ReadError::malformed(
                file,
                format!(
                    "{columns} {} not in {first}: parts of one matrix have the same columns; choose them with --columns",
                    listed(&others)
                ),
            ));
        }
        Ok(Some(format!("{file}: {columns} {} not in {}: left out", listed(&others), self.whose())))
    }

    fn refused(&self, file: &str, why: &str) -> ReadError {
        let advice = "names must be unique where the order of the columns is another: rename one";
        ReadError::malformed(
            file,
            format!("its columns are not those of {} in order, and {why}: {advice}", self.whose()),
        )
    }
}

/// The names under which k columns of scores are written.
pub fn score_names(k: usize) -> Vec<String> {
    (1..=k).map(|i| format!("component_{i}")).collect()
}

/// For each of `wanted` its position among `found`, if both are the same names, each once.
pub fn positions_by_name(wanted: &[String], found: &[String]) -> Option<Vec<usize>> {
    let places = places(found);
    let unique = first_repeated(wanted).is_none() && wanted.len() == found.len();
    let position = |name: &String| match places.get(name.as_str()).map(Vec::as_slice) {
        Some([place]) => Some(*place),
        _ => None,
    };
    unique.then(|| wanted.iter().map(position).collect()).flatten()
}

/// Where each name is.
pub(crate) fn places(names: &[String]) -> HashMap<&str, Vec<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::with_capacity(names.len());
    for (j, name) in names.iter().enumerate() {
        places.entry(name).or_default().push(j);
    }
    places
}

fn first_repeated(names: &[String]) -> Option<&String> {
    let places = places(names);
    names.iter().find(|name| places[name.as_str()].len() > 1)
}

/// The first names, as many as fit a message.
pub(crate) fn listed<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 8;
    let mut text =
        names.iter().take(SHOWN).map(|x| format!("`{}`", x.as_ref())).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text = format!("{text} and {} more", names.len() - SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    fn find(wanted: &str, of: NamesOf, found: &str) -> Result<Found, String> {
        let wanted = NamesToMatch { names: names(wanted), of };
        wanted.find(Some(&names(found)), "x.csv").map_err(|error| error.to_string())
    }

    #[test]
    fn the_same_sequence_needs_no_unique_names() {
        for of in [NamesOf::Model, NamesOf::Scores, NamesOf::Part("a.csv".into())] {
            assert_eq!(find("a a b", of, "a a b"), Ok(Found::default()));
        }
    }

    #[test]
    fn another_order_is_found_by_name_and_others_are_noted() {
        let found = find("a b c", NamesOf::Model, "c z a b y").unwrap();
        assert_eq!(found.positions, Some(vec![2, 3, 0]));
        assert_eq!(found.note.unwrap(), "x.csv: columns `z`, `y` not in the model: left out");
        let found = find("a b", NamesOf::Part("p.csv".into()), "b a").unwrap();
        assert_eq!((found.positions, found.note), (Some(vec![1, 0]), None));
    }

    #[test]
    fn missing_names_are_named() {
        let text = find("a b c", NamesOf::Model, "c z").unwrap_err();
        assert!(
            text.starts_with("x.csv: columns `a`, `b` of the model are not there; the columns are `c`, `z`"),
            "{text}"
        );
        let text = find("a b", NamesOf::Part("p.csv".into()), "a z").unwrap_err();
        assert!(text.starts_with("x.csv: column `b` of p.csv is not there"), "{text}");
        let text = find("a b", NamesOf::Part("p.csv".into()), "b a z").unwrap_err();
        assert!(text.starts_with("x.csv: column `z` not in p.csv"), "{text}");
    }

    #[test]
    fn names_that_come_twice_are_refused_in_another_order() {
        let text = find("a b", NamesOf::Model, "b a a").unwrap_err();
        assert!(text.contains("it has two columns `a`"), "{text}");
        let text = find("a a b", NamesOf::Model, "b a").unwrap_err();
        assert!(text.contains("the model has two columns `a`"), "{text}");
        // One that is not wanted may.
        assert_eq!(find("a b", NamesOf::Model, "b z a z").unwrap().positions, Some(vec![2, 0]));
    }

    #[test]
    fn scores_without_a_known_name_go_by_position() {
        let found = find("component_1 component_2", NamesOf::Scores, "x y").unwrap();
        assert!(found.positions.is_none() && found.note.unwrap().contains("taken in their order"));
        let found = find("component_1 component_2", NamesOf::Scores, "id component_2 component_1").unwrap();
        assert_eq!(found.positions, Some(vec![2, 1]));
        assert!(find("component_1 component_2", NamesOf::Scores, "component_2 y").is_err());
        assert_eq!(score_names(2), names("component_1 component_2"));
    }

    #[test]
    fn positions_are_those_of_the_same_names_only() {
        let positions = |a: &str, b: &str| positions_by_name(&names(a), &names(b));
        assert_eq!(positions("a b c", "c a b"), Some(vec![1, 2, 0]));
        assert_eq!(positions("a b", "a b c"), None);
        assert_eq!(positions("a b", "a a"), None);
        assert_eq!(positions("a a", "a b"), None);
    }

    #[test]
    fn a_file_without_names_goes_by_position_with_a_note() {
        let wanted = NamesToMatch::of_model(&names("a b"));
        let found = wanted.find(None, "x.npy").unwrap();
        assert!(found.positions.is_none());
        assert!(
            found.note.unwrap().starts_with("x.npy has no column names: its columns are taken in the order")
        );
    }
}
