//! Round trips, damage, lies.

use std::hash::Hasher;

use hbpca::checkpoint::{CheckpointEvery, Checkpoints};
use hbpca::{Dense, FitConfig, Limits, Matrix, SolverKind};
use safetensors::tensor::SafeTensors;

use super::*;

/// 15 rows of 4 columns.
fn data() -> Matrix<'static> {
    let values: Vec<f64> = (0..60).map(|i| f64::from((i * 37 + i * i * 11) % 101)).collect();
    Dense::new(values, 15, 4).unwrap().into()
}

fn config(solver: SolverKind, max_passes: f64) -> FitConfig {
    let limits = Limits { tol: 1e-14, max_passes, ..Limits::default() };
    FitConfig { solver, limits, epoch: 2, eta: Some(0.1), threads: 1, ..FitConfig::default() }
}

/// A checkpoint after three looks.
fn kept(solver: SolverKind) -> Checkpoint {
    let (x, config) = (data(), config(solver, 3.0));
    let mut last = None;
    let keep = |checkpoint: &Checkpoint| {
        last = Some(checkpoint.clone());
        Ok(())
    };
    let every = CheckpointEvery::default();
    let checkpoints =
        Checkpoints { data: x.fingerprint(None), every, save: Some(Box::new(keep)), resume: None };
    config.run().checkpoints(checkpoints).fit(&x).unwrap();
    last.unwrap()
}

fn bytes_of(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut bytes = Vec::new();
    let json = serde_json::to_string(&Header::of(checkpoint)).unwrap();
    frame::write(checkpoint, &json, &mut bytes).unwrap();
    bytes
}

#[track_caller]
fn refusal(bytes: &[u8]) -> String {
    checkpoint_from_bytes(bytes).unwrap_err()
}

/// The header's text with one part replaced, framed anew with a checksum that fits.
fn rewritten(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&bytes[8..8 + length]).unwrap();
    assert!(header.contains(from), "{from} in {header}");
    let header = header.replacen(from, to, 1);
    let data = &bytes[8 + length..bytes.len() - 8];
    summed([&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat())
}

fn summed(mut content: Vec<u8>) -> Vec<u8> {
    let mut hasher = twox_hash::XxHash3_64::with_seed(0);
    hasher.write(&content);
    content.extend(hasher.finish().to_le_bytes());
    content
}

#[test]
fn checkpoints_of_every_solver_come_back_the_same_and_the_public_library_reads_them() {
    for solver in SolverKind::ALL {
        let checkpoint = kept(solver);
        let bytes = bytes_of(&checkpoint);
        assert_eq!(checkpoint_from_bytes(&bytes).unwrap(), checkpoint, "{solver}");
        let grown = Checkpoint { earlier: checkpoint.paused.history[..1].to_vec(), ..checkpoint.clone() };
        assert_eq!(checkpoint_from_bytes(&bytes_of(&grown)).unwrap(), grown);
        let file = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(file.len(), checkpoint.paused.state.tensors().len() + 2);
        assert_eq!(file.tensor("statistics.mean").unwrap().shape(), [4]);
        assert_eq!(file.tensor("history").unwrap().shape(), [checkpoint.paused.history.len(), 9]);
    }
}

#[test]
fn files_are_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ckpt");
    let (first, second) = (kept(SolverKind::Power), kept(SolverKind::VrPca));
    for checkpoint in [&first, &second] {
        write_checkpoint(checkpoint, OutputFile::create(&path).unwrap()).unwrap();
        assert_eq!(&read_checkpoint(&path).unwrap(), checkpoint);
        assert!(recognise_checkpoint(&path));
    }
    // One that is not finished leaves the other as it is.
    drop(OutputFile::create(&path).unwrap());
    assert_eq!(read_checkpoint(&path).unwrap(), second);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_cut_off_at_any_byte_or_with_any_byte_changed_is_refused() {
    let bytes = bytes_of(&kept(SolverKind::VrHbPower));
    for at in 0..bytes.len() {
        refusal(&bytes[..at]);
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        let said = refusal(&changed);
        assert!(
            said.contains("checksum does not fit") || said.contains("no checkpoint"),
            "byte {at}: {said}"
        );
    }
    refusal(&[&bytes[..], &[0]].concat());
    assert!(refusal(b"1,2,3\n4,5,6\n").contains("no checkpoint written by hbpca"));
    assert!(refusal(b"1").contains("it has 1 bytes"));
}

