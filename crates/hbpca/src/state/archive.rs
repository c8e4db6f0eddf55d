//! One walk over the numbers of a run, in either direction.

use faer::Mat;

use super::{State, Tensor};
use crate::{Block, Error};

/// Whole numbers above this are refused: no run counts so far, and f64 and JSON hold everything below.
const MOST: u64 = 1 << 53;

/// Writes numbers into a [`State`], or gives them back.
pub struct Archive<'a> {
    direction: Direction<'a>,
    /// What names begin with.
    prefix: String,
}

enum Direction<'a> {
    Saving(&'a mut State),
    Restoring(&'a State),
}

/// A state that is not one of what it is given back to.
fn unfit(name: &str, fault: impl std::fmt::Display) -> Error {
    Error::Checkpoint(format!("its {name} {fault}"))
}

impl<'a> Archive<'a> {
    pub(super) fn saving(state: &'a mut State) -> Self {
        Self { direction: Direction::Saving(state), prefix: String::new() }
    }

    pub(super) fn restoring(state: &'a State) -> Self {
        Self { direction: Direction::Restoring(state), prefix: String::new() }
    }

    /// Whether numbers are being given back.
    pub fn is_restoring(&self) -> bool {
        matches!(self.direction, Direction::Restoring(_))
    }

    /// Walks over a part whose names begin with that of the part.
    pub fn part(
        &mut self,
        name: &str,
        walk: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let length = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        let walked = walk(self);
        self.prefix.truncate(length);
        walked
    }

    /// Refuses what was given back where it `holds` not together.
    pub fn check(&self, name: &str, holds: bool, fault: &str) -> Result<(), Error> {
        if holds { Ok(()) } else { Err(unfit(&format!("{}{name}", self.prefix), fault)) }
    }

    /// Whether what is given back has such a name; always while numbers are saved. Earlier versions knew fewer.
    pub(crate) fn has(&self, name: &str) -> bool {
        let name = format!("{}{name}", self.prefix);
        match &self.direction {
            Direction::Saving(_) => true,
            Direction::Restoring(state) => {
                state.counts.contains_key(&name) || state.tensors.contains_key(&name)
            }
        }
    }

    /// A whole number.
    pub fn count(&mut self, name: &str, count: &mut u64) -> Result<(), Error> {
        let name = format!("{}{name}", self.prefix);
        match &mut self.direction {
            Direction::Saving(state) => {
                state.counts.insert(name, *count);
            }
            Direction::Restoring(state) => {
                let found = *state.counts.get(&name).ok_or_else(|| unfit(&name, "is missing"))?;
                if found > MOST {
                    return Err(unfit(&name, format_args!("is {found}, which is impossible")));
                }
                *count = found;
            }
        }
        Ok(())
    }

    /// A size.
    pub fn size(&mut self, name: &str, size: &mut usize) -> Result<(), Error> {
        let mut count = *size as u64;
        self.count(name, &mut count)?;
        *size = usize::try_from(count).map_err(|_| unfit(name, format_args!("is {count}")))?;
        Ok(())
    }

    /// Yes or no.
    pub fn flag(&mut self, name: &str, flag: &mut bool) -> Result<(), Error> {
        let mut count = u64::from(*flag);
        self.count(name, &mut count)?;
        *flag = count != 0;
        Ok(())
    }

    /// A finite number.
    pub fn number(&mut self, name: &str, number: &mut f64) -> Result<(), Error> {
        let mut values = vec![*number];
        self.tensor(name, &[Some(1)], &mut values)?;
        *number = values[0];
        Ok(())
    }

    /// A finite number, or none.
    pub fn optional(&mut self, name: &str, number: &mut Option<f64>) -> Result<(), Error> {
        let mut values: Vec<f64> = number.iter().copied().collect();
        self.tensor(name, &[None], &mut values)?;
        *number = values.first().copied();
        Ok(())
    }

    /// Any number of finite numbers.
    pub fn list(&mut self, name: &str, values: &mut Vec<f64>) -> Result<(), Error> {
        self.tensor(name, &[None], values)
    }

    /// A block of vectors, whose shape is given back as it is now.
    pub fn block(&mut self, name: &str, block: &mut Block) -> Result<(), Error> {
        let (d, p) = (block.d(), block.p());
        self.rectangle(name, d, Some(p), block)
    }

    /// A block of any number of vectors of the length they have now.
    pub fn columns(&mut self, name: &str, block: &mut Block) -> Result<(), Error> {
        let d = block.d();
        self.rectangle(name, d, None, block)
    }

    fn rectangle(&mut self, name: &str, d: usize, p: Option<usize>, block: &mut Block) -> Result<(), Error> {
        let mut values = std::mem::replace(block, Block::zeros(d, 0)).into_values();
        let walked = self.tensor(name, &[Some(d), p], &mut values);
        let p = values.len() / d.max(1);
        *block = Block::from_values(d, p, values)?;
        walked
    }

    /// Vectors of length d one after another, any number.
    pub(crate) fn columns_of(&mut self, name: &str, d: usize, values: &mut Vec<f64>) -> Result<(), Error> {
        self.tensor(name, &[None, Some(d)], values)
    }

    /// A small matrix of the given shape, which it has already where it is saved.
    pub(crate) fn matrix(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
        matrix: &mut Mat<f64>,
    ) -> Result<(), Error> {
        let mut values = Vec::new();
        if !self.is_restoring() {
            values.extend((0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).map(|at| matrix[at]));
        }
        self.tensor(name, &[Some(rows), Some(columns)], &mut values)?;
        *matrix = Mat::from_fn(rows, columns, |i, j| values[i * columns + j]);
        Ok(())
    }

    /// Finite numbers; a length that is not given is whatever makes the shape fit. On the way out the values stay.
    fn tensor(&mut self, name: &str, shape: &[Option<usize>], values: &mut Vec<f64>) -> Result<(), Error> {
        let name = format!("{}{name}", self.prefix);
        let finite = |values: &[f64]| match values.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(unfit(&name, format_args!("holds {x}"))),
            None => Ok(()),
        };
        match &mut self.direction {
            Direction::Saving(state) => {
                finite(values)?;
                let known: usize = shape.iter().flatten().product();
                let shape = shape.iter().map(|length| length.unwrap_or(values.len() / known.max(1)));
                let tensor = Tensor::new(shape.collect(), values.clone())?;
                state.tensors.insert(name, tensor);
            }
            Direction::Restoring(state) => {
                let tensor = state.tensors.get(&name).ok_or_else(|| unfit(&name, "is missing"))?;
                let fits = tensor.shape.len() == shape.len()
                    && tensor.shape.iter().zip(shape).all(|(found, want)| want.is_none_or(|x| x == *found));
                if !fits {
                    let found = &tensor.shape;
                    return Err(unfit(
                        &name,
                        format_args!("has shape {found:?} where {} is needed", text(shape)),
                    ));
                }
                finite(&tensor.values)?;
                values.clone_from(&tensor.values);
            }
        }
        Ok(())
    }
}

