//! PLINK's genotypes from the file to the scores, against the matrix that they stand for.
#![allow(
    clippy::unwrap_used,
    clippy::format_collect,
    reason = "what cannot go on in a test has failed; texts are short"
)]

mod common;

use common::{Folder, numbers};

const N: usize = 90;
const D: usize = 140;
/// Missing.
const M: u8 = 9;

/// Dosages of three populations; one in twenty is missing, the last variant never varies.
fn dosages() -> Vec<Vec<u8>> {
    let mut state = 11_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24)
    };
    let frequencies: Vec<[f64; 3]> = (0..D).map(|_| [0, 1, 2].map(|_| 0.1 + 0.8 * uniform())).collect();
    let mut rows = Vec::new();
    for l in 0..N {
        let mut row: Vec<u8> = frequencies
            .iter()
            .map(|f| {
                let copies = u8::from(uniform() < f[l % 3]) + u8::from(uniform() < f[l % 3]);
                if uniform() < 0.05 { M } else { copies }
            })
            .collect();
        row[D - 1] = 0;
        rows.push(row);
    }
    rows
}

fn variant(j: usize) -> [String; 3] {
    let alleles = [("A", "G"), ("C", "A"), ("T", "G"), ("A", "T")][j % 4];
    [format!("rs{j}"), alleles.0.into(), alleles.1.into()]
}

fn bim(variants: impl Iterator<Item = [String; 3]>) -> String {
    variants.enumerate().map(|(j, [id, a1, a2])| format!("1\t{id}\t0\t{}\t{a1}\t{a2}\n", 100 + j)).collect()
}

fn fam(n: usize) -> String {
    (0..n).map(|l| format!("fam{}\tind{l}\t0\t0\t0\t-9\n", l / 10)).collect()
}

fn bed(rows: &[Vec<u8>]) -> Vec<u8> {
    let (n, d) = (rows.len(), rows[0].len());
    let mut bytes = vec![0x6c, 0x1b, 1];
    for j in 0..d {
        let mut codes = vec![0_u8; n.div_ceil(4)];
        for (l, row) in rows.iter().enumerate() {
            let code = match row[j] {
                2 => 0,
                1 => 2,
                0 => 3,
                _ => 1,
            };
            codes[l / 4] |= code << (2 * (l % 4));
        }
        bytes.extend(codes);
    }
    bytes
}

fn store(folder: &Folder, name: &str, rows: &[Vec<u8>], bim: &str) {
    std::fs::write(folder.path(&format!("{name}.bed")), bed(rows)).unwrap();
    folder.write(&format!("{name}.bim"), bim);
    folder.write(&format!("{name}.fam"), &fam(rows.len()));
}

fn problem() -> (Folder, Vec<Vec<u8>>) {
    let (folder, rows) = (Folder::new(), dosages());
    store(&folder, "x", &rows, &bim((0..D).map(variant)));
    (folder, rows)
}

/// Means of what is known, and √(2f(1 − f)), or 1.
fn frequencies(rows: &[Vec<u8>]) -> Vec<(f64, f64)> {
    let of = |j: usize| {
        let known: Vec<f64> = rows.iter().map(|row| row[j]).filter(|x| *x != M).map(f64::from).collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let spread = (2.0 * (mean / 2.0) * (1.0 - mean / 2.0)).sqrt();
        (mean, if spread > 0.0 { spread } else { 1.0 })
    };
    (0..rows[0].len()).map(of).collect()
}

/// The rows that the fit is of, as a table without names.
fn explicit(rows: &[Vec<u8>], frequencies: &[(f64, f64)], hwe: bool) -> Vec<Vec<f64>> {
    let value = |x: u8, (mean, spread): (f64, f64)| match x {
        M => 0.0,
        x => (f64::from(x) - mean) / if hwe { spread } else { 1.0 },
    };
    rows.iter().map(|row| row.iter().zip(frequencies).map(|(x, f)| value(*x, *f)).collect()).collect()
}

fn csv(rows: &[Vec<f64>]) -> String {
    rows.iter().map(|row| row.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>().join(",") + "\n").collect()
}

fn scores(text: &str) -> Vec<Vec<f64>> {
    let parse = |line: &str| line.split(',').map(|cell| cell.parse().unwrap()).collect();
    text.lines().skip(1).map(parse).collect()
}

