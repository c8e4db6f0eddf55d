//! Results as plink2 writes them: texts with tabs, numbers in six digits.

use std::io::Write;

use hbpca::Model;

use super::{Sample, VariantNames};
use crate::{OutputFile, WriteError};

/// `.eigenvec`: family, individual, and a number for each component. `vectors` are n×k, row-major.
pub fn write_eigenvectors(
    file: OutputFile,
    samples: &[Sample],
    vectors: &[f64],
    k: usize,
) -> Result<(), WriteError> {
    let header = ["#FID", "IID"].into_iter();
    let rows = samples.iter().zip(vectors.chunks(k.max(1)));
    let rows = rows.map(|(sample, numbers)| (vec![&sample.family[..], &sample.id], numbers.to_vec()));
    write_table(file, header, k, rows)
}

/// `.eigenval`: an eigenvalue a line.
pub fn write_eigenvalues(mut file: OutputFile, eigenvalues: &[f64]) -> Result<(), WriteError> {
    for x in eigenvalues {
        line(&mut file, &format!("{}\n", number(*x)))?;
    }
    file.commit()
}

/// `.eigenvec.var`: identifier, the more and the less frequent allele, and the weight of the latter for each component.
pub fn write_variant_weights(
    file: OutputFile,
    variants: &VariantNames,
    model: &Model,
) -> Result<(), WriteError> {
    let (k, d) = (model.n_components(), model.n_features());
    let (weights, major) = (model.variant_weights(), model.a1_is_major());
    let rows = variants.rows().enumerate().map(|(j, [id, a1, a2])| {
        let (major, minor) = if major[j] { (a1, a2) } else { (a2, a1) };
        (vec![id, major, minor], (0..k).map(|i| weights[i * d + j]).collect())
    });
    write_table(file, ["#ID", "MAJ", "NONMAJ"].into_iter(), k, rows)
}

fn write_table<'a>(
    mut file: OutputFile,
    header: impl Iterator<Item = &'a str>,
    k: usize,
    rows: impl Iterator<Item = (Vec<&'a str>, Vec<f64>)>,
) -> Result<(), WriteError> {
    let names = header.map(str::to_owned).chain((1..=k).map(|i| format!("PC{i}")));
    line(&mut file, &format!("{}\n", names.collect::<Vec<_>>().join("\t")))?;
    for (names, numbers) in rows {
        let fields = names.into_iter().map(str::to_owned).chain(numbers.into_iter().map(number));
        line(&mut file, &format!("{}\n", fields.collect::<Vec<_>>().join("\t")))?;
    }
    file.commit()
}

fn line(file: &mut OutputFile, text: &str) -> Result<(), WriteError> {
    file.write_all(text.as_bytes()).map_err(|source| WriteError::io(file.name(), source))
}

/// Six digits, as C's `%g` gives them.
fn number(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{x:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return trimmed(&format!("{x:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_six_digits() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (-0.123_456_78, "-0.123457"),
            (12.345_678, "12.3457"),
            (123_456.7, "123457"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_012_345_678, "1.23457e-05"),
            (0.000_123_456_78, "0.000123457"),
            (-2.5e-9, "-2.5e-09"),
            (99.999_99, "100"),
        ];
        for (x, text) in cases {
            assert_eq!(number(x), text);
        }
    }
}
