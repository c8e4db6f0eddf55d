//! Round trips, cut-off files, and files that lie.

use hbpca::certificate::{Certainty, Cluster, Status};
use hbpca::{Dense, FitConfig, Matrix, Preprocessing, SolverKind};

use super::*;

fn fitted(preprocessing: Preprocessing) -> StoredModel {
    let x: Matrix = Dense::new(
        vec![2.0, 1.0, 0.5, -2.0, -1.0, 0.1, 0.1, -0.2, 0.9, -0.1, 0.2, -3.0, 1.0, 1.0, 0.0],
        5,
        3,
    )
    .unwrap()
    .into();
    let config = FitConfig { k: 2, preprocessing, ..FitConfig::default() };
    StoredModel::of_fit(&config.fit(&x).unwrap(), "a test", 1e-6)
}

fn refusal(bytes: &[u8]) -> String {
    StoredModel::from_bytes(bytes).unwrap_err()
}

/// A file from a header as it stands and some data.
fn framed(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// The header and the data of a good file.
fn taken_apart(bytes: &[u8]) -> (String, Vec<u8>) {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (String::from_utf8(bytes[8..8 + length].to_vec()).unwrap(), bytes[8 + length..].to_vec())
}

#[test]
fn models_come_back_to_the_last_bit() {
    for preprocessing in
        [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE, Preprocessing::UNIT_RANGE]
    {
        let stored = fitted(preprocessing);
        assert_eq!(StoredModel::from_bytes(&stored.to_bytes().unwrap()).unwrap(), stored);
    }
}

fn named(names: &[&str]) -> Result<StoredModel, hbpca::Error> {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    fitted(Preprocessing::STANDARDIZE).with_feature_names(Some(names))
}

#[test]
fn names_come_back_in_their_order_whatever_is_in_them() {
    let names = ["b", "a \"quoted\", name\n", "größe 長さ"];
    let stored = named(&names).unwrap();
    let back = StoredModel::from_bytes(&stored.to_bytes().unwrap()).unwrap();
    assert_eq!(back, stored);
    assert_eq!(back.model.feature_names().unwrap(), names);
    assert_eq!(fitted(Preprocessing::NONE).model.feature_names(), None);
    assert!(named(&["a"]).unwrap_err().to_string().contains("1 given where 3 are needed"));
}

#[test]
fn names_that_do_not_fit_are_refused() {
    let mut bytes = named(&["one", "two", "six"]).unwrap().to_bytes().unwrap();
    // Without a digest, which would tell first.
    let digest = bytes.windows(6).position(|x| x == b"digest").unwrap();
    bytes[digest] = b'_';
    let with = |text: &[u8]| {
        let at = bytes.windows(19).position(|x| x == br#"["one","two","six"]"#).unwrap();
        [&bytes[..at], text, &bytes[at + 19..]].concat()
    };
    assert!(StoredModel::from_bytes(&with(br#"["one","two",null ]"#)).is_err());
    assert!(refusal(&with(br#"["one","two"      ]"#)).contains("2 names where 3 are needed"));
    assert!(refusal(&with(b"[\"one\",\"two\",\"\xff\xff\"] ")).contains("no JSON array of texts"));
}

#[test]
fn the_history_of_an_iteration_comes_back() {
    let values = (0..60).map(|i| f64::from(i * i % 17) - 8.0).collect();
    let x: Matrix = Dense::new(values, 20, 3).unwrap().into();
    let config = FitConfig { solver: SolverKind::PowerM, ..FitConfig::default() };
    let fit = config.fit(&x).unwrap();
    assert!(fit.history.len() > 2 && fit.history[0].eta.is_none() && fit.history[2].beta.is_some());
    let stored = StoredModel::of_fit(&fit, "a test", 1e-6);
    assert_eq!(StoredModel::from_bytes(&stored.to_bytes().unwrap()).unwrap().origin.history, fit.history);
}

#[test]
fn equal_models_have_equal_bytes() {
    let stored = fitted(Preprocessing::STANDARDIZE);
    let first = stored.to_bytes().unwrap();
    assert!((0..20).all(|_| stored.to_bytes().unwrap() == first));
}

#[test]
fn bounds_that_are_not_finite_survive() {
    let mut stored = fitted(Preprocessing::CENTER);
    stored.origin.certificate.relative_residuals = vec![0.0, f64::INFINITY];
    stored.origin.certificate.eigenvalue_intervals[1] = [0.0, f64::INFINITY];
    stored.origin.certificate.angle_bounds[0] = None;
    assert_eq!(StoredModel::from_bytes(&stored.to_bytes().unwrap()).unwrap(), stored);
}

#[test]
fn models_of_earlier_versions_are_read_and_say_so() {
    // What version 0.2 wrote: no status, and residuals relative to the first eigenvalue.
    let (header, data) = taken_apart(&fitted(Preprocessing::CENTER).to_bytes().unwrap());
    let mut outer: serde_json::Value = serde_json::from_str(&header).unwrap();
    let text = outer["__metadata__"]["hbpca"].as_str().unwrap();
    let mut inner: serde_json::Value = serde_json::from_str(text).unwrap();
    let certificate = inner["certificate"].as_object_mut().unwrap();
    for name in ["status", "clusters", "certainty", "failure_probability"] {
        assert!(certificate.remove(name).is_some(), "{name}");
    }
    certificate.insert("residuals".into(), serde_json::json!([1e-9, 1e-9]));
    certificate.insert("gap_is_proved".into(), true.into());
    assert!(inner.as_object_mut().unwrap().remove("digest").is_some());
    outer["__metadata__"]["hbpca"] = inner.to_string().into();
    let stored = StoredModel::from_bytes(&framed(&outer.to_string(), &data)).unwrap();
    let (origin, certificate) = (&stored.origin, &stored.origin.certificate);
    assert_eq!(origin.rule, CertificateRule::FirstEigenvalue);
    assert_eq!(certificate.status, [Status::Open; 2]);
    assert_eq!((certificate.certainty, certificate.failure_probability), (Certainty::Proved, None));
    // Each is told relative to its own eigenvalue.
    let theta = stored.model.eigenvalues();
    assert_eq!(certificate.relative_residuals, [1e-9 / theta[0], 1e-9 / theta[1]]);
    // Written again, it still says by which rule it was made.
    assert_eq!(StoredModel::from_bytes(&stored.to_bytes().unwrap()).unwrap(), stored);
}

#[test]
fn a_probe_and_what_it_says_come_back() {
    let values = (0..400).map(|i| f64::from(i * i % 17) - 8.0).collect();
    let x: Matrix = Dense::new(values, 20, 20).unwrap().into();
    let config = FitConfig {
        solver: SolverKind::Krylov,
        certify: Some(0.5),
        probe_seed: Some(u64::MAX),
        ..FitConfig::default()
    };
    let mut stored = StoredModel::of_fit(&config.fit(&x).unwrap(), "a test", 1e-6);
    // Whether there is one depends on what the trace proves already.
    stored.origin.probe = Some(Probe { passes: 3, seed: u64::MAX, seed_is_given: true });
    stored.origin.certificate.certainty = Certainty::Probability;
    stored.origin.certificate.failure_probability = Some(0.5);
    stored.origin.certificate.clusters = vec![Cluster(0, 0, Some(0.25)), Cluster(0, 0, None)];
    assert_eq!(StoredModel::from_bytes(&stored.to_bytes().unwrap()).unwrap(), stored);
}

#[test]
fn a_file_cut_off_at_any_byte_is_refused() {
    let bytes = fitted(Preprocessing::STANDARDIZE).to_bytes().unwrap();
    for length in 0..bytes.len() {
        assert!(refusal(&bytes[..length]).contains("not a whole safetensors file"), "{length} bytes");
    }
}

#[test]
fn a_flipped_byte_is_refused_or_changes_nothing() {
    let whole = fitted(Preprocessing::STANDARDIZE);
    let bytes = whole.to_bytes().unwrap();
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x15;
        if let Ok(stored) = StoredModel::from_bytes(&bytes) {
            assert_eq!(stored, whole, "byte {at}");
        }
    }
}

#[test]
fn a_number_that_was_changed_is_shown_by_the_digest() {
    let bytes = fitted(Preprocessing::CENTER).to_bytes().unwrap();
    let (header, mut data) = taken_apart(&bytes);
    *data.last_mut().unwrap() ^= 1;
    assert!(refusal(&framed(&header, &data)).contains("its digest does not fit its content"));
}

#[test]
fn variances_that_contradict_the_eigenvalues_are_refused() {
    // Without its digest, as an earlier version wrote it.
    let (header, mut data) = taken_apart(&fitted(Preprocessing::CENTER).to_bytes().unwrap());
    let mut outer: serde_json::Value = serde_json::from_str(&header).unwrap();
    let text = outer["__metadata__"]["hbpca"].as_str().unwrap();
    let (body, _) = text.rsplit_once(",\"digest\"").unwrap();
    outer["__metadata__"]["hbpca"] = format!("{body}}}").into();
    assert!(StoredModel::from_bytes(&framed(&outer.to_string(), &data)).is_ok());
    let at = outer["explained_variance"]["data_offsets"][0].as_u64().unwrap() as usize;
    data[at..at + 8].copy_from_slice(&1e3_f64.to_le_bytes());
    assert!(refusal(&framed(&outer.to_string(), &data)).contains("`explained_variance` does not follow"));
}

#[test]
fn headers_that_lie_are_refused_and_named() {
    let (header, data) = taken_apart(&fitted(Preprocessing::STANDARDIZE).to_bytes().unwrap());
    let with = |from: &str, to: &str| {
        assert!(header.contains(from), "{from} in {header}");
        refusal(&framed(&header.replacen(from, to, 1), &data))
    };
    // 10²² numbers in a file of a few hundred bytes.
    assert!(
        with(r#""shape":[2,3]"#, r#""shape":[100000000000,100000000000]"#)
            .contains("not a whole safetensors file")
    );
    assert!(
        with(r#""shape":[2,3]"#, r#""shape":[3,2]"#).contains("`components` has shape [3, 2] where [2, 3]")
    );
    assert!(
        with(r#"\"d\":3"#, r#"\"d\":9223372036854775808"#).contains("where [9223372036854775808] is needed")
    );
    assert!(with(r#"\"d\":3"#, r#"\"d\":-3"#).contains("cannot be understood"));
    assert!(with(r#"\"n\":5"#, r#"\"n\":0"#).contains("none may be 0"));
    assert!(with(r#"\"k\":2"#, r#"\"k\":4"#).contains("where [4, 3] is needed"));
    assert!(with(r#"\"tol\":1e-6"#, r#"\"tol\":-1.0"#).contains("tol = -1"));
    assert!(with("hbpca-model", "other-model").contains("`other-model` where `hbpca-model`"));
    assert!(with(r#"\"format_version\":1"#, r#"\"format_version\":7"#).contains("format version 7"));
    assert!(with(r#"\"residuals\":["#, r#"\"residuals\":[1.0,"#).contains("not one of 2 components"));
    assert!(with(r#"\"status\":["#, r#"\"status\":[\"open\","#).contains("not one of 2 components"));
    assert!(with(r#"\"clusters\":["#, r#"\"clusters\":[[1,2,null]"#).contains("not one of 2 components"));
    assert!(with(r#"{"hbpca":"#, r#"{"other":"#).contains("not a model written by hbpca"));
    assert!(with(r#""eigenvalues":{"#, r#""eigenvaluez":{"#).contains("`eigenvalues` is missing"));
    assert!(
        with(r#""history":{"dtype":"F64""#, r#""history":{"dtype":"I64""#).contains("type I64 where F64")
    );
}

#[test]
fn numbers_that_no_model_has_are_refused() {
    let poisoned = |poison: &dyn Fn(&mut StoredModel)| {
        let mut stored = fitted(Preprocessing::STANDARDIZE);
        poison(&mut stored);
        refusal(&stored.to_bytes().unwrap())
    };
    let rebuilt = |stored: &mut StoredModel, component: f64, scale: f64| {
        let mut components = stored.model.components().to_vec();
        components[1] = component;
        let shift = stored.model.shift().map(<[f64]>::to_vec);
        let summary = stored.model.summary().clone();
        stored.model = Model::from_parts(components, summary, shift, Some(vec![1.0, scale, 1.0])).unwrap();
    };
    assert!(poisoned(&|m| rebuilt(m, f64::NAN, 1.0)).contains("`components` holds NaN"));
    assert!(poisoned(&|m| rebuilt(m, 0.5, f64::INFINITY)).contains("`scale` holds inf"));
    assert!(poisoned(&|m| rebuilt(m, 0.5, 0.0)).contains("`scale` holds a number that is not positive"));
}

#[test]
fn files_are_recognised_and_faults_carry_the_file_s_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    fitted(Preprocessing::CENTER).write(OutputFile::create(&path).unwrap()).unwrap();
    assert!(StoredModel::recognise(&path));
    assert_eq!(StoredModel::read(&path).unwrap().model.n_features(), 3);
    std::fs::write(&path, "1,2,3\n4,5,6\n").unwrap();
    assert!(!StoredModel::recognise(&path));
    let error = StoredModel::read(&path).unwrap_err().to_string();
    assert!(error.starts_with(&path.display().to_string()), "{error}");
    assert!(StoredModel::read(folder.path()).unwrap_err().to_string().contains("not one"));
    assert!(
        StoredModel::read(&folder.path().join("none")).is_err() && !StoredModel::recognise(folder.path())
    );
}
