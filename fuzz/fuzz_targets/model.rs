#![no_main]

use hbpca::verify::{Claims, VerifyConfig, verify};
use hbpca::{Dense, Matrix};
use hbpca_io::StoredModel;

/// Eight rows of three columns.
const ROWS: [f64; 24] = [
    2.0, 1.0, 0.5, -2.0, -1.0, 0.25, 0.1, -0.2, 1.0, -0.1, 0.2, -1.0, 3.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 3.0, 1.0, 1.0, 1.0,
];

// A file without a digest is one of an earlier version: what lies behind it is reached. Whatever was understood is checked on the rows.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(stored) = StoredModel::from_bytes(bytes) else { return };
    let Ok(rows) = Dense::borrowed(&ROWS, 8, 3) else { return };
    let (model, certificate) = (&stored.model, &stored.origin.certificate);
    let (tol, outcome) = (stored.origin.tol, stored.origin.outcome);
    let claims = Claims { model, certificate, tol, outcome, judges_each_component: true };
    let _ = verify(&Matrix::from(rows), None, &claims, &VerifyConfig::default());
});
