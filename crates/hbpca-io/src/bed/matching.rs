//! The variants of a model found in another file, with alleles that may be counted the other way round or be those of the other strand.

use std::collections::HashMap;

use hbpca::genotypes::VariantPlace;

use super::Variant;
use crate::ReadError;
use crate::column_names::listed;

/// The variants of a model, from the names of its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantNames(Vec<Named>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    id: String,
    a1: String,
    a2: String,
}

/// How the alleles of a variant relate to those of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alleles {
    Same,
    Swapped,
    Different,
}

impl VariantNames {
    /// Of names such as `rs123_A_G`; nothing where one is none.
    pub fn parse(names: &[String]) -> Option<Self> {
        let parse = |name: &String| {
            let mut parts = name.rsplitn(3, '_');
            let (a2, a1, id) = (parts.next()?, parts.next()?, parts.next()?);
            let filled = !a1.is_empty() && !a2.is_empty() && !id.is_empty();
            filled.then(|| Named { id: id.to_owned(), a1: a1.to_owned(), a2: a2.to_owned() })
        };
        names.iter().map(parse).collect::<Option<_>>().map(Self)
    }

    /// Identifier, A1 and A2 of each.
    pub(super) fn rows(&self) -> impl Iterator<Item = [&str; 3]> {
        self.0.iter().map(|named| [&named.id[..], &named.a1, &named.a2])
    }

    /// Where each variant is in `file`, and whether its other allele is counted there. All of them must be there.
    pub fn find(&self, variants: &[Variant], file: &str) -> Result<Vec<VariantPlace>, ReadError> {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::with_capacity(variants.len());
        for (j, variant) in variants.iter().enumerate() {
            by_name.entry(variant.name()).or_default().push(j);
        }
        let (mut places, mut missing, mut others) =
            (Vec::with_capacity(self.0.len()), Vec::new(), Vec::new());
        for named in &self.0 {
            let Some(candidates) = by_name.get(&named.id) else {
                missing.push(named.id.as_str());
                continue;
            };
            let fitting = |j: &&usize| named.compare(&variants[**j]) != Alleles::Different;
            let mut found = candidates.iter().filter(fitting);
            match (found.next(), found.next()) {
                (Some(&position), None) => {
                    let flipped = named.compare(&variants[position]) == Alleles::Swapped;
                    places.push(VariantPlace { position, flipped });
                }
                (None, _) => others.push(named.id.as_str()),
                (Some(_), Some(_)) => {
                    let text = format!(
                        "variant `{}` is there twice with the same alleles: rename or remove one",
                        named.id
                    );
                    return Err(ReadError::malformed(file, text));
                }
            }
        }
        if !missing.is_empty() {
            let text = format!(
                "variants {} of the model are not there: give a file with all {} of them, or fit on those that both have",
                listed(&missing),
                self.0.len()
            );
            return Err(ReadError::malformed(file, text));
        }
        if !others.is_empty() {
            let text = format!(
                "variants {} have other alleles than in the model, on either strand: remove them from both, and fit again",
                listed(&others)
            );
            return Err(ReadError::malformed(file, text));
        }
        Ok(places)
    }
}

impl Named {
    /// The same strand first: A/T and C/G read the same on both.
    fn compare(&self, other: &Variant) -> Alleles {
        let here = (self.a1.as_str(), self.a2.as_str());
        let there = [(&other.a1[..], &other.a2[..])];
        let turned = complement(&other.a1).zip(complement(&other.a2));
        let strands = there.into_iter().chain(turned.iter().map(|(a1, a2)| (&a1[..], &a2[..])));
        for (a1, a2) in strands {
            if agree(here, (a1, a2)) {
                return Alleles::Same;
            }
            if agree(here, (a2, a1)) {
                return Alleles::Swapped;
            }
        }
        Alleles::Different
    }
}