#[test]
fn a_fit_is_that_of_the_explicit_matrix() {
    let (folder, rows) = problem();
    let frequencies = frequencies(&rows);
    for (flags, hwe) in [("--scale hwe", true), ("", false), ("--scale hwe --solver anchored", true)] {
        folder.write("explicit.csv", &csv(&explicit(&rows, &frequencies, hwe)));
        let packed =
            folder.run(&format!("fit x.bed -k 4 --tol 1e-9 {flags} -o m.safetensors --json")).json(0);
        let wanted = folder
            .run("fit explicit.csv --header no --no-center -k 4 --tol 1e-9 -o e.safetensors --json")
            .json(0);
        assert_eq!((packed["n"].as_u64(), packed["d"].as_u64()), (Some(N as u64), Some(D as u64)));
        for (got, want) in numbers(&packed["eigenvalues"]).iter().zip(numbers(&wanted["eigenvalues"])) {
            assert!((got / want - 1.0).abs() < 1e-9, "{flags}: {got} {want}");
        }
        assert_eq!(folder.run("transform m.safetensors x.bed -o s.csv").code(), 0);
        assert_eq!(folder.run("transform e.safetensors explicit.csv --header no -o w.csv").code(), 0);
        for (got, want) in scores(&folder.read("s.csv")).iter().zip(scores(&folder.read("w.csv"))) {
            for (got, want) in got.iter().zip(want) {
                assert!((got - want).abs() < 1e-6, "{flags}: {got} {want}");
            }
        }
        let checked = folder.run("check m.safetensors x.bed --json").json(0);
        assert_eq!(checked["holds"].as_bool(), Some(true), "{flags}: {checked}");
    }
}

#[test]
fn results_are_written_as_plink2_writes_them() {
    let (folder, rows) = problem();
    let object = folder.run("fit x.bed -k 3 --scale hwe -o m.safetensors --json").json(0);
    let eigenvalues = numbers(&object["eigenvalues"]);
    for name in ["x.eigenval", "x.eigenvec.var"] {
        assert_eq!(folder.run(&format!("convert m.safetensors {name}")).code(), 0);
    }
    assert_eq!(folder.run("transform m.safetensors x.bed -o x.eigenvec").code(), 0);
    // Of AAᵀ/d: nλ/d.
    for (line, eigenvalue) in folder.read("x.eigenval").lines().zip(&eigenvalues) {
        let want = eigenvalue * N as f64 / D as f64;
        assert!((line.parse::<f64>().unwrap() / want - 1.0).abs() < 1e-5, "{line} {want}");
    }
    let text = folder.read("x.eigenvec");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("#FID\tIID\tPC1\tPC2\tPC3"));
    let table: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
    assert_eq!(table.len(), N);
    assert_eq!(table[37][..2], ["fam3", "ind37"]);
    // AAᵀu/m = λu for the unit vector u.
    let a = explicit(&rows, &frequencies(&rows), true);
    for i in 0..3 {
        let u: Vec<f64> = table.iter().map(|row| row[2 + i].parse().unwrap()).collect();
        let norm = u.iter().map(|x| x * x).sum::<f64>();
        assert!((norm - 1.0).abs() < 1e-4, "{norm}");
        let v: Vec<f64> = (0..D).map(|j| a.iter().zip(&u).map(|(row, u)| row[j] * u).sum()).collect();
        for (row, u) in a.iter().zip(&u) {
            let image: f64 = row.iter().zip(&v).map(|(x, v)| x * v).sum::<f64>() / N as f64;
            assert!((image - eigenvalues[i] * u).abs() < 1e-4 * eigenvalues[0], "{image} {u}");
        }
    }
    let text = folder.read("x.eigenvec.var");
    assert!(text.starts_with("#ID\tMAJ\tNONMAJ\tPC1\tPC2\tPC3\nrs0\t"), "{text}");
    assert_eq!(text.lines().count(), D + 1);
    // Weights of the rarer allele, of length √d.
    let frequencies = frequencies(&rows);
    let mut squares = 0.0;
    for (j, line) in text.lines().skip(1).enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [_, a1, a2] = variant(j);
        let (major, minor) = if frequencies[j].0 > 1.0 { (a1, a2) } else { (a2, a1) };
        assert_eq!(fields[1..3], [&major[..], &minor]);
        squares += fields[3].parse::<f64>().unwrap().powi(2);
    }
    assert!((squares / D as f64 - 1.0).abs() < 1e-4, "{squares}");
}

