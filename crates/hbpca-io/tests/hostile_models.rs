//! Models, checkpoints and manifests that were changed anywhere, with checksums that fit: each is read or refused, none panics, and what is read
//! can be used.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{Random, cases};
use hbpca::checkpoint::{Checkpoint, Checkpoints};
use hbpca::verify::{Claims, VerifyConfig, verify};
use hbpca::{Dense, FitConfig, Limits, Matrix, SolverKind, Whitening};
use hbpca_io::{ChunkManifest, OutputFile, StoredModel, checkpoint_from_bytes, write_checkpoint};
use twox_hash::XxHash3_64;

const N: usize = 8;
const D: usize = 3;

fn rows() -> Matrix<'static> {
    let values = (0..N * D).map(|i| ((i * i * 7) % 13) as f64 - 6.0).collect();
    Dense::new(values, N, D).unwrap().into()
}

fn config(solver: SolverKind) -> FitConfig {
    let limits = Limits { tol: 1e-12, max_passes: 12.0, max_seconds: 5.0, ..Limits::default() };
    FitConfig { solver, limits, epoch: 2, threads: 1, ..FitConfig::default() }
}

/// Runs `work` on a changed file; a panic is a finding.
fn survives(bytes: &[u8], what: &str, round: u64, work: impl FnOnce()) {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    assert!(outcome.is_ok(), "{what}, round {round}: {:?}", String::from_utf8_lossy(bytes));
}

/// A frame around another header; the data stays.
fn reframed(header: &[u8], data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header, data].concat()
}

#[test]
fn a_model_changed_anywhere_is_used_or_refused() {
    let x = rows();
    let fit = FitConfig { k: 2, ..config(SolverKind::Auto) }.fit(&x).unwrap();
    let bytes = StoredModel::of_fit(&fit, "a test", 1e-12).to_bytes().unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let (header, data) = (bytes[8..8 + length].to_vec(), bytes[8 + length..].to_vec());
    // Without the digest, which would refuse nearly everything at once.
    let text = String::from_utf8(header).unwrap();
    let at = text.rfind(",\\\"digest\\\"").unwrap();
    let end = at + text[at..].find('}').unwrap();
    let header = format!("{}{}", &text[..at], &text[end..]).into_bytes();
    assert!(StoredModel::from_bytes(&reframed(&header, &data)).is_ok());
    let mut random = Random::seeded();
    let mut used = 0;
    for round in 0..cases(3000) {
        let (mut header, mut data) = (header.clone(), data.clone());
        match random.below(3) {
            0 => random.mutate(&mut header),
            1 => random.mutate(&mut data),
            _ => {
                // Numbers of the data alone, so that the file stays whole.
                let at = random.below(data.len());
                data[at] = random.below(256) as u8;
            }
        }
        let changed = reframed(&header, &data);
        survives(&changed, "model", round, || {
            let Ok(stored) = StoredModel::from_bytes(&changed) else { return };
            used += 1;
            let _ = (stored.to_bytes().unwrap(), stored.origin.certificate.to_string());
            let _ = stored.model.transform(&x, Whitening::On);
            let (model, certificate) = (&stored.model, &stored.origin.certificate);
            let (tol, outcome) = (stored.origin.tol, stored.origin.outcome);
            let claims = Claims { model, certificate, tol, outcome, judges_each_component: true };
            let _ = verify(&x, None, &claims, &VerifyConfig::default()).map(|found| found.holds());
        });
    }
    assert!(used > 100, "{used} were used");
}

#[test]
fn a_checkpoint_changed_anywhere_is_resumed_or_refused() {
    let x = rows();
    let mut random = Random::seeded();
    let mut resumed = 0;
    for solver in [SolverKind::Power, SolverKind::Krylov, SolverKind::Anchored, SolverKind::VrHbPower] {
        let mut saved: Vec<Checkpoint> = Vec::new();
        let save = |checkpoint: &Checkpoint| {
            saved.push(checkpoint.clone());
            Ok(())
        };
        let data = x.fingerprint(None);
        let checkpoints =
            Checkpoints { data: data.clone(), save: Some(Box::new(save)), ..Checkpoints::default() };
        config(solver).run().checkpoints(checkpoints).fit(&x).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        write_checkpoint(&saved[0], OutputFile::create(&path).unwrap()).unwrap();
        let bytes = std::fs::read(path).unwrap();
        let content = &bytes[..bytes.len() - 8];
        for round in 0..cases(1000) {
            let mut changed = content.to_vec();
            random.mutate(&mut changed);
            changed.extend(XxHash3_64::oneshot(&changed).to_le_bytes());
            survives(&changed, solver.name(), round, || {
                let Ok(checkpoint) = checkpoint_from_bytes(&changed) else { return };
                let data = checkpoint.data.clone();
                let checkpoints = Checkpoints { data, resume: Some(checkpoint), ..Checkpoints::default() };
                resumed += u64::from(config(solver).run().checkpoints(checkpoints).fit(&x).is_ok());
            });
        }
    }
    assert!(resumed > 20, "{resumed} were resumed");
}

#[test]
fn a_manifest_changed_anywhere_is_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("x.csv"), folder.path().join("x.chunks"));
    std::fs::write(&source, "a,b\n1,2\n3,4.5\n-1,0\n").unwrap();
    hbpca_io::convert(
        hbpca_io::Input::path(source),
        &hbpca_io::ReadOptions::default(),
        &target,
        &hbpca_io::WriteOptions::default(),
    )
    .unwrap();
    let bytes = std::fs::read(target.join("manifest.json")).unwrap();
    let mut random = Random::seeded();
    for round in 0..cases(3000) {
        let mut changed = bytes.clone();
        random.mutate(&mut changed);
        std::fs::write(target.join("manifest.json"), &changed).unwrap();
        survives(&changed, "manifest", round, || {
            if ChunkManifest::parse(&changed, "manifest.json").is_ok() {
                let _ = hbpca_io::read(hbpca_io::Input::path(&target), &hbpca_io::ReadOptions::default());
            }
        });
    }
}