/// Whether both alleles agree. One that is `0` is not known, and agrees with any if the other one is the same.
fn agree(a: (&str, &str), b: (&str, &str)) -> bool {
    let (first, second) = (a.0 == b.0, a.1 == b.1);
    let unknown = |x: &str, y: &str| x == "0" || y == "0";
    (first && second)
        || (second && a.1 != "0" && unknown(a.0, b.0))
        || (first && a.0 != "0" && unknown(a.1, b.1))
}

/// The allele on the other strand; nothing where it is not spelt in bases.
fn complement(allele: &str) -> Option<String> {
    let turned = |base: char| match base {
        'A' => Some('T'),
        'C' => Some('G'),
        'G' => Some('C'),
        'T' => Some('A'),
        '0' => Some('0'),
        _ => None,
    };
    allele.chars().rev().map(turned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(model: &str, file: &str) -> Alleles {
        let names = VariantNames::parse(&[format!("rs1_{}", model.replace('/', "_"))]).unwrap();
        let (a1, a2) = file.split_once('/').unwrap();
        names.0[0].compare(&variant("rs1", a1, a2))
    }

    fn variant(id: &str, a1: &str, a2: &str) -> Variant {
        let [chromosome, id, position, a1, a2] = ["1", id, "7", a1, a2].map(str::to_owned);
        Variant { chromosome, id, position, a1, a2 }
    }

    #[test]
    fn alleles_are_compared_on_both_strands() {
        assert_eq!(compare("A/G", "A/G"), Alleles::Same);
        assert_eq!(compare("A/G", "G/A"), Alleles::Swapped);
        assert_eq!(compare("A/G", "T/C"), Alleles::Same);
        assert_eq!(compare("A/G", "C/T"), Alleles::Swapped);
        assert_eq!(compare("A/G", "A/C"), Alleles::Different);
        // Both strands read the same: the one that is written is believed.
        assert_eq!(compare("A/T", "A/T"), Alleles::Same);
        assert_eq!(compare("A/T", "T/A"), Alleles::Swapped);
        assert_eq!(compare("AC/A", "GT/T"), Alleles::Same);
        assert_eq!(compare("<DEL>/A", "A/<DEL>"), Alleles::Swapped);
    }

    #[test]
    fn an_allele_that_nobody_has_agrees_with_any() {
        assert_eq!(compare("A/G", "0/G"), Alleles::Same);
        assert_eq!(compare("A/G", "0/A"), Alleles::Swapped);
        assert_eq!(compare("0/G", "A/G"), Alleles::Same);
        assert_eq!(compare("0/G", "G/A"), Alleles::Swapped);
        assert_eq!(compare("A/G", "0/0"), Alleles::Different);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let names = ["rs1_A_G", "1:7_C_T", "x_y_A_C"].map(str::to_owned);
        let wanted = VariantNames::parse(&names).unwrap();
        let file = [variant("x_y", "C", "A"), variant("rs1", "A", "G"), variant(".", "C", "T")];
        let places = wanted.find(&file, "x.bed").unwrap();
        let found: Vec<_> = places.iter().map(|place| (place.position, place.flipped)).collect();
        assert_eq!(found, [(1, false), (2, false), (0, true)]);
        let said = wanted.find(&file[1..], "x.bed").unwrap_err().to_string();
        assert!(said.contains("variants `x_y` of the model are not there"), "{said}");
        let said = wanted.find(&[variant("x_y", "C", "T"), file[1].clone(), file[2].clone()], "x.bed");
        assert!(said.unwrap_err().to_string().contains("`x_y` have other alleles"));
        let twice = [file[0].clone(), file[1].clone(), file[1].clone(), file[2].clone()];
        assert!(wanted.find(&twice, "x.bed").unwrap_err().to_string().contains("`rs1` is there twice"));
        for none in ["rs1", "rs1_A", "_A_G", "rs1__G"] {
            assert_eq!(VariantNames::parse(&[none.to_owned()]), None);
        }
    }
}