/// A shape as it is written, with dots for what may be anything.
fn text(shape: &[Option<usize>]) -> String {
    let lengths: Vec<String> =
        shape.iter().map(|x| x.map_or_else(|| "…".to_owned(), |x| x.to_string())).collect();
    format!("[{}]", lengths.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of everything.
    #[derive(Clone, Debug, PartialEq)]
    struct All {
        steps: u64,
        width: usize,
        single: bool,
        error: f64,
        known: Option<f64>,
        unknown: Option<f64>,
        theta: Vec<f64>,
        w: Block,
        x: Block,
        h: Mat<f64>,
    }

    impl All {
        fn example() -> Self {
            Self {
                steps: 7,
                width: 3,
                single: true,
                error: -0.0,
                known: Some(5e-324),
                unknown: None,
                theta: vec![3.0, 1.0],
                w: Block::from_vector(vec![1.0, 2.0]),
                x: Block::from_values(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap(),
                h: Mat::from_fn(2, 2, |i, j| (2 * i + j) as f64),
            }
        }

        fn blank() -> Self {
            Self {
                steps: 0,
                width: 0,
                single: false,
                error: 1.0,
                known: None,
                unknown: Some(1.0),
                theta: vec![],
                w: Block::zeros(2, 1),
                x: Block::zeros(2, 0),
                h: Mat::zeros(0, 0),
            }
        }

        fn walk(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
            archive.part("all", |archive| {
                archive.count("steps", &mut self.steps)?;
                archive.size("width", &mut self.width)?;
                archive.flag("single", &mut self.single)?;
                archive.number("error", &mut self.error)?;
                archive.optional("known", &mut self.known)?;
                archive.optional("unknown", &mut self.unknown)?;
                archive.list("theta", &mut self.theta)?;
                archive.block("w", &mut self.w)?;
                archive.columns("x", &mut self.x)?;
                archive.matrix("h", 2, 2, &mut self.h)
            })
        }
    }

    fn saved() -> State {
        State::of(|archive| All::example().walk(archive)).unwrap()
    }

    #[test]
    fn everything_comes_back_with_its_bits_and_saving_changes_nothing() {
        let mut saving = All::example();
        let state = State::of(|archive| saving.walk(archive)).unwrap();
        assert_eq!(saving, All::example());
        let mut back = All::blank();
        state.restore(|archive| back.walk(archive)).unwrap();
        assert_eq!(back, All::example());
        assert_eq!(back.error.to_bits(), (-0.0_f64).to_bits());
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let refusal = |change: &dyn Fn(&mut State)| {
            let mut state = saved();
            change(&mut state);
            state.restore(|archive| All::blank().walk(archive)).unwrap_err().to_string()
        };
        let tensor =
            |shape: &[usize], x: f64| Tensor::new(shape.to_vec(), vec![x; shape.iter().product()]).unwrap();
        let put = |name: &'static str, tensor: Tensor| {
            refusal(&move |state: &mut State| {
                state.tensors.insert(name.into(), tensor.clone());
            })
        };
        assert!(refusal(&|s| drop(s.tensors.remove("all.w"))).ends_with("its all.w is missing"));
        let gone = refusal(&|s| assert_eq!(s.counts.remove("all.steps"), Some(7)));
        assert!(gone.ends_with("its all.steps is missing"), "{gone}");
        let huge = refusal(&|s| assert_eq!(s.counts.insert("all.steps".into(), u64::MAX), Some(7)));
        assert!(huge.contains("is 18446744073709551615, which is impossible"), "{huge}");
        assert!(put("all.w", tensor(&[3, 1], 0.0)).contains("has shape [3, 1] where [2, 1] is needed"));
        assert!(put("all.x", tensor(&[6], 0.0)).contains("has shape [6] where [2, …] is needed"));
        assert!(put("all.theta", tensor(&[2], f64::NAN)).ends_with("its all.theta holds NaN"));
        assert!(put("all.h", tensor(&[2, 3], 0.0)).contains("[2, 3] where [2, 2]"));
        assert!(put("all.error", tensor(&[0], 0.0)).contains("[0] where [1]"));
    }

    #[test]
    fn numbers_that_are_not_finite_are_not_saved() {
        let mut all = All { error: f64::INFINITY, ..All::example() };
        let error = State::of(|archive| all.walk(archive)).unwrap_err().to_string();
        assert!(error.ends_with("its all.error holds inf"), "{error}");
    }

    #[test]
    fn tensors_have_as_many_values_as_their_shape_says() {
        assert!(Tensor::new(vec![2, 2], vec![0.0; 3]).is_err());
        assert!(Tensor::new(vec![usize::MAX, 2], vec![]).is_err());
        assert_eq!(Tensor::new(vec![], vec![1.0]).unwrap().shape(), [0_usize; 0]);
    }
}