#[test]
fn other_samples_are_projected_with_alleles_matched() {
    let (folder, rows) = problem();
    assert_eq!(folder.run("fit x.bed -k 3 --scale hwe -o m.safetensors").code(), 0);
    assert_eq!(folder.run("transform m.safetensors x.bed -o all.csv").code(), 0);
    let all = scores(&folder.read("all.csv"));
    // The first samples, variants backwards, every second one counting the other allele, every third one on the other strand.
    let turn = |base: &str| {
        ["A", "C", "G", "T"][["T", "G", "C", "A"].iter().position(|x| *x == base).unwrap()].to_owned()
    };
    let mut variants = Vec::new();
    let mut other: Vec<Vec<u8>> = vec![Vec::new(); 30];
    for j in (0..D).rev() {
        let [id, mut a1, mut a2] = variant(j);
        let flipped = j % 2 == 1;
        if flipped {
            std::mem::swap(&mut a1, &mut a2);
        }
        // A/T reads the same on both strands.
        if j % 3 == 0 && j % 4 != 3 {
            (a1, a2) = (turn(&a1), turn(&a2));
        }
        variants.push([id, a1, a2]);
        for (to, row) in other.iter_mut().zip(&rows) {
            to.push(if flipped && row[j] != M { 2 - row[j] } else { row[j] });
        }
    }
    store(&folder, "y", &other, &bim(variants.iter().cloned()));
    let run = folder.run("transform m.safetensors y.bed -o some.csv");
    assert_eq!(run.code(), 0, "{}", run.stderr());
    assert!(run.stderr().contains("70 of 140 variants count the other allele there"), "{}", run.stderr());
    let some = scores(&folder.read("some.csv"));
    assert_eq!(some.len(), 30);
    for (got, want) in some.iter().flatten().zip(all.iter().flatten()) {
        assert!((got - want).abs() < 1e-12, "{got} {want}");
    }
    // On the same scale in .eigenvec.
    assert_eq!(folder.run("transform m.safetensors x.bed -o all.eigenvec").code(), 0);
    assert_eq!(folder.run("transform m.safetensors y.bed -o some.eigenvec").code(), 0);
    let rest = |name: &str| folder.read(name).lines().skip(1).take(30).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rest("some.eigenvec"), rest("all.eigenvec"));

    store(
        &folder,
        "z",
        &other.iter().map(|row| row[1..].to_vec()).collect::<Vec<_>>(),
        &bim(variants[1..].iter().cloned()),
    );
    let said = folder.run("transform m.safetensors z.bed -o s.csv").refusal(3);
    assert!(said.contains("variants `rs139` of the model are not there"), "{said}");
    variants[5][1] = "<DEL>".into();
    store(&folder, "z", &other, &bim(variants.iter().cloned()));
    let said = folder.run("transform m.safetensors z.bed -o s.csv").refusal(3);
    assert!(said.contains("`rs134` have other alleles than in the model"), "{said}");
}

#[test]
fn hostile_files_are_refused_with_the_code_of_bad_input() {
    let (folder, rows) = problem();
    let whole = bed(&rows);
    let refused = |bytes: &[u8]| {
        std::fs::write(folder.path("x.bed"), bytes).unwrap();
        folder.run("fit x.bed").refusal(3)
    };
    assert!(refused(&whole[..whole.len() - 1]).contains("90 samples of"));
    assert!(
        refused(&[&whole[..], &[0]].concat()).contains("it is cut off, or these are not its .fam and .bim")
    );
    assert!(refused(&[&[0x6c, 0x1b, 0][..], &whole[3..]].concat()).contains("sample after sample"));
    assert!(refused(b"chr1\t100\t200\n").contains("this is no PLINK .bed"));
    assert!(refused(b"").contains("cut off"));
    std::fs::write(folder.path("x.bed"), &whole).unwrap();
    std::fs::remove_file(folder.path("x.bim")).unwrap();
    assert!(folder.run("fit x.bed").refusal(3).contains("x.bim: it is not there"));
}

#[test]
fn what_has_no_place_is_refused() {
    let (folder, _) = problem();
    folder.write("t.csv", &common::csv(30, &[2.0, 1.0]));
    let said = folder.run("fit t.csv --scale hwe").refusal(2);
    assert!(said.contains("scale = hwe: it is a scale of genotypes alone"), "{said}");
    let said = folder.run("fit x.bed --columns 1,2").refusal(3);
    assert!(said.contains("columns can be chosen from CSV"), "{said}");
    assert_eq!(folder.run("fit t.csv -o t.safetensors").code(), 0);
    let said = folder.run("transform t.safetensors x.bed -o s.csv").refusal(3);
    assert!(said.contains("the model was not fitted on genotypes"), "{said}");
    let said = folder.run("convert x.bed y.bed").refusal(2);
    assert!(said.contains("genotypes are read and not written"), "{said}");
    let said = folder.run("fit x.bed --memory 1K").refusal(4);
    assert!(said.contains("memory"), "{said}");
}