#[test]
fn lies_with_a_fitting_checksum_are_refused_and_named() {
    let bytes = bytes_of(&kept(SolverKind::Power));
    let with = |from: &str, to: &str| refusal(&rewritten(&bytes, from, to));
    assert!(with(r#"\"format_version\":1"#, r#"\"format_version\":7"#).contains("format version 7"));
    assert!(
        with(r#"\"format\":\"hbpca-checkpoint\""#, r#"\"format\":\"other\""#).contains("\"other\" where")
    );
    assert!(with(r#"{"hbpca-checkpoint":"#, r#"{"hbpca":"#).contains("not a checkpoint written by hbpca"));
    assert!(with(r#"\"seconds\":"#, r#"\"seconds\":null,\"x\":"#).contains("cannot be understood"));
    assert!(with(r#"\"k\":1,"#, r#"\"k\":-1,"#).contains("cannot be understood"));
    assert!(with(r#""dtype":"F64""#, r#""dtype":"I64""#).contains("type I64 where F64"));
    assert!(with(r#"\"earlier\":0"#, r#"\"earlier\":4"#).contains("4 earlier records of 3"));
    assert!(with(r#""dtype":"U64""#, r#""dtype":"I64""#).contains("`checksum` is missing"));
    assert!(with(r#""shape":[3,9]"#, r#""shape":[9,3]"#).contains("shape [9, 3]"));
    assert!(with(r#""shape":[4,1]"#, r#""shape":[100000000000,100000000000]"#).contains("not a whole"));
    assert!(refusal(&summed(b"no tensors here".to_vec())).contains("not a whole safetensors file"));
}

#[test]
fn faults_carry_the_file_s_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, "nothing of the kind").unwrap();
    let error = read_checkpoint(&path).unwrap_err().to_string();
    assert!(error.starts_with(&path.display().to_string()), "{error}");
    assert!(read_checkpoint(folder.path()).unwrap_err().to_string().contains("not one"));
    assert!(read_checkpoint(&folder.path().join("none")).is_err());
    assert!(!recognise_checkpoint(&path) && !recognise_checkpoint(folder.path()));
}

/// Changes files of every solver at random, adds a checksum that fits, and goes on from what is understood.
#[test]
fn mutated_files_are_refused_or_harmless() {
    let from_environment = |name: &str| std::env::var(name).ok().and_then(|x| x.parse::<u64>().ok());
    let tried = from_environment("PROPTEST_CASES").unwrap_or(0).max(10_000);
    let mut state = from_environment("PROPTEST_RNG_SEED").unwrap_or(1);
    let mut below = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most.max(1)
    };
    let files: Vec<Vec<u8>> = SolverKind::ALL.map(|solver| bytes_of(&kept(solver))).into();
    let x = data();
    let (mut understood, mut resumed) = (0, 0);
    for _ in 0..tried {
        let file = &files[below(files.len())];
        let mut content = file[..file.len() - 8].to_vec();
        for _ in 0..=below(4) {
            let at = below(content.len());
            match below(6) {
                0 => content[at] ^= 1 << below(8),
                1 => content[at] = b'0' + below(10) as u8,
                // The exponent of a number: NaN, infinity, huge, tiny.
                2 => content[at | 7] = [0x7f, 0xff, 0x00, 0x80][below(4)],
                3 => content[at] = below(256) as u8,
                4 => {
                    let from = below(content.len() - 8);
                    let at = at.min(content.len() - 8);
                    content.copy_within(from..from + 8, at);
                }
                _ => {
                    let digits = content.iter().enumerate().filter(|(_, x)| x.is_ascii_digit());
                    let digits: Vec<usize> = digits.map(|(at, _)| at).collect();
                    content[digits[below(digits.len())]] = b'0' + below(10) as u8;
                }
            }
        }
        let Ok(checkpoint) = checkpoint_from_bytes(&summed(content)) else { continue };
        understood += 1;
        let config = config(checkpoint.solver, 9.0);
        let checkpoints =
            Checkpoints { data: checkpoint.data.clone(), resume: Some(checkpoint), ..Checkpoints::default() };
        resumed += u64::from(config.run().checkpoints(checkpoints).fit(&x).is_ok());
    }
    println!("{tried} files, {understood} understood, {resumed} resumed");
    assert!(tried > understood && understood > resumed && resumed > 0, "{tried} {understood} {resumed}");
}
