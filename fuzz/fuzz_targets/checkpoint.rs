#![no_main]

use hbpca::checkpoint::Checkpoints;
use hbpca::{Dense, FitConfig, Limits, Matrix};
use hbpca_io::checkpoint_from_bytes;
use twox_hash::XxHash3_64;

/// Eight rows of three columns.
const ROWS: [f64; 24] = [
    2.0, 1.0, 0.5, -2.0, -1.0, 0.25, 0.1, -0.2, 1.0, -0.1, 0.2, -1.0, 3.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 3.0, 1.0, 1.0, 1.0,
];

// The last eight bytes of a file are the checksum of the others: one that fits is added, so that what lies behind it is reached,
// and a run goes on from whatever was understood.
libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    let bytes = [content, &XxHash3_64::oneshot(content).to_le_bytes()].concat();
    let Ok(checkpoint) = checkpoint_from_bytes(&bytes) else { return };
    let Ok(rows) = Dense::borrowed(&ROWS, 8, 3) else { return };
    let config = FitConfig {
        solver: checkpoint.solver,
        limits: Limits { tol: 1e-12, max_passes: 12.0, max_seconds: 1.0, ..Limits::default() },
        epoch: 2,
        threads: 1,
        ..FitConfig::default()
    };
    let checkpoints =
        Checkpoints { data: checkpoint.data.clone(), resume: Some(checkpoint), ..Checkpoints::default() };
    let _ = config.run().checkpoints(checkpoints).fit(&Matrix::from(rows));
});