#[test]
fn a_run_is_resumed_to_the_same_bits() {
    let (folder, _) = problem();
    let flags = "fit x.bed -k 2 --scale hwe --solver power-m --tol 1e-8";
    let flags = flags.replace("-k 2", "-k 1");
    assert_eq!(folder.run(&format!("{flags} -o whole.safetensors")).code(), 0);
    assert_eq!(folder.run(&format!("{flags} --max-passes 5 --checkpoint c")).code(), 1);
    assert_eq!(folder.run(&format!("{flags} --resume c -o resumed.safetensors")).code(), 0);
    let tensor = |name: &str| {
        assert_eq!(folder.run(&format!("convert {name}.safetensors {name}.csv")).code(), 0);
        folder.read(&format!("{name}.csv"))
    };
    assert_eq!(tensor("whole"), tensor("resumed"));
}

#[test]
fn genotypes_become_tables() {
    let (folder, rows) = problem();
    assert_eq!(folder.run("convert x.bed x.csv").code(), 0);
    let text = folder.read("x.csv");
    assert!(text.starts_with("rs0_A_G,rs1_C_A,rs2_T_G,rs3_A_T,"), "{}", &text[..60]);
    for (line, row) in text.lines().skip(1).zip(&rows) {
        for (cell, dosage) in line.split(',').zip(row) {
            assert!(*dosage == M || cell.parse::<u8>() == Ok(*dosage));
        }
    }
    assert_eq!(folder.run("info x.bed").code(), 0);
}

/// 2, 0, 1, …: how often each sample counts.
fn counts() -> Vec<usize> {
    (0..N).map(|l| [2, 0, 1, 3, 1][(l * l + l / 7) % 5]).collect()
}

#[test]
fn weights_are_repeated_samples_and_check_wants_them() {
    let (folder, rows) = problem();
    let weights: String = counts().iter().map(|count| format!("{count}\n")).collect();
    folder.write("w.csv", &weights);
    let often: Vec<Vec<u8>> =
        rows.iter().zip(counts()).flat_map(|(row, count)| vec![row.clone(); count]).collect();
    store(&folder, "often", &often, &bim((0..D).map(variant)));
    for flags in ["--scale hwe", "--scale std", ""] {
        let flags = format!("-k 3 --tol 1e-9 {flags} --json");
        let got = folder.run(&format!("fit x.bed --weights w.csv {flags} -o m.safetensors")).json(0);
        let want = folder.run(&format!("fit often.bed {flags}")).json(0);
        for name in ["eigenvalues", "explained_variance"] {
            for (a, b) in numbers(&got[name]).iter().zip(numbers(&want[name])) {
                assert!((a / b - 1.0).abs() < 1e-9, "{flags} {name}: {a} {b}");
            }
        }
        let checked = folder.run("check m.safetensors x.bed --weights w.csv --json").json(0);
        assert_eq!(checked["holds"].as_bool(), Some(true), "{flags}: {checked}");
    }
    let said = folder.run("check m.safetensors x.bed").refusal(3);
    assert!(said.contains("give the weights it was fitted with by --weights FILE"), "{said}");
    let said = folder.run("fit x.bed --weight-column w").refusal(3);
    assert!(said.contains("give the weights in a file of their own with --weights"), "{said}");
    folder.write("short.csv", "1\n2\n");
    let said = folder.run("fit x.bed --weights short.csv").refusal(3);
    assert!(said.contains("one number for each of the 90 rows is needed"), "{said}");
}

/// `share` of 100 genotypes of every third sample missing.
fn with_holes(share: usize) -> (Folder, Vec<Vec<u8>>) {
    let (folder, mut rows) = problem();
    for (l, row) in rows.iter_mut().enumerate() {
        for (j, x) in row.iter_mut().enumerate() {
            let missing = l % 3 == 0 && (l * 7 + j * 13 + l * j) % 100 < share;
            *x = if missing {
                M
            } else if *x == M {
                1
            } else {
                *x
            };
        }
    }
    store(&folder, "x", &rows, &bim((0..D).map(variant)));
    let cell = |x: &u8| if *x == M { String::new() } else { x.to_string() };
    let line = |row: &Vec<u8>| row.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
    folder.write("x.csv", &rows.iter().map(line).collect::<String>());
    (folder, rows)
}

#[test]
fn what_is_missing_becomes_what_is_asked_for() {
    let (folder, rows) = with_holes(8);
    let holes = rows.iter().flatten().filter(|x| **x == M).count();
    let samples = rows.iter().filter(|row| row.contains(&M)).count();
    for (missing, said) in [
        ("mean", "filled with column means".to_owned()),
        ("drop-rows", format!("{samples} rows dropped")),
        ("em", "em ended at a stationary point after".to_owned()),
    ] {
        let flags = format!("-k 2 --tol 1e-9 --missing {missing} --scale std");
        let flags = if missing == "em" { flags + " --em-tol 1e-9 --max-passes 1e6" } else { flags };
        let run = folder.run(&format!("fit x.bed {flags} -o m.safetensors"));
        assert_eq!(run.code(), 0, "{}", run.stderr());
        let line = format!("{holes} missing values in {samples} rows: {said}");
        assert!(run.stdout().contains(&line), "{}", run.stdout());
        let want = folder.run(&format!("fit x.csv --header no {flags} -o w.safetensors --json")).json(0);
        let got = folder.run(&format!("fit x.bed {flags} --json")).json(0);
        for name in ["eigenvalues", "explained_variance"] {
            for (a, b) in numbers(&got[name]).iter().zip(numbers(&want[name])) {
                assert!((a / b - 1.0).abs() < 1e-6, "{missing} {name}: {a} {b}");
            }
        }
        assert_eq!(folder.run("transform m.safetensors x.bed -o s.csv").code(), 0);
        assert_eq!(folder.run("transform w.safetensors x.csv --header no -o w.csv").code(), 0);
        for (a, b) in scores(&folder.read("s.csv")).iter().zip(scores(&folder.read("w.csv"))) {
            for (a, b) in a.iter().zip(b) {
                assert!((a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-4, "{missing}: {a} {b}");
            }
        }
        let check = folder.run("check m.safetensors x.bed");
        if missing == "em" {
            assert!(check.refusal(3).contains("speaks of the matrix that em completed"));
        } else {
            assert_eq!(check.code(), 0, "{missing}: {}", check.stdout());
        }
    }
    // The mean without a word, and an error where it is asked for.
    let report = folder.run("fit x.bed -k 2").stdout();
    assert!(report.contains("filled with column means"), "{report}");
    let said = folder.run("fit x.bed --missing error").refusal(3);
    assert!(said.contains("holds NaN") && said.contains("drop-rows, mean or em"), "{said}");
    let said = folder.run("transform m.safetensors x.bed --missing error -o s.csv").refusal(3);
    assert!(said.contains("drop-rows, mean or em"), "{said}");
    let said = folder.run("fit x.bed --em-tol 1e-3").refusal(2);
    assert!(said.contains("--em-tol goes with --missing em only"), "{said}");
    assert_eq!(folder.run("transform m.safetensors x.bed --missing drop-rows -o s.eigenvec").code(), 0);
    let missing = folder.read("s.eigenvec").lines().filter(|line| line.ends_with("NaN\tNaN")).count();
    assert_eq!(missing, samples);
}

#[test]
fn a_file_that_does_not_fit_is_read_in_every_pass_to_the_same_bits() {
    let folder = Folder::new();
    let (n, d) = (20_000, 4_000);
    let mut state = 7_u64;
    let mut codes = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as u8
    };
    let bytes: Vec<u8> = [0x6c, 0x1b, 1].into_iter().chain((0..d * n / 4).map(|_| codes())).collect();
    std::fs::write(folder.path("x.bed"), bytes).unwrap();
    folder.write("x.bim", &bim((0..d).map(variant)));
    folder.write("x.fam", &fam(n));
    let flags = "fit x.bed -k 1 --scale hwe --max-passes 3";
    let small = folder.run(&format!("{flags} --memory 16M -o small.safetensors"));
    assert_eq!(small.code(), 1, "{}", small.stderr());
    assert!(
        small.stderr().contains("x.bed: 19.1 MiB do not fit into 16.0 MiB of memory and are read from disk"),
        "{}",
        small.stderr()
    );
    assert!(small.stdout().contains("genotypes in two bits each, on disk"), "{}", small.stdout());
    assert!(small.stdout().contains("read from disk"), "{}", small.stdout());
    let large = folder.run(&format!("{flags} --memory 1G -o large.safetensors"));
    assert!(!large.stdout().contains("on disk"), "{}", large.stdout());
    for name in ["small", "large"] {
        assert_eq!(folder.run(&format!("convert {name}.safetensors {name}.csv")).code(), 0);
    }
    assert_eq!(folder.read("small.csv"), folder.read("large.csv"));
    let said = folder.run(&format!("{flags} --memory 6M")).refusal(4);
    assert!(said.contains("20000 samples × 4000 variants and the vectors of 1 component need"), "{said}");
}
